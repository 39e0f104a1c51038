"""Receive files of an index: each is fetched to a folder that no reader uses, compared with its checksum, opened,
flushed, and only then gets its name. The folder stays, so that a second try fetches only what is missing."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lexiscope.precompute.build.build_folder import ARRIVING
from lexiscope.precompute.errors import AlteredFile, BuildError, ForeignIndex, ShardDamaged
from lexiscope.precompute.files import FULL, flush, sha256_of, write_beside
from lexiscope.precompute.index.lab_record import LAB, MOST_LAB_BYTES, LabRecord
from lexiscope.precompute.index.manifest import TOKENIZER, FileEntry, Manifest
from lexiscope.precompute.travel.published import PublishedIndex, Step, full_disk

LARGEST_TOKENIZER = 1 << 28  # bytes

Entry = TypeVar("Entry", bound=FileEntry)


class Arrivals:
    def __init__(self, published: PublishedIndex, folder: Path) -> None:
        self.published = published
        self.folder = folder
        self.arriving = folder / ARRIVING
        try:
            if self.arriving.is_symlink() or self.arriving.is_file():
                self.arriving.unlink()  # it may be a link that leads elsewhere
            self.arriving.mkdir(exist_ok=True)
        except OSError as error:
            if error.errno in FULL:
                raise full_disk(folder, error) from error
            raise BuildError(f"cannot write to {folder}: {error.strerror}; check its permissions") from error

    def take(self, entry: Entry, name: str, open_file: Callable[[Path], object], step: Step) -> Entry:
        """Fetch a file and give it its name in the index; return the entry that the manifest is to have."""
        arrived = self.published.fetch(entry, self.arriving, step)
        if sha256_of(arrived) != entry.sha256:
            arrived.unlink()
            raise AlteredFile(
                f"{entry.file} from {self.published.where} does not have the checksum that its manifest lists: nothing "
                "of it was kept. Try again, then ask whoever published it to do so again"
            )
        try:
            open_file(arrived)
        except ShardDamaged:
            arrived.unlink()
            raise ForeignIndex(
                f"{entry.file} from {self.published.where} is as its manifest lists it, but no file of this index: it "
                "belongs to another build, or was made to mislead. Nothing of it was kept"
            ) from None
        try:
            flush(arrived)
        except OSError as error:
            if error.errno in FULL:
                raise full_disk(self.arriving, error) from error
            raise
        os.replace(arrived, self.folder / name)
        flush(self.folder)
        return entry.model_copy(update={"file": name})

    def take_tokenizer(self, manifest: Manifest) -> Path:
        """Return the path of the model's tokenizer, which is in the index already or among the files that arrive."""
        for folder in (self.folder, self.arriving):
            if _has_sum(folder / TOKENIZER, manifest.tokenizer_sha256):
                return folder / TOKENIZER
        content = self.published.read(TOKENIZER, LARGEST_TOKENIZER)
        if content is None or hashlib.sha256(content).hexdigest() != manifest.tokenizer_sha256:
            raise AlteredFile(
                f"{self.published.where} does not have the {TOKENIZER} that its manifest lists: ask whoever published "
                "it to do so again"
            )
        write_beside(self.arriving / TOKENIZER, [content])
        return self.arriving / TOKENIZER

    def take_lab(self, manifest: Manifest) -> str:
        """Take the record of the paper's measurements (lab.json), unless it is damaged or of other weights: then return
        a message that says so."""
        content = self.published.read(LAB, MOST_LAB_BYTES)
        if content is None:
            return ""
        write_beside(self.arriving / LAB, [content])
        try:
            record = LabRecord.load(self.arriving)
        except ShardDamaged:
            return f"{LAB} from {self.published.where} is damaged, and left out"
        if record is None or not record.is_of(manifest):
            return f"{LAB} from {self.published.where} is of other weights, and left out"
        write_beside(self.folder / LAB, [content])
        return ""


def _has_sum(path: Path, sha256: str) -> bool:
    try:
        return sha256_of(path) == sha256
    except OSError:
        return False
