"""Read and write the manifest of an index, manifest.json: what the index was made from, and which of its files are
finished. It is replaced whole, never edited."""

import errno
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import MISSING, asdict
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lexiscope.precompute.errors import ManifestDamaged, NewerFormat, OldFormat
from lexiscope.precompute.files import (
    Stamp,
    canonical_json,
    damaged,
    open_regular,
    read_stamped,
    sha256_of,
    strict_json,
    unreadable,
    write_beside,
)
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.origin import MODEL_NAME, origin, proper_name
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import FORMAT
from lexiscope.precompute.rebuild_command import MANIFEST as MANIFEST
from lexiscope.precompute.rebuild_command import difference_name, rebuild_command, rebuild_command_for
from lexiscope.precompute.shape import HEAD_KINDS, LENSES, PRESETS, Shape

TOKENIZER = "tokenizer.json"
MOST_MANIFEST_BYTES = 1 << 24  # bytes of a manifest of any format
LARGEST_K, LARGEST_PAIRS = 1 << 16, 1 << 20
IDENTITY = (
    "format", "model", "revision", "weights_sha256", "tokenizer_sha256", "shape", "k", "pairs", "lenses", "presets",
    "kinds", "minus",
)  # fmt: skip
# Left out of the file while they are None or empty.
OPTIONAL = ("kinds", "minus", "embedding_change", "classifier", "parts")
OF_MODEL = "model"  # stands for the layer in `parts`, if a file is of the whole model

_PARTS_OF_MODEL = ("vocabulary", "neighbours", "classifier")  # parts that have fields of their own, as the lists have
_MOST_LAYERS_OR_HEADS = 1 << 12
_REFUSED = (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)

# The types of fields leave no room for names and numbers that no build would write.
LARGEST_SIZE = 1 << 24  # largest size in a shape: pages count up to it, so a hostile manifest must have none larger

PlainName = Annotated[str, Field(pattern=rf"\A{MODEL_NAME.pattern}\z")]  # no folders, nothing hidden
Sha256 = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
Number = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
# |tuned - base| / |base| of W_E, and of W_U if the base has one of its own
EmbeddingChange = dict[Literal["W_E", "W_U"], Annotated[float, Field(ge=0)]]


class StrictRecord(BaseModel):
    """A record that refuses fields it does not know, and values of another type than its fields have."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FileEntry(StrictRecord):
    """The manifest's entry for a file; fields that a newer program wrote are kept as they are."""

    model_config = ConfigDict(extra="allow")

    file: PlainName
    bytes: Annotated[int, Field(gt=0, lt=1 << 48)]
    sha256: Sha256

    def check_sum(self, folder: Path) -> None:
        """Raise ShardDamaged unless the file has the size and the checksum of the entry."""
        path = folder / self.file
        try:
            sha256 = sha256_of(path)
        except OSError as error:
            raise unreadable(path, error) from error
        if sha256 != self.sha256:
            raise damaged(path, "is damaged: its contents do not have the checksum that the manifest records")


class Minus(StrictRecord):
    """The two models of a difference: the base is subtracted from the tuned model."""

    tuned: PlainName  # the name that an index of the tuned model has
    model: PlainName  # the name that an index of the base has
    source: str  # the argument that gets the base's weights again
    revision: str
    weights_sha256: Sha256


class ClassifierEntry(FileEntry):
    """The manifest's entry for the file of a classification head, and how many vectors the head has."""

    labels: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(min_length=1, max_length=1 << 16)]
    dense: Annotated[int, Field(ge=0, le=LARGEST_SIZE)] = 0  # vectors of the layer before the labels; 0: no such layer
    # Whether a base with such a head was subtracted; False in a difference: the tuned model's head is shown.
    subtracted: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """Return how many vectors there are, by kind."""
        counts = zip(HEAD_KINDS, (len(self.labels), self.dense), strict=True)
        return {kind: count for kind, count in counts if count}


