"""An index in a folder of this machine, such as one that several share."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from precompute.errors import ForeignIndex, NotPublished, SourceUnreachable
from precompute.files import open_regular
from precompute.index.manifest import MANIFEST
from precompute.index.manifest_entries import FileEntry
from precompute.travel.partial_file import PIECE, PartialFile
from precompute.travel.published import Step


class IndexInFolder:
    commit = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.parent if folder.name == MANIFEST else folder
        self.where = str(self.folder)
        if not self.folder.is_dir():
            raise NotPublished(
                f"{self.where} is neither a folder here, nor an address (https://...), nor a repository of the Hub "
                "(owner/name)"
            )

    def read(self, name: str, most_bytes: int) -> bytes | None:
        try:
            with open_regular(self.folder / name) as file:
                content = file.read(most_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnreachable(f"{self.folder / name} cannot be read: {error.strerror}") from error
        if len(content) > most_bytes:
            raise ForeignIndex(f"{self.folder / name} is longer than {most_bytes} bytes: it is no file of an index")
        return content

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        partial = PartialFile(entry, folder)
        source = self.folder / entry.file
        try:
            with open_regular(source) as file:
                start = file.seek(partial.n_bytes)
                step(start / entry.bytes)
                partial.write(start, _pieces(file, source), step)
        except OSError as error:
            raise SourceUnreachable(
                f"{source} cannot be read: {error.strerror}; check it, then run this again"
            ) from error
        if not partial.is_whole:
            raise SourceUnreachable(
                f"{source} is shorter than its manifest says: it may still be copied there; try later"
            )
        return partial.path

    def close(self) -> None:
        pass


def _pieces(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Reading fails in words of its own, so that writing can fail in others."""
    while True:
        try:
            piece = file.read(PIECE)
        except OSError as error:
            raise SourceUnreachable(
                f"{path} cannot be read: {error.strerror}; check it, then run this again"
            ) from error
        if not piece:
            return
        yield piece
