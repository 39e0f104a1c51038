"""Declare the parts of an index: the arrays of each, by name, type and shape (docs/format.md lists the same), and the
names of its files."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.shape import ENDS, MATRICES, PRESETS, SIDES, PartName, Shape

# Array -> (type, dimensions). `id`, `number` and `rank` are the smallest of the unsigned types that fit.
PER_KIND = {
    "{kind}.ids": ("id", "n, L, E, k"),
    "{kind}.scores": ("float32", "n, L, E, k"),
    "{kind}.norm": ("float32", "n"),
    "{kind}.coherence": ("float32", "n, L, E"),
}
PER_NEURON = {"ff.similarity": ("float32", "d_mlp, L, E"), "ff.shuffled": ("float32", "d_mlp, L, E")}
PER_SUBHEAD = {
    "{matrix}.similarity": ("float32", "n_heads, d_head, L, E"),
    "{matrix}.shuffled": ("float32", "n_heads, d_head, L, E"),
}
PER_DIRECTION = {"{matrix}.singular": ("float32", "n_heads, d_head")}
PER_MATRIX = {
    "{matrix}.ids": ("id", "n_heads, L, P, E, pairs, 2"),
    "{matrix}.scores": ("float32", "n_heads, L, P, E, pairs"),
    "{matrix}.count": ("uint32", "n_heads, L, P, E"),
    "{matrix}.coherence": ("float32", "n_heads, L, P, E"),
    "{matrix}.readability": ("float32", "n_heads, L, P, E"),
}
# Only in the index of a difference of two checkpoints; the matrix norms also if there are no pairs.
PER_KIND_OF_DIFFERENCE = {"{kind}.base_norm": ("float32", "n")}
PER_MATRIX_OF_DIFFERENCE = {"{matrix}.norm": ("float32", "n_heads"), "{matrix}.base_norm": ("float32", "n_heads")}
INVERTED = {
    "inverted.offsets": ("uint32", "L, E, d_vocab + 1"),
    "inverted.vector": ("number", "listed"),
    "inverted.rank": ("rank", "listed"),
}
PAIRED = {
    "paired.offsets": ("uint32", "L, E, d_vocab + 1"),
    "paired.place": ("uint16", "paired, 4"),
    "paired.rank": ("uint32", "paired"),
}
VOCABULARY = {
    "token.offsets": ("uint32", "d_vocab + 1"),
    "token.bytes": ("uint8", "bytes"),
    "embedding.norm": ("float32", "d_vocab"),
    "embedding.centred_norm": ("float32", "d_vocab"),
}
UNTIED = {"unembedding.norm": ("float32", "d_vocab"), "unembedding.centred_norm": ("float32", "d_vocab")}
NEIGHBOURS = {"neighbours.ids": ("id", "d_vocab, nearest"), "neighbours.scores": ("float32", "d_vocab, nearest")}
# The arrays that each version of the part `stats` has more than the version before it: a new number is a new version.
PER_KIND_OF_STATS = {1: {"{kind}.moments": ("float32", "n, L, 4"), "{kind}.z": ("float32", "n, L, E")}}
PER_WRITING_KIND_OF_STATS = {2: {"{kind}.unembedding": ("float32", "n")}}
# Only if keys and values are stored, and not of a difference.
PER_NEURON_OF_STATS = {2: {"ff.cosines": ("float32", "d_mlp, 3"), "ff.mismatched": ("float32", "3, 2")}}
PER_KIND_OF_CHANCE = {"{kind}.line": ("float32", "L, 2, 2")}
# The arrays that each version of the part `heads` has more than the version before it.
OF_HEADS = {
    1: {
        "positions.shares": ("float32", "n_heads, 4"),
        "positions.by_distance": ("float32", "n_heads, distances"),
    }
}
MOMENTS = ("mean", "sd", "skew", "kurtosis")  # the last axis of `{kind}.moments`
# Where a head may look: the last axis of `positions.shares`, and the words for it.
LOOKS = {"first": "first token", "previous": "previous token", "same": "same position", "next": "next token"}
# The vectors of a neuron that are compared: the last axis of `ff.cosines`, the first of `ff.mismatched`.
NEURON_PAIRS = (("ff_key", "ff_value"), ("ff_up", "ff_value"), ("ff_key", "ff_up"))
SUFFIX = ".safetensors"
NEAREST = 20  # nearest tokens, or one less than there are tokens

# Name -> (dtype, shape); -1 if a dimension may have any length.
Layout: TypeAlias = dict[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Part:
    """A part of an index: one kind of content, stored in a file for the whole model or in one for each layer."""

    name: PartName
    title: str  # the name of its files in messages
    stem: str  # the beginning of its files' names
    # The version in its files' names, which rises with its arrays; None: the parts that format 3 began with.
    version: int | None = None

    @property
    def of_layers(self) -> bool:
        return "{layer}" in self.stem

    def file(self, layer: int | None, generation: int, version: int | None = None) -> str:
        """Return the name of a file of this version, or of the newest. A rebuild is written beside the index that it
        will replace, so its files have other names."""
        number = version or self.version
        of_version = "" if number is None else f".v{number}"
        again = "" if generation == 1 else f".g{generation}"
        return f"{self.stem.format(layer=layer)}{of_version}{again}{SUFFIX}"

    def version_in(self, file: str) -> int | None:
        """Return the version of the part's arrays, which the name of one of its files contains."""
        match = re.search(rf"\.v([1-9][0-9]{{0,5}})(\.g[0-9]+)?{re.escape(SUFFIX)}$", file)
        return int(match[1]) if match else None