class SavedRecord(StrictRecord):
    """A record of what some files were made from, and which of them are finished. Its file is replaced whole, never
    edited."""

    file_name: ClassVar[str]

    @property
    def build(self) -> str:
        """Return the fingerprint of everything that decides the contents of the files; each file carries it."""
        raise NotImplementedError

    def to_json(self) -> bytes:
        raise NotImplementedError

    def save(self, folder: Path, name: str = "") -> None:
        """Replace the record in one step: a reader sees the old one or the new one."""
        content = self.to_json()
        self.parse(content)
        write_beside(folder / (name or self.file_name), [content])

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Parse a record; raise ValueError with a text that says what is wrong with it."""
        stated = strict_json(content)
        if not isinstance(stated, dict):
            raise ValueError("it is not an object")
        build = stated.pop("build", None)
        try:
            record = cls.model_validate_json(json.dumps(stated))
        except ValidationError as error:
            problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(str(part)[:40] for part in problem["loc"])
            what = problem["msg"].removeprefix("Value error, ")
            raise ValueError(f"{where}: {what}" if where else what) from None
        if record.build != build:
            raise ValueError("its fields do not have the fingerprint that it gives as build")
        return record


class Manifest(SavedRecord):
    """What an index was made from, and its files. Fields and parts that a newer program wrote are kept as they are."""

    file_name = MANIFEST
    model_config = ConfigDict(extra="allow")

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
    kinds: tuple[str, ...] | None = None  # None, and then not in the file: all except directions
    # The base, if the index is of a difference of these weights from it; else not in the file.
    minus: Minus | None = None
    # Only of a difference; None, and then not in the file, if not recorded.
    embedding_change: EmbeddingChange | None = None
    source: str  # the argument that gets the weights again
    generation: Number = 1
    reads_best: str | None = None  # the lens that reads best (`hubs.py`), once all layers are built
    vocabulary: FileEntry | None = None  # None only while the first file of an index is being made
    neighbours: FileEntry | None = None  # made after the first layer
    classifier: ClassifierEntry | None = None  # only of a checkpoint with a classification head; else not in the file
    shards: dict[int, FileEntry] = Field(default_factory=dict)  # files of the part `lists`, by layer
    # files of all other parts
    parts: dict[PlainName, dict[int | Literal["model"], FileEntry]] = Field(default_factory=dict)

    @field_validator("shards")
    @classmethod
    def _in_order(cls, shards: dict[int, FileEntry]) -> dict[int, FileEntry]:
        return dict(sorted(shards.items()))

    @field_validator("parts")
    @classmethod
    def _parts_in_order(cls, parts: dict[str, dict[Any, FileEntry]]) -> dict[str, dict[Any, FileEntry]]:
        return {
            name: dict(sorted(entries.items(), key=lambda item: (item[0] == OF_MODEL, item[0])))
            for name, entries in sorted(parts.items())
            if entries
        }

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
        if twice := [name for name in self.parts if name == "lists" or name in _PARTS_OF_MODEL]:
            raise ValueError(f"parts holds {twice[0]}, which has a field of its own")
        for layer in (piece.layer for piece in self.entries()):
            if layer is not None and not 0 <= layer < shape.n_layers:
                raise ValueError(f"it lists a layer {str(layer)[:20]}; there are layers 0 to {shape.n_layers - 1}")
        return self

    @cached_property
    def build(self) -> str:
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
        """Return the command that makes this index again, for people."""
        if self.minus is None:
            return rebuild_command(self.source)
        usual = difference_name(self.minus.tuned, self.minus.model)
        return rebuild_command(self.source, self.minus.source, "" if self.model == usual else self.model)

    @property
    def name(self) -> str:
        """Return the public name of the model; "" if it is not known."""
        return proper_name(self.source, self.revision)

    @property
    def origin(self) -> str:
        """Return where the weights come from, for people."""
        return origin(self.source, self.revision)

    def entries(self) -> dict[Piece, FileEntry]:
        """Return every file that the manifest lists, also those of parts that are not known here."""
        of_model = {name: getattr(self, name) for name in _PARTS_OF_MODEL}
        entries = {Piece(name): entry for name, entry in of_model.items() if entry}
        entries |= {Piece("lists", layer): entry for layer, entry in self.shards.items()}
        for name, of_part in self.parts.items():
            for layer, entry in of_part.items():
                entries[Piece(name, layer if isinstance(layer, int) else None)] = entry
        return entries

    @property
    def file_names(self) -> set[str]:
        return {entry.file for entry in self.entries().values()}

    def with_changes(self, **changes: Any) -> Self:
        """Return a manifest with other values of some fields."""
        values = {name: getattr(self, name) for name in type(self).model_fields} | (self.model_extra or {})
        return type(self)(**values | changes)

    def with_entries(self, entries: Mapping[Piece, FileEntry]) -> Self:
        """Return a manifest that lists these files in addition to its own."""
        return self._listing(self.entries() | dict(entries))

    def with_entry(self, piece: Piece, entry: FileEntry) -> Self:
        return self.with_entries({piece: entry})

    def only(self, pieces: Collection[Piece]) -> Self:
        """Return a manifest that lists only these pieces (files) of those it lists now."""
        return self._listing({piece: entry for piece, entry in self.entries().items() if piece in pieces})

    def _listing(self, entries: Mapping[Piece, FileEntry]) -> Self:
        fields: dict[str, Any] = {name: entries.get(Piece(name)) for name in _PARTS_OF_MODEL}
        fields |= {"shards": {}, "parts": {}}
        for piece, entry in entries.items():
            if piece.part == "lists":
                fields["shards"][piece.layer] = entry
            elif piece.part not in _PARTS_OF_MODEL:
                fields["parts"].setdefault(piece.part, {})[OF_MODEL if piece.layer is None else piece.layer] = entry
        return self.with_changes(**fields)

    def check_folder(self, folder: Path, asked: str) -> None:
        """Raise ManifestDamaged if the folder has another model's name; `asked` is the name that a user gave."""
        if self.model != folder.name:
            raise ManifestDamaged(
                f"{folder / MANIFEST} is of another model, {self.model}: rename the folder to that, or delete it and "
                f"run `lexiscope precompute {asked}` again"
            )

    def to_json(self) -> bytes:
        """Return the manifest as JSON for its file. It holds no times and no folders of this machine: two equal builds
        have equal manifests."""
        left_out = {name for name in OPTIONAL if getattr(self, name) in (None, {})}
        content = self.model_dump(exclude=left_out) | {"build": self.build}
        return json.dumps(content, indent=1, allow_nan=False).encode("ascii") + b"\n"

    @classmethod
    def parse(cls, content: bytes) -> Self:
        manifest, stated = super().parse(content), strict_json(content)
        if manifest.vocabulary is None:
            raise ValueError("it lists no vocabulary")
        if strict_json(manifest.to_json()) != stated | {"shape": _shape_defaults() | stated["shape"]}:
            raise ValueError("it has fields that a manifest does not have, or lacks some")
        return manifest

    @classmethod
    def load(cls, folder: Path, name: str = MANIFEST) -> Self:
        return cls.load_stamped(folder, name)[0]

    @classmethod
    def load_stamped(cls, folder: Path, name: str = MANIFEST) -> tuple[Self, Stamp | None]:
        """Return the manifest, and the stamp of the very file it was read from."""
        path, model = folder / name, folder.name
        missing = f"no index in {folder}: run `lexiscope precompute {model}` to make it"
        try:
            content, stamp = read_stamped(path, MOST_MANIFEST_BYTES, missing)
            check_format(path, content)
            return cls.parse(content), stamp
        except ValueError as error:
            raise ManifestDamaged(
                f"{path} is damaged: {error}. Delete the folder {folder} and run `lexiscope precompute {model}` again"
            ) from None


