"""Builds on a Ray cluster. What Ray reads from the environment as it is imported is set here, before that."""

import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
# Ray would try a task that ran out of memory without end; the queue tries it with fewer threads. (Under Ray Client the
# environment of the cluster decides.)
os.environ.setdefault("RAY_task_oom_retries", "0")
