"""One builder at a time for an index: a lock that the system lets go when its holder dies, however it dies.
What is built under it is for others."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from precompute.errors import BuildError, BuildRunning

LOCK = ".lock"  # holds its holder's pid; empty while nobody builds, and never removed: another may be waiting on it

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no link is followed


@contextmanager
def build_lock(folder: Path) -> Iterator[None]:
    with _open(folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "unknown"
            raise BuildRunning(
                f"{folder} is being built by another process (pid {holder}): wait for it to finish, or stop it and run "
                "this again, which goes on where it was"
            ) from None
        except OSError as error:
            raise BuildError(f"cannot lock {folder / LOCK}: {error.strerror}; use a folder on a local disk") from error
        _write(file, f"{os.getpid()}\n")
        try:
            yield
        finally:
            _write(file, "")


def _open(folder: Path) -> TextIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, _FLAGS, 0o666)
    except OSError as error:
        why = error.strerror or str(error)
        raise BuildError(f"cannot build in {folder}: {why} ({error.filename}); choose another --data DIR") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BuildError(f"cannot lock {folder / LOCK}: it is not a regular file; remove it and run this again")
    file = open(descriptor, "a+")  # noqa: SIM115 (the caller closes it)
    file.seek(0)
    return file


def _write(file: TextIO, text: str) -> None:
    """Replace what the file says, in as few steps as there are; a full disk is no reason to stop here."""
    try:
        file.truncate(0)
        file.write(text)
        file.flush()
    except OSError:
        pass
