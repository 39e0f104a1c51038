"""Share folders among the processes of one test run: the first process that needs one makes it, the others wait."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def make_once_per_run(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder of its own below that of the run
        base = base.parent
    folder, done = base / name, base / f"{name}.done"
    with FileLock(base / f"{name}.lock"):
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