# In the order in which a build makes them, except that nearest tokens and lines of chance wait for the first layer.
PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        Part("vocabulary", "vocabulary", "vocabulary"),
        Part("classifier", "classification head", "classifier"),
        Part("neighbours", "nearest tokens", "neighbours"),
        Part("chance", "lines of chance", "chance", version=1),
        Part("lists", "layer {layer}", "layer-{layer}"),
        Part("stats", "stats of layer {layer}", "stats-{layer}", version=2),
        Part("heads", "heads of layer {layer}", "heads-{layer}", version=1),
    )
}
# The names of files that a build may remove when no manifest lists them: our own, also of versions and parts that are
# not known here, and of format 1 (.lxs).
OWN_FILE = re.compile(
    r"((layer-[0-9]+|vocabulary|neighbours|classifier)|[a-z_]+(-[0-9]+)?\.v[0-9]+)(\.g[0-9]+)?\.(safetensors|lxs)"
)


class Piece(NamedTuple):
    """One file of an index: a part of one layer, or of the whole model. Builds make, verify and send single pieces."""

    part: str
    layer: int | None = None

    def __str__(self) -> str:
        if part := PARTS.get(self.part):
            return part.title.format(layer=self.layer)
        return self.part if self.layer is None else f"{self.part} of layer {self.layer}"

    def file(self, generation: int, version: int | None = None) -> str:
        return PARTS[self.part].file(self.layer, generation, version)

    def version_in(self, file: str) -> int | None:
        return PARTS[self.part].version_in(file)

    def is_known(self, file: str) -> bool:
        """Return True if this program can read the piece from a file of this name: one of the present version of its
        part, or of an older version, which has fewer arrays."""
        part = PARTS.get(self.part)
        if part is None or part.of_layers != (self.layer is not None):
            return False
        version = part.version_in(file)
        return version is None if part.version is None else version is not None and version <= part.version

    def is_older(self, file: str) -> bool:
        """Return True if the file has an older version of the part than the one that is made now."""
        part = PARTS.get(self.part)
        return part is not None and (part.version_in(file) or 0) < (part.version or 0)


def number_dtype(count: int) -> str:
    """Return the type of numbers from 0 to count - 1: token ids, and vectors of a layer."""
    return "uint16" if count <= 1 << 16 else "uint32"


def rank_dtype(k: int) -> str:
    return "uint8" if k <= 1 << 8 else "uint16"


@cache
def shard_layout(stored: Stored) -> Layout:
    """Return the arrays of a shard, the file of a layer's lists: with similarities if both kinds are stored, with
    arrays of pairs if there are pairs. Lists of a difference, and those of directions, need not all be inverted."""
    may_lack_some = stored.difference or stored.directions
    return _shard_layout(stored, listed=-1 if may_lack_some else _most_listed(stored), paired=-1)


def _shard_layout(stored: Stored, listed: int, paired: int) -> Layout:
    shape, n_vectors, n_lenses = stored.shape, stored.n_vectors, len(stored.lenses)
    sizes = {"L": n_lenses, "E": len(ENDS), "P": len(PRESETS), "k": stored.k, "pairs": stored.pairs, "2": 2, "4": 4}
    sizes |= {"n_heads": shape.n_heads, "d_head": shape.d_head, "d_mlp": shape.d_mlp}
    sizes |= {"d_vocab + 1": shape.d_vocab + 1}
    sizes |= {"listed": listed, "paired": paired}
    types = {"id": number_dtype(shape.d_vocab), "number": number_dtype(n_vectors), "rank": rank_dtype(stored.k)}
    layout: Layout = {}
    for kind in stored.kinds:
        subtracted = stored.difference and kind in stored.weight_kinds
        per_kind = PER_KIND | PER_KIND_OF_DIFFERENCE if subtracted else PER_KIND
        layout |= resolve(per_kind, sizes | {"n": shape.count(kind)}, types, kind=kind)
    for compared in stored.compared:
        layout |= resolve(PER_NEURON if compared == "ff" else PER_SUBHEAD, sizes, types, matrix=compared)
    for matrix in stored.directions:
        layout |= resolve(PER_DIRECTION, sizes, types, matrix=matrix)
    for matrix in stored.matrices:
        layout |= resolve(PER_MATRIX, sizes, types, matrix=matrix)
    for matrix in MATRICES if stored.difference else ():
        layout |= resolve(PER_MATRIX_OF_DIFFERENCE, sizes, types, matrix=matrix)
    return layout | resolve(INVERTED | PAIRED if stored.pairs else INVERTED, sizes, types)


