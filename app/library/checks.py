"""Check the files that are served: files that changed on disk are compared with their checksums, and visitors read
errors without the folders of this machine."""

import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from lexiscope.precompute.errors import IndexFault, ShardUnreadable
from lexiscope.precompute.files import Stamp
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import FileEntry


def for_visitors(error: object, data: Path) -> str:
    """Return the text of an error with file names relative to the data folder, because where that folder is on the
    machine is private. The log of the server and the command line show whole paths."""
    folder = re.escape(str(data))
    return re.sub(rf"(?<![\w./-]){folder}/", "", str(error)) if data != Path() else str(error)


class Checksums:
    """Compare files that were modified since they were first opened with their checksums. Until a file is known to be
    the one that was built, its layer is left out. A thread computes checksums, because large files take seconds."""

    def __init__(self) -> None:
        self._trusted: dict[tuple[Path, str], Stamp | None] = {}  # the stamp of a good file, by path and checksum
        self._checks: dict[tuple[Path, str], tuple[Stamp | None, Future[None]]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checksums")

    def find_errors(self, index: Index) -> tuple[dict[int, IndexFault], tuple[Future[None], ...]]:
        """Return an error for each layer whose file is damaged or not yet checked, and the checks that are still
        running."""
        errors: dict[int, IndexFault] = {}
        running: list[Future[None]] = []
        for layer in index.layers:
            entry = index.manifest.shards[layer]
            check = self._check(index.folder, entry, index.stamps[layer])
            if check is None:
                continue
            if not check.done():
                running.append(check)
                path = index.folder / entry.file
                errors[layer] = ShardUnreadable(
                    f"{path} was touched while it was served and is being checked: ask again"
                )
            elif isinstance(error := check.exception(), IndexFault):
                errors[layer] = error.bare()
        return errors, tuple(running)

    def _check(self, folder: Path, entry: FileEntry, stamp: Stamp | None) -> Future[None] | None:
        """Return the check of a file, started if need be; None if the file is right or has not changed since it was
        first opened."""
        key = folder / entry.file, entry.sha256
        if self._trusted.setdefault(key, stamp) == stamp:
            return None
        checked, check = self._checks.get(key, (None, None))
        if check is None or checked != stamp or _was_unreadable(check):
            check = self._thread.submit(entry.check_sum, folder)
            self._checks[key] = stamp, check
        if check.done() and check.exception() is None:
            self._trusted[key] = stamp
            return None
        return check


def _was_unreadable(check: Future[None]) -> bool:
    """Return True if the system did not let the check read the file; another try may succeed."""
    return check.done() and isinstance(check.exception(), ShardUnreadable)
