"""An index that somebody published: in a repository of the Hub, at an address of a static server, or in a folder; and
which of these a person means."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from precompute.errors import NotPublished
from precompute.index.manifest_entries import FileEntry

Step = Callable[[float], None]  # takes the share of a file that has arrived since

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# What people copy from a browser, and how other tools write it.
_ON_HUB = re.compile(rf"(?:https://(?:huggingface\.co|hf\.co)|hf:/)/datasets/({REPOSITORY.pattern})(?:/tree/(.+?))?/?")


class PublishedIndex(Protocol):
    where: str  # for people, and the same at every try
    commit: str  # of a repository; "" elsewhere

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """A small file; None if there is none, ForeignIndex if it is longer."""

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        """A whole file, which is written to `folder` and has the size that the manifest lists. Nobody has looked at
        its contents yet. What an earlier try left there is gone on with where that can be done."""

    def close(self) -> None: ...


def open_published(asked: str, revision: str | None = None) -> PublishedIndex:
    """What a person means by owner/name, an address or a folder; a folder that is there goes before a repository."""
    repository, named_revision = asked, None
    if copied := _ON_HUB.fullmatch(asked):
        repository, named_revision = copied[1], copied[2]
    elif re.match(r"https?://", asked):
        _no_revision(asked, revision)
        from precompute.travel.on_web import IndexOnWeb

        return IndexOnWeb(asked)
    elif (folder := _folder(asked)).exists() or not REPOSITORY.fullmatch(asked):
        _no_revision(asked, revision)
        from precompute.travel.in_folder import IndexInFolder

        return IndexInFolder(folder)
    from precompute.travel.on_hub import IndexOnHub

    return IndexOnHub(repository, revision or named_revision)


def _folder(asked: str) -> Path:
    """NotPublished for what no folder can be called."""
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