def shard_size(stored: Stored) -> tuple[int, int]:
    """Return the most bytes that the arrays of a shard (the file of a layer's lists) can have, and the most entries of
    its inverted lists, which lead from tokens to vectors."""
    lists = len(stored.lenses) * len(ENDS)
    paired = stored.shape.n_heads * len(stored.matrices) * len(PRESETS) * lists * stored.pairs * 2
    listed = _most_listed(stored)
    return layout_bytes(_shard_layout(stored, listed, paired)), max(listed, paired)


def _most_listed(stored: Stored) -> int:
    """Return how many entries the inverted lists of a layer can have at most: all entries of every list of every
    vector."""
    return stored.n_vectors * len(stored.lenses) * len(ENDS) * stored.k


def vocabulary_layout(shape: Shape) -> Layout:
    sizes = {"d_vocab": shape.d_vocab, "d_vocab + 1": shape.d_vocab + 1, "bytes": -1}
    return resolve(VOCABULARY if shape.tied else VOCABULARY | UNTIED, sizes)


def neighbours_layout(shape: Shape) -> Layout:
    sizes = {"d_vocab": shape.d_vocab, "nearest": min(NEAREST, shape.d_vocab - 1)}
    return resolve(NEIGHBOURS, sizes, {"id": number_dtype(shape.d_vocab)})


def classifier_layout(stored: Stored, counts: Mapping[str, int], subtracted: bool) -> Layout:
    """Return the arrays of a classification head. `counts` has the number of vectors by kind; `subtracted` is True if
    those of a base were subtracted."""
    sizes = {"L": len(stored.lenses), "E": len(ENDS), "k": stored.k}
    per_kind = PER_KIND | PER_KIND_OF_DIFFERENCE if subtracted else PER_KIND
    layout: Layout = {}
    for kind, count in counts.items():
        layout |= resolve(per_kind, sizes | {"n": count}, {"id": number_dtype(stored.shape.d_vocab)}, kind=kind)
    return layout


def stats_layout(stored: Stored, version: int | None = None) -> Layout:
    """Return the arrays of the part `stats` in this version, or in the newest one."""
    layout: Layout = {}
    sizes = {"L": len(stored.lenses), "E": len(ENDS), "4": len(MOMENTS), "d_mlp": stored.shape.d_mlp, "3": 3, "2": 2}
    tables = [(kind, PER_KIND_OF_STATS) for kind in stored.kinds]
    tables += [(kind, PER_WRITING_KIND_OF_STATS) for kind in stored.kinds if SIDES[kind] == "writes"]
    tables += [("ff_value", PER_NEURON_OF_STATS)] if stored.in_and_out else []
    for kind, versions in tables:
        for since, arrays in versions.items():
            if version is None or since <= version:
                layout |= resolve(arrays, sizes | {"n": stored.shape.count(kind)}, kind=kind)
    return layout


def chance_layout(stored: Stored) -> Layout:
    sizes, layout = {"L": len(stored.lenses), "2": 2}, Layout()
    for kind in stored.kinds:
        layout |= resolve(PER_KIND_OF_CHANCE, sizes, kind=kind)
    return layout


def heads_layout(shape: Shape, version: int | None = None) -> Layout:
    """Return the arrays of the part `heads` in this version, or in the newest one."""
    sizes, layout = {"n_heads": shape.n_heads, "4": len(LOOKS), "distances": -1}, Layout()
    for since, arrays in OF_HEADS.items():
        if version is None or since <= version:
            layout |= resolve(arrays, sizes)
    return layout


def layout_bytes(layout: Layout) -> int:
    """Return the bytes of all arrays; an array whose length is not fixed counts as empty."""
    return sum(np.dtype(dtype).itemsize * max(0, math.prod(sizes)) for dtype, sizes in layout.values())


def misfits(arrays: Mapping[str, tuple[np.dtype[np.generic], tuple[int, ...]]], layout: Layout) -> Iterable[str]:
    """Yield a text for every way in which arrays differ from a layout; arrays that the layout does not name are
    ignored."""
    for name in sorted(layout.keys() - arrays.keys()):
        yield f"it lacks the array {name}"
    for name in layout.keys() & arrays.keys():
        (dtype, shape), (expected_dtype, expected) = arrays[name], layout[name]
        same = len(shape) == len(expected) and all(b in (-1, a) for a, b in zip(shape, expected, strict=True))
        if dtype.name != expected_dtype or not same:
            yield f"its array {name} is {dtype.name} {list(shape)}, not {expected_dtype} {list(expected)}"


def resolve(
    table: Mapping[str, tuple[str, str]], sizes: Mapping[str, int], types: Mapping[str, str] = {}, **names: str
) -> Layout:
    """Return the arrays of a table with numbers in place of the letters for their sizes; `names` complete the names of
    arrays."""
    return {
        name.format(**names): (types.get(dtype, dtype), tuple(sizes[size] for size in dimensions.split(", ")))
        for name, (dtype, dimensions) in table.items()
    }
