"""Describe an index that somebody published: in a repository of the Hub, at an address of a static server, or in a
folder; and write the files that arrive from there."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from lexiscope.precompute.errors import AlteredFile, BuildError, DiskFull, SourceUnreachable
from lexiscope.precompute.files import FULL, PARTIAL
from lexiscope.precompute.index.manifest import FileEntry

Step = Callable[[float], None]  # takes the share of a file that has arrived since

PIECE = 1 << 20  # bytes of one read
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class PublishedIndex(Protocol):
    where: str  # the place, for people; the same at every try
    commit: str  # the commit of a repository; "" elsewhere

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Return a small file; return None if there is none, and raise ForeignIndex if it is longer than
        `most_bytes`."""

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        """Write a whole file to `folder` and return its path. The file has the size that the manifest lists; its
        contents are not checked yet."""


def write_file(entry: FileEntry, folder: Path, pieces: Iterable[bytes], step: Step) -> Path:
    """Write the pieces of a whole file into the folder; refuse more or fewer bytes than its manifest lists."""
    path, n_bytes = folder / f"{entry.sha256}{PARTIAL}", 0
    try:
        with open(os.open(path, _FLAGS, 0o666), "wb") as file:
            for piece in pieces:
                n_bytes += len(piece)
                if n_bytes > entry.bytes:
                    raise AlteredFile(
                        f"{entry.file} is longer than the {entry.bytes} bytes that its manifest lists: ask whoever "
                        "published it to do so again"
                    )
                file.write(piece)
                step(len(piece) / entry.bytes)
        if n_bytes < entry.bytes:
            raise SourceUnreachable(
                f"{entry.file} ends after {n_bytes} of the {entry.bytes} bytes that its manifest lists: it may still "
                "be on its way there; run this again later"
            )
    except (AlteredFile, SourceUnreachable):
        path.unlink(missing_ok=True)
        raise
    except OSError as error:
        if error.errno in FULL:
            path.unlink(missing_ok=True)  # the disk may be full, so the room is given back
            raise full_disk(folder, error) from error
        raise BuildError(f"cannot write {path}: {error.strerror}; check the folder and the disk") from error
    return path


def full_disk(folder: Path, error: OSError) -> DiskFull:
    return DiskFull(
        f"no space left in {folder} ({error.strerror}): free some and run the same command again; files that have "
        "arrived are kept"
    )
