"""Allow one builder at a time for an index: a lock that the system releases when its holder dies, however it dies."""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lexiscope.precompute.errors import BuildError, BuildRunning

# Holds the pid of its holder; empty while nobody builds, and never removed: another builder may be waiting on it.
LOCK = ".lock"


@contextmanager
def build_lock(folder: Path) -> Iterator[None]:
    path = folder / LOCK
    _prepare(path)
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise BuildRunning(
            f"{folder} is being built by another process (pid {_holder(path)}): wait for it to finish, or stop it and "
            "run this again, which goes on where it was"
        ) from None
    except OSError as error:
        raise BuildError(f"cannot lock {path}: {error.strerror}; use a folder on a local disk") from error
    try:
        _write(path, f"{os.getpid()}\n")
        yield
    finally:
        _write(path, "")
        lock.release()


def _prepare(path: Path) -> None:
    """Make the folder; raise BuildError if the lock is no plain file, because a link might lead to somebody else's
    file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_regular = not os.path.lexists(path) or stat.S_ISREG(path.lstat().st_mode)
    except OSError as error:
        why = f"{error.strerror or error} ({error.filename})"
        raise BuildError(f"cannot build in {path.parent}: {why}; choose another --data DIR") from error
    if not is_regular:
        raise BuildError(f"cannot lock {path}: it is not a regular file; remove it and run this again")


def _holder(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip() or "unknown"
    return "unknown"


def _write(path: Path, text: str) -> None:
    """Write the text; ignore a full disk, or a folder that was removed meanwhile."""
    with contextlib.suppress(OSError):
        path.write_text(text)
