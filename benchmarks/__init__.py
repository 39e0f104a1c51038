"""Measure speed and memory. Most figures are ratios of two things timed in one run, so that a busy machine matters
little."""
