"""Make folders that are filled once and then only read: they are written beside, flushed, and renamed, by one process
at a time."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from lexiscope.precompute.errors import DiskFull
from lexiscope.precompute.files import FULL, flush


def make_folder_once(target: Path, fill: Callable[[Path], None]) -> Path:
    """Return the folder `target`, which `fill` fills if the folder does not exist yet.

    A kill at any moment leaves no target, and the next call starts again. A second process waits for the first.
    """
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{target.name}.lock")):
            return target if target.is_dir() else _make(target, fill)
    except Exception as error:
        raise_if_disk_full(error, target.parent)
        raise


def _make(target: Path, fill: Callable[[Path], None]) -> Path:
    prefix = f".{target.name}.part-"
    for left_by_a_kill in target.parent.glob(f"{prefix}*"):  # the lock is held here, so nobody else writes these
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        fill(folder)
        folder.chmod(0o755)  # mkdtemp makes it private; a server may run as another user
        for path in (*folder.iterdir(), folder):
            flush(path)
        folder.rename(target)
        flush(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def raise_if_disk_full(error: BaseException, folder: Path) -> None:
    """Raise DiskFull if a full disk caused `error`; writers outside Python keep the error's number only in the text."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, DiskFull):
        text = str(cause)
        known = isinstance(cause, OSError) and cause.errno in FULL
        if known or any(f"(os error {number})" in text or f"[Errno {number}]" in text for number in FULL):
            raise DiskFull(
                f"Writing to {folder} failed: {text}. Nothing incomplete was kept. "
                "Free some space, or choose a folder on a larger disk, and run the same command again."
            ) from error
        cause = cause.__cause__ or cause.__context__
