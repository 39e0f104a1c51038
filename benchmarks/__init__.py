"""Measured figures: each is a ratio of two things timed in one run, so that a noisy machine does not matter much."""
