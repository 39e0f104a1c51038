"""What an index was made from, and which of its files are finished: manifest.json, replaced whole, never edited.
Checking the fields of one is for manifest_fields.py, opening the files it lists for index.py."""

import errno
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from precompute.errors import IndexMissing, ManifestDamaged, NewerFormat
from precompute.files import open_regular, write_beside
from precompute.index.manifest_fields import (
    FIELDS,
    FORMAT_VERSION,
    MODEL_NAME,
    FileEntry,
    NewerVersionError,
    fingerprint,
    parse_fields,
)
from precompute.index.origin import origin, proper_name
from precompute.shape import LENSES, PRESETS, Shape

__all__ = ["DEMO_NAME", "FORMAT_VERSION", "MANIFEST", "MODEL_NAME", "TOKENIZER", "FileEntry", "Manifest", "model_name"]

MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
DEMO_NAME = "smollm2-135m"  # the model that `demo` stands for

_MAX_BYTES = 1 << 24
_REFUSED = (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)


@dataclass(frozen=True)
class Manifest:
    model: str
    source: str  # what to pass to get the weights again
    revision: str
    weights_sha256: str
    tokenizer_sha256: str
    shape: Shape
    k: int
    pairs: int
    lenses: tuple[str, ...] = LENSES
    presets: tuple[str, ...] = PRESETS
    generation: int = 1
    vocabulary: FileEntry | None = None  # None only while the first file of an index is being made
    neighbours: FileEntry | None = None  # made after the first layer
    shards: Mapping[int, FileEntry] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    @cached_property
    def build(self) -> str:
        """Fingerprint of all that decides the contents of a shard; every file of the index carries it."""
        return fingerprint({f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def name(self) -> str:
        """What others call the model; "" if that is not known."""
        return proper_name(self.source, self.revision)

    @property
    def origin(self) -> str:
        """Where the weights come from, for people."""
        return origin(self.source, self.revision)

    @property
    def files(self) -> dict[str, FileEntry]:
        """What the manifest lists, by what it is called in messages."""
        layers = {f"layer {layer}": entry for layer, entry in self.shards.items()}
        others = {"the vocabulary": self.vocabulary, "the nearest tokens": self.neighbours}
        return {what: entry for what, entry in others.items() if entry} | layers

    def with_neighbours(self, entry: FileEntry) -> Self:
        return replace(self, neighbours=entry)

    def with_vocabulary(self, entry: FileEntry) -> Self:
        return replace(self, vocabulary=entry)

    def with_shard(self, layer: int, entry: FileEntry) -> Self:
        return replace(self, shards=dict(sorted({**self.shards, layer: entry}.items())))

    def to_json(self) -> bytes:
        """No times, no places: two equal builds have equal manifests."""
        content = asdict(self) | {"build": self.build}
        content["shards"] = {str(layer): asdict(entry) for layer, entry in sorted(self.shards.items())}
        ordered = {name: content[name] for name in FIELDS}
        return json.dumps(ordered, indent=1, allow_nan=False).encode("ascii") + b"\n"

    def save(self, folder: Path, name: str = MANIFEST) -> None:
        """Replace the manifest in one step: a reader sees the old one or the new one."""
        content = self.to_json()
        parse_fields(content)
        write_beside(folder / name, [content])

    @classmethod
    def load(cls, folder: Path, name: str = MANIFEST) -> Self:
        return cls.load_signed(folder, name)[0]

    @classmethod
    def load_signed(cls, folder: Path, name: str = MANIFEST) -> tuple[Self, tuple[int, ...]]:
        """The manifest, and the signature of the very file it was read from."""
        path, model = folder / name, folder.name
        try:
            with open_regular(path) as file:
                signature = _signature(os.fstat(file.fileno()))
                content = file.read(_MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise IndexMissing(f"no index in {folder}: run `lexiscope precompute {model}` to make it") from None
        except OSError as error:
            raise ManifestDamaged(
                f"{path} cannot be read: {error.strerror}. Check its permissions and the disk, then try again"
            ) from error
        try:
            if len(content) > _MAX_BYTES:
                raise ValueError(f"it is longer than {_MAX_BYTES} bytes")
            return cls(**parse_fields(content)), signature
        except NewerVersionError as error:
            raise NewerFormat(
                f"{path} has format version {error}; this Lexiscope reads versions up to {FORMAT_VERSION}. "
                f"Upgrade lexiscope, or build it anew elsewhere: `lexiscope precompute {model} --data DIR`"
            ) from None
        except ValueError as error:
            raise ManifestDamaged(
                f"{path} is damaged: {error}. Delete the folder {folder} and run `lexiscope precompute {model}` again"
            ) from None


def signature_of(folder: Path, name: str = MANIFEST) -> tuple[int, ...] | None:
    """Changes whenever the manifest does, for the price of a stat; None if there is no manifest.

    One that may not be looked at is there: reading it says what is wrong."""
    try:
        return _signature(os.stat(folder / name))
    except OSError as error:
        return (error.errno or 0,) if error.errno in _REFUSED else None


def model_name(asked: str) -> str:
    """The name of the index a person means by `demo`, a Hub id (owner/name) or a name."""
    return DEMO_NAME if asked == "demo" else re.sub(r"^[^/]*/(?=[^/]+$)", "", asked)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
