"""Build indexes on a Ray cluster."""

import os

# Ray would retry a task that ran out of memory without end; our queue retries it with fewer threads. Ray reads this
# variable as it is imported. (Under Ray Client the environment of the cluster decides.)
os.environ.setdefault("RAY_task_oom_retries", "0")
