"""What an index was made from, and which of its files are finished: manifest.json, replaced whole, never edited."""

import errno
import hashlib
import json
import os
from dataclasses import MISSING, asdict
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from lexiscope.precompute.errors import ManifestDamaged
from lexiscope.precompute.files import Stamp, canonical_json, read_stamped, strict_json, write_beside
from lexiscope.precompute.index.manifest_entries import (
    LARGEST_SIZE,
    ClassifierEntry,
    EmbeddingChange,
    FileEntry,
    Minus,
    Number,
    PlainName,
    Sha256,
    StrictRecord,
)
from lexiscope.precompute.index.manifest_format import MAX_BYTES, check_format
from lexiscope.precompute.index.origin import origin, proper_name
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import FORMAT
from lexiscope.precompute.rebuild_command import MANIFEST as MANIFEST
from lexiscope.precompute.rebuild_command import difference_name, rebuild_command
from lexiscope.precompute.shape import LENSES, PRESETS, Shape

TOKENIZER = "tokenizer.json"
LARGEST_K, LARGEST_PAIRS = 1 << 16, 1 << 20
IDENTITY = (
    "format", "model", "revision", "weights_sha256", "tokenizer_sha256", "shape", "k", "pairs", "lenses", "presets",
    "kinds", "minus",
)  # fmt: skip
OPTIONAL = ("kinds", "minus", "embedding_change", "classifier")  # not in the file while they are None

_MOST_LAYERS_OR_HEADS = 1 << 12
_REFUSED = (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)


