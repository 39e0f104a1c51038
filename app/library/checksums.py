"""Checks files of an index that were touched while they were served, by their checksums, in a thread."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from lexiscope.precompute.errors import IndexFault, ShardUnreadable
from lexiscope.precompute.files import Stamp
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest_entries import FileEntry


def _was_refused(check: Future[None]) -> bool:
    """Whether the system did not let the file be read: it may at the next try."""
    return check.done() and isinstance(check.exception(), ShardUnreadable)


class Checksums:
    """A file that was touched since it was first opened must prove that it is still the one that was built.

    Until it has, its layer is left out. Hashing takes seconds for large files, so a thread does it."""

    def __init__(self) -> None:
        self._trusted: dict[tuple[Path, str], Stamp | None] = {}  # by path and sum: as the file was when it was right
        self._checks: dict[tuple[Path, str], tuple[Stamp | None, Future[None]]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checksums")

    def faults(self, index: Index) -> tuple[dict[int, IndexFault], tuple[Future[None], ...]]:
        """Faults of the layers whose files are not known to be right, and the checks that are still running."""
        faults: dict[int, IndexFault] = {}
        running: list[Future[None]] = []
        for layer in index.layers:
            entry = index.manifest.shards[layer]
            check = self._check(index.folder, entry, index.stamps[layer])
            if check is None:
                continue
            if not check.done():
                running.append(check)
                path = index.folder / entry.file
                faults[layer] = ShardUnreadable(
                    f"{path} was touched while it was served and is being checked: ask again"
                )
            elif isinstance(fault := check.exception(), IndexFault):
                faults[layer] = fault.bare()
        return faults, tuple(running)

    def _check(self, folder: Path, entry: FileEntry, stamp: Stamp | None) -> Future[None] | None:
        """The check of a file, started if need be; None if the file is as it was when it was first opened, or right."""
        key = folder / entry.file, entry.sha256
        if self._trusted.setdefault(key, stamp) == stamp:
            return None
        checked, check = self._checks.get(key, (None, None))
        if check is None or checked != stamp or _was_refused(check):
            check = self._thread.submit(entry.check_sum, folder)
            self._checks[key] = stamp, check
        if check.done() and check.exception() is None:
            self._trusted[key] = stamp
            return None
        return check