def has_manifest(folder: Path) -> bool:
    """Return True if the folder has a manifest, also if we may not read it."""
    try:
        os.stat(folder / MANIFEST)
    except OSError as error:
        return error.errno in _REFUSED
    return True


def check_format(path: Path, content: bytes) -> None:
    """Raise NewerFormat or OldFormat if the manifest is of another format, whatever else it holds."""
    fields = strict_json(content)
    if not isinstance(fields, dict):
        return
    version = fields.get("format")
    if type(version) is int and version > FORMAT:
        raise NewerFormat(
            f"{path} has format {str(version)[:20]}; this Lexiscope reads format {FORMAT}. Upgrade lexiscope, or "
            f"build it anew elsewhere: `lexiscope precompute {path.parent.name} --data DIR`"
        )
    if is_old_format(fields):
        raise OldFormat(
            f"{path} was made by an older Lexiscope and has format {ascii(version or fields['format_version'])[:20]}; "
            f"this one reads format {FORMAT}. `{rebuild_command_for(path.parent)}` builds it anew in its place"
        )


def is_old_format(fields: Mapping[str, Any]) -> bool:
    """Return True for the fields of an older format's manifest; format 1 has another name for the field `format`."""
    version = fields.get("format")
    return (type(version) is int and 1 <= version < FORMAT) or (version is None and "format_version" in fields)


def read_old_fields(folder: Path) -> Mapping[str, Any]:
    """Return the fields of a manifest of an older format, unchecked; none if there is no such manifest."""
    try:
        with open_regular(folder / MANIFEST) as file:
            fields = strict_json(file.read(MOST_MANIFEST_BYTES))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) and is_old_format(fields) else {}


def _shape_defaults() -> dict[str, Any]:
    """Return, as JSON, the default values of those fields of a shape that older manifests do not have."""
    defaults = {field.name: field.default for field in dataclass_fields(Shape) if field.default is not MISSING}
    return dict(strict_json(canonical_json(defaults)))


def _in_order(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the known names that are in `names`, in the order of `known`."""
    return tuple(name for name in known if name in names)