class Manifest(StrictRecord):
    format: Literal[3] = FORMAT
    model: PlainName
    revision: str  # commit of the weights on the Hub, or empty
    weights_sha256: Sha256
    tokenizer_sha256: Sha256
    shape: Shape
    k: Annotated[int, Field(ge=1, le=LARGEST_K)]
    pairs: Annotated[int, Field(ge=0, le=LARGEST_PAIRS)]  # 0: none are stored
    lenses: tuple[str, ...] = LENSES
    presets: tuple[str, ...] = PRESETS
    kinds: tuple[str, ...] | None = None  # None, and then not in the file: all but directions
    minus: Minus | None = None  # of a difference, whose other weights are the tuned model's; else not in the file
    embedding_change: EmbeddingChange | None = None  # of a difference; None, and not in the file: not recorded
    source: str  # what to pass to get the weights again
    generation: Number = 1
    reads_best: str | None = None  # the lens that reads best (`hubs.py`), once all layers are there
    vocabulary: FileEntry | None = None  # None only while the first file of an index is being made
    neighbours: FileEntry | None = None  # made after the first layer
    classifier: ClassifierEntry | None = None  # of a checkpoint with a classification head; else not in the file
    shards: dict[int, FileEntry] = Field(default_factory=dict)

    @field_validator("shards")
    @classmethod
    def _in_order(cls, shards: dict[int, FileEntry]) -> dict[int, FileEntry]:
        return dict(sorted(shards.items()))

    @model_validator(mode="after")
    def _check(self) -> Self:
        shape = self.shape
        for name, value in asdict(shape).items():
            most = _MOST_LAYERS_OR_HEADS if name.startswith("n_") else LARGEST_SIZE
            if type(value) is int and not 1 <= value <= most:
                raise ValueError(f"shape.{name} is {str(value)[:40]}, not a number from 1 to {most}")
        if shape.n_heads % shape.n_kv_heads:
            raise ValueError(f"{shape.n_heads} heads cannot share the keys and values of {shape.n_kv_heads}")
        if self.k > shape.d_vocab:
            raise ValueError(f"k is {self.k}, more than the {shape.d_vocab} tokens there are")
        if self.presets != PRESETS:
            raise ValueError(f"presets are not {', '.join(PRESETS)}")
        if not self.lenses or self.lenses != _in_order(self.lenses, LENSES):
            raise ValueError(f"lenses are not some of {', '.join(LENSES)}, in this order")
        if self.kinds is not None and (not self.kinds or self.kinds != _in_order(self.kinds, shape.kinds)):
            raise ValueError(f"kinds are not some of {', '.join(shape.kinds)}, in this order")
        if self.reads_best not in (None, *self.lenses):
            raise ValueError(f"reads_best is not one of {', '.join(self.lenses)}")
        if self.embedding_change is not None and self.minus is None:
            raise ValueError("embedding_change is of a difference, and minus is left out")
        if self.kinds == shape.weight_kinds:
            raise ValueError("kinds are all there are but directions, and then the field is left out")
        for layer in self.shards:
            if not 0 <= layer < shape.n_layers:
                raise ValueError(f"it lists a layer {str(layer)[:20]}; there are layers 0 to {shape.n_layers - 1}")
        return self

    @cached_property
    def build(self) -> str:
        """Fingerprint of all that decides the contents of a shard; every file of the index carries it."""
        identity = {name: getattr(self, name) for name in IDENTITY} | {"shape": self.shape.identity()}
        if self.kinds is None:
            del identity["kinds"]
        del identity["minus"]
        if self.minus:
            identity["minus"] = {"revision": self.minus.revision, "weights_sha256": self.minus.weights_sha256}
        return hashlib.sha256(canonical_json(identity)).hexdigest()[:16]

    @cached_property
    def stored(self) -> Stored:
        kinds = self.kinds or self.shape.weight_kinds
        return Stored(self.shape, kinds, self.lenses, self.k, self.pairs, difference=self.minus is not None)

    @property
    def rebuild_command(self) -> str:
        """What makes this index again, for people."""
        if self.minus is None:
            return rebuild_command(self.source)
        usual = difference_name(self.minus.tuned, self.minus.model)
        return rebuild_command(self.source, self.minus.source, "" if self.model == usual else self.model)

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
        others["the classification head"] = self.classifier
        return {what: entry for what, entry in others.items() if entry} | layers

    def with_changes(self, **changes: Any) -> Self:
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def with_shard(self, layer: int, entry: FileEntry) -> Self:
        return self.with_changes(shards={**self.shards, layer: entry})

    def check_folder(self, folder: Path, asked: str) -> None:
        """ManifestDamaged if the folder it was read from has another model's name; `asked` is what a user called it."""
        if self.model != folder.name:
            raise ManifestDamaged(
                f"{folder / MANIFEST} is of another model, {self.model}: rename the folder to that, or delete it and "
                f"run `lexiscope precompute {asked}` again"
            )

    def to_json(self) -> bytes:
        """No times, no places: two equal builds have equal manifests."""
        left_out = {name for name in OPTIONAL if getattr(self, name) is None}
        content = self.model_dump(exclude=left_out) | {"build": self.build}
        return json.dumps(content, indent=1, allow_nan=False).encode("ascii") + b"\n"

    def save(self, folder: Path, name: str = MANIFEST) -> None:
        """Replace the manifest in one step: a reader sees the old one or the new one."""
        content = self.to_json()
        self.parse(content)
        write_beside(folder / name, [content])

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """ValueError says what is wrong with a manifest."""
        stated = strict_json(content)
        if not isinstance(stated, dict):
            raise ValueError("it is not an object")
        build = stated.pop("build", None)
        try:
            manifest = cls.model_validate_json(canonical_json(stated))
        except ValidationError as error:
            raise ValueError(_first_problem(error)) from None
        if manifest.vocabulary is None:
            raise ValueError("it lists no vocabulary")
        if manifest.build != build:
            raise ValueError("its fields do not have the fingerprint that it gives as build")
        complete = {**stated, "shape": _shape_defaults() | stated["shape"], "build": build}
        if strict_json(manifest.to_json()) != complete:
            raise ValueError("it has fields that a manifest does not have, or lacks some")
        return manifest

    @classmethod
    def load(cls, folder: Path, name: str = MANIFEST) -> Self:
        return cls.load_stamped(folder, name)[0]

    @classmethod
    def load_stamped(cls, folder: Path, name: str = MANIFEST) -> tuple[Self, Stamp | None]:
        """The manifest, and the stamp of the very file it was read from."""
        path, model = folder / name, folder.name
        missing = f"no index in {folder}: run `lexiscope precompute {model}` to make it"
        try:
            content, stamp = read_stamped(path, MAX_BYTES, missing)
            check_format(path, content)
            return cls.parse(content), stamp
        except ValueError as error:
            raise ManifestDamaged(
                f"{path} is damaged: {error}. Delete the folder {folder} and run `lexiscope precompute {model}` again"
            ) from None


def has_manifest(folder: Path) -> bool:
    """One that may not be looked at is there: reading it says what is wrong."""
    try:
        os.stat(folder / MANIFEST)
    except OSError as error:
        return error.errno in _REFUSED
    return True


def _shape_defaults() -> dict[str, Any]:
    """What a shape has, as JSON, where a manifest that is older than a field does not say it."""
    defaults = {field.name: field.default for field in dataclass_fields(Shape) if field.default is not MISSING}
    return dict(strict_json(canonical_json(defaults)))


def _in_order(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the known names that are given, in the order of the known ones."""
    return tuple(name for name in known if name in names)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part)[:40] for part in problem["loc"])
    what = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {what}" if where else what
