"""Record what a comparison of two models was made from, which of its files are finished, and which arrays these hold.

comparison.json is replaced whole, never edited; docs/format.md describes the same."""

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from lexiscope.precompute.errors import ManifestDamaged, NewerFormat
from lexiscope.precompute.files import Stamp, canonical_json, read_stamped, strict_json
from lexiscope.precompute.index.layout import SUFFIX, Layout, resolve
from lexiscope.precompute.index.manifest import FileEntry, Minus, Number, PlainName, SavedRecord, Sha256, StrictRecord
from lexiscope.precompute.rebuild_command import COMPARISON, COMPARISONS, compare_command_for
from lexiscope.precompute.shape import DIRECTION_KINDS, MOST_LAYERS, SIDES

COMPARISON_FORMAT: Final = 1
MATCHES = 10  # matches of every vector, or as many vectors as the other model has
KERNEL = "kernel"  # the file of K_AB

# Array -> (type, dimensions). A and B are the two models, m the fewer of their layers.
PER_KIND = {
    "similarity": ("float32", "L_A, L_B"),
    "assignment": ("uint16", "m, 2"),
    "a.layer": ("uint16", "n_A, matches_A"),
    "a.index": ("uint32", "n_A, matches_A"),
    "a.r": ("float32", "n_A, matches_A"),
    "b.layer": ("uint16", "n_B, matches_B"),
    "b.index": ("uint32", "n_B, matches_B"),
    "b.r": ("float32", "n_B, matches_B"),
}
IN_FEATURE_SPACE = {"feature_space": ("float32", "L_A, L_B"), "feature_assignment": ("uint16", "m, 2")}
KERNEL_ARRAYS = {"kernel": ("float32", "d_A, d_B")}

_MOST_COMPARISON_BYTES = 1 << 20


class ComparedModel(StrictRecord):
    model: PlainName
    source: str  # the argument that gets the weights again
    revision: str
    weights_sha256: Sha256
    minus: Minus | None = None  # the base, if the model is a difference of these weights from it; else not in the file
    tokenizer_sha256: Sha256
    n_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)]
    d_model: Number
    kinds: dict[str, Number]  # kind -> how many vectors of it a layer has

    @model_validator(mode="after")
    def _check(self) -> Self:
        if [*self.kinds] != [kind for kind in SIDES if kind in self.kinds]:
            raise ValueError(f"kinds are not some of {', '.join(SIDES)}, in this order")
        return self


class ComparisonRecord(SavedRecord):
    file_name = COMPARISON

    format: Literal[1] = COMPARISON_FORMAT
    a: ComparedModel
    b: ComparedModel
    tokens: Number  # tokens that both models have, from which all numbers are made
    matched: Literal["ids", "text"]  # how tokens of one model were found in the other
    # By reads, writes, feature_space: mean |r| of random vectors; empty, and then not in the file, if not known.
    chance: dict[Literal["reads", "writes", "feature_space"], Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict
    )
    files: dict[str, FileEntry] = Field(default_factory=dict)  # finished files, by kind or `kernel`

    @model_validator(mode="after")
    def _check(self) -> Self:
        if unknown := [name for name in self.files if name not in (*self.kinds, KERNEL)]:
            raise ValueError(f"it lists a file of {unknown[0][:40]!a}; there are {', '.join((*self.kinds, KERNEL))}")
        return self

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds that both models have."""
        return tuple(kind for kind in self.a.kinds if kind in self.b.kinds)

    @property
    def has_feature_space(self) -> bool:
        return self.a.d_model == self.b.d_model

    @cached_property
    def build(self) -> str:
        without: Any = {"source": True, "minus": {"source", "tuned", "model"}}
        others: Any = {"chance": True, "files": True, "a": without, "b": without}
        identity = self.model_dump(exclude=others, exclude_none=True)
        for side in ("a", "b"):  # the number of directions follows from the other kinds
            counts = identity[side]["kinds"].items()
            identity[side]["kinds"] = {kind: count for kind, count in counts if kind not in DIRECTION_KINDS}
        return hashlib.sha256(canonical_json(identity)).hexdigest()[:16]

    @property
    def metadata(self) -> dict[str, str]:
        """Return the metadata that every file of the comparison has."""
        return {"a": self.a.model, "b": self.b.model, "build": self.build, "format": str(COMPARISON_FORMAT)}

    def layout(self, name: str) -> Layout:
        """Return the arrays in the file of a kind, or of the kernel."""
        if name == KERNEL:
            return resolve(KERNEL_ARRAYS, {"d_A": self.a.d_model, "d_B": self.b.d_model})
        n_a, n_b = (side.n_layers * side.kinds[name] for side in (self.a, self.b))
        sizes = {"L_A": self.a.n_layers, "L_B": self.b.n_layers, "m": min(self.a.n_layers, self.b.n_layers), "2": 2}
        sizes |= {"n_A": n_a, "n_B": n_b, "matches_A": min(MATCHES, n_b), "matches_B": min(MATCHES, n_a)}
        return resolve(PER_KIND | IN_FEATURE_SPACE if self.has_feature_space else PER_KIND, sizes)

    def with_files(self, files: dict[str, FileEntry]) -> Self:
        in_order = {name: files[name] for name in (*self.kinds, KERNEL) if name in files}
        return self.model_copy(update={"files": in_order})

    def to_json(self) -> bytes:
        without = None if self.chance else {"chance"}
        content = self.model_dump(exclude=without, exclude_none=True) | {"build": self.build}
        return json.dumps(content, indent=1, allow_nan=False).encode("ascii") + b"\n"

    @classmethod
    def load_stamped(cls, folder: Path) -> tuple[Self, Stamp | None]:
        """Return the record, and the stamp of the very file it was read from."""
        path, command = folder / COMPARISON, compare_command_for(folder)
        missing = f"no comparison in {folder}: run `{command}` to make it"
        try:
            content, stamp = read_stamped(path, _MOST_COMPARISON_BYTES, missing)
            _check_format(path, strict_json(content))
            return cls.parse(content), stamp
        except ValueError as error:
            raise ManifestDamaged(
                f"{path} is damaged: {error}. Run `{command} --force` to make the comparison anew"
            ) from None


def comparison_folder(data: Path, a: str, b: str) -> Path:
    return data / COMPARISONS / a / b


def comparison_file(name: str) -> str:
    """Return the name of the file of a kind, or of the kernel."""
    return name + SUFFIX


def _check_format(path: Path, fields: Any) -> None:
    version = fields.get("format") if isinstance(fields, dict) else None
    if type(version) is int and version > COMPARISON_FORMAT:
        raise NewerFormat(
            f"{path} has format {version}; this Lexiscope reads comparisons of format {COMPARISON_FORMAT}. Upgrade "
            f"lexiscope, or make it anew: `{compare_command_for(path.parent)} --force`"
        )
