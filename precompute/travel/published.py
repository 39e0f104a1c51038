"""Describe an index that somebody published: in a repository of the Hub, at an address of a static server, or in a
folder; and find out which of these a person means."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lexiscope.precompute.errors import NotPublished
from lexiscope.precompute.index.manifest import FileEntry

Step = Callable[[float], None]  # takes the share of a file that has arrived since

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# Prefixes that people copy from a browser, or that other tools write.
_ON_HUB = re.compile(rf"(?:https://(?:huggingface\.co|hf\.co)|hf:/)/datasets/({REPOSITORY.pattern})(?:/tree/(.+?))?/?")


class PublishedIndex(Protocol):
    where: str  # the place, for people; the same at every try
    commit: str  # the commit of a repository; "" elsewhere

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Return a small file; None if there is none, ForeignIndex if it is longer."""

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        """Write a whole file to `folder` and return its path. The file has the size that the manifest lists; its
        contents are not checked yet."""

    def close(self) -> None: ...


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
    """Return the path; raise NotPublished if it cannot be the name of a folder."""
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
