"""A file that arrives piece by piece, and can be gone on with after a kill. Its name is what it will contain, so that
pieces of two files never mix; nobody but its writer looks at it."""

import os
from collections.abc import Iterable
from pathlib import Path

from precompute.errors import AlteredFile, BuildError, DiskFull
from precompute.files import FULL, PARTIAL
from precompute.index.manifest_entries import FileEntry
from precompute.travel.published import Step

PIECE = 1 << 20  # bytes


class PartialFile:
    def __init__(self, entry: FileEntry, folder: Path) -> None:
        self.path = folder / f"{entry.sha256}{PARTIAL}"
        self._entry = entry

    @property
    def n_bytes(self) -> int:
        """How much has arrived; what is longer than the whole file is nothing."""
        try:
            n_bytes = self.path.lstat().st_size
        except FileNotFoundError:
            return 0
        return n_bytes if n_bytes <= self._entry.bytes else 0

    @property
    def is_whole(self) -> bool:
        return self.n_bytes == self._entry.bytes

    def write(self, start: int, pieces: Iterable[bytes], step: Step) -> None:
        """Put pieces behind the first `start` bytes; AlteredFile for more than the file is to have."""
        try:
            with open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb") as file:
                file.truncate(start)
                file.seek(start)
                for piece in pieces:
                    if file.tell() + len(piece) > self._entry.bytes:
                        raise AlteredFile(
                            f"{self._entry.file} is longer than the {self._entry.bytes} bytes that its manifest lists: "
                            "ask whoever published it to do so again"
                        )
                    file.write(piece)
                    file.flush()  # what a kill leaves need not arrive again
                    step(len(piece) / self._entry.bytes)
        except OSError as error:
            if error.errno in FULL:
                self.remove()  # the room that it takes may be all there is
                raise full_disk(self.path.parent, error) from error
            raise BuildError(f"cannot write {self.path}: {error.strerror}; check the folder and the disk") from error
        except AlteredFile:
            self.remove()
            raise

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def full_disk(folder: Path, error: OSError) -> DiskFull:
    return DiskFull(
        f"no space left in {folder} ({error.strerror}): free some and run the same command again; files that have "
        "arrived are kept"
    )
