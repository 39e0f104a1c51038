"""The paper's measurements of one model; the door is job.py, and index/lab_record.py reads what it writes."""
