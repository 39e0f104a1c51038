"""Describe an index that somebody published: in a repository of the Hub, at an address of a static server, or in a
folder; find out which of these a person means, and write the files that arrive from there."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from lexiscope.precompute.errors import AlteredFile, BuildError, DiskFull, NotPublished, SourceUnreachable
from lexiscope.precompute.files import FULL, PARTIAL
from lexiscope.precompute.index.manifest import FileEntry

Step = Callable[[float], None]  # takes the share of a file that has arrived since

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# Prefixes that people copy from a browser, or that other tools write.
_ON_HUB = re.compile(rf"(?:https://(?:huggingface\.co|hf\.co)|hf:/)/datasets/({REPOSITORY.pattern})(?:/tree/(.+?))?/?")

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


def open_published(asked: str, revision: str | None = None) -> PublishedIndex:
    """Open the index that a person means by owner/name, an address or a folder; an existing folder goes before a
    repository."""
    repository, named_revision = asked, None
    if copied := _ON_HUB.fullmatch(asked):
        repository, named_revision = copied[1], copied[2]
    elif re.match(r"https?://", asked):
        _no_revision(asked, revision)
        from lexiscope.precompute.travel.on_web import IndexOnWeb

        return IndexOnWeb(asked)
    elif (folder := _folder(asked)).exists() or not REPOSITORY.fullmatch(asked):
        _no_revision(asked, revision)
        from lexiscope.precompute.travel.in_folder import IndexInFolder

        return IndexInFolder(folder)
    from lexiscope.precompute.travel.on_hub import IndexOnHub

    return IndexOnHub(repository, revision or named_revision)


def _folder(asked: str) -> Path:
    """Return the path of the folder that a person means; raise NotPublished if the text cannot be the name of a
    folder."""
    try:
        folder = Path(asked).expanduser()
        folder.exists()
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NotPublished(
            f"{asked[:80]} cannot be looked for ({why}): give a folder, an address or owner/name"
        ) from None
    return folder


def _no_revision(asked: str, revision: str | None) -> None:
    if revision is not None:
        raise NotPublished(f"--revision {revision}: {asked} is no repository of the Hub (owner/name) and has none")


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
