"""The paper's measurements of one model; job.py makes them, and index/lab_record.py reads what it writes."""
