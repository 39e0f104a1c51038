"""Read an index in a folder of this machine, such as a folder that several people share."""

from collections.abc import Iterator
from pathlib import Path

from lexiscope.precompute.errors import ForeignIndex, NotPublished, SourceUnreachable
from lexiscope.precompute.files import open_regular
from lexiscope.precompute.index.manifest import MANIFEST, FileEntry
from lexiscope.precompute.travel.published import PIECE, Step, write_file


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
        return write_file(entry, folder, _pieces(self.folder / entry.file), step)


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the file piece by piece. An error in reading is raised here, because its message differs from that of an
    error in writing."""
    try:
        with open_regular(path) as file:
            while piece := file.read(PIECE):
                yield piece
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be read: {error.strerror}; check it, then run this again") from error
