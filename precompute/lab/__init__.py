"""Measure one model as the paper does: job.py makes the measurements, and index/lab_record.py reads their results."""
