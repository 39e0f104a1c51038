"""Builds on a Ray cluster."""

import os

# Ray would try a task that ran out of memory without end; the queue tries it with fewer threads. (Under Ray Client the
# environment of the cluster decides.) It is read as Ray is imported.
os.environ.setdefault("RAY_task_oom_retries", "0")
