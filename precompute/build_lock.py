"""One builder at a time for an index: a lock that the system lets go when its holder dies, however it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from precompute.errors import BuildRunning

LOCK = ".lock"


@contextmanager
def build_lock(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise BuildRunning(
                f"{folder} is being built by another process (pid {holder}): wait for it to finish, or stop it and run "
                "this again, which goes on where it was"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
