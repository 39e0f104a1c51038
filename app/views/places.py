"""The inverted lists of all layers at once: which vectors list a token, with scores only where they are shown.
Shard.listed does the same for one layer, and says what is wrong with a damaged one."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from app.page_types import Place
from precompute.errors import IndexFault
from precompute.index import Index
from precompute.shape import Shape
from precompute.shard_reader import Array, Shard

FEW = 64  # places that are looked up one by one: to sort them by layers first takes longer

Shards = Mapping[int, Shard]
Made = TypeVar("Made")


class BrokenLayer(Exception):
    """A value of this layer cannot be right."""

    def __init__(self, layer: int) -> None:
        super().__init__(layer)
        self.layer = layer


def over_layers(index: Index, make: Callable[[Shards], Made]) -> tuple[Made, tuple[int, ...]]:
    """What can be made of the layers that are ready and whole, and the other layers."""
    shards: dict[int, Shard] = {}
    for layer in index.layers:
        try:
            shards[layer] = index.shard(layer)
        except IndexFault:
            continue
    while True:
        try:
            made = make(shards)
        except BrokenLayer as broken:
            del shards[broken.layer]
            continue
        except IndexFault:
            if not (gone := [layer for layer in shards if not _readable(index, layer)]):
                raise
            for layer in gone:
                del shards[layer]
            continue
        return made, tuple(layer for layer in range(index.shape.n_layers) if layer not in shards)


def _readable(index: Index, layer: int) -> bool:
    try:
        index.shard(layer)
    except IndexFault:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Places in lists, of all layers: `vector` numbers the vectors of a layer, kind after kind; ranks start at 0."""

    layer: Array
    vector: Array
    rank: Array

    def __len__(self) -> int:
        return len(self.rank)

    def at(self, chosen: Array | slice) -> "Entries":
        return Entries(self.layer[chosen], self.vector[chosen], self.rank[chosen])


@cache
def kind_of(shape: Shape) -> tuple[Array, Array]:
    """The kind of every vector of a layer, by its number in Shape.kinds, and where each kind begins."""
    counts = [shape.count(kind) for kind in shape.kinds]
    return np.repeat(np.arange(len(counts), dtype=np.uint8), counts), np.cumsum([0, *counts])


def entries(shards: Shards, shape: Shape, token: int, lens: int, end: int) -> Entries:
    """Every place of a token in the lists of one lens and end: layer after layer, best rank first."""
    vectors, ranks, counts = [np.empty(0, np.uint16)], [np.empty(0, np.uint8)], []
    for layer, shard in shards.items():
        offsets, rank = shard.array("inverted.offsets"), shard.array("inverted.rank")
        first, last = offsets[lens, end, token : token + 2].tolist()
        if not first <= last <= len(rank):
            raise BrokenLayer(layer)
        vectors.append(shard.array("inverted.vector")[first:last])
        ranks.append(rank[first:last])
        counts.append(last - first)
    found = Entries(np.repeat(np.array([*shards], np.int32), counts), np.concatenate(vectors), np.concatenate(ranks))
    _check(found, len(kind_of(shape)[0]), next((s.array("ff_key.ids").shape[-1] for s in shards.values()), 0))
    return found


def best_first(
    shards: Shards, shape: Shape, found: Entries, token: int, lens: int, end: int, window: slice
) -> list[Place]:
    """A part of the places, all of one kind, in the order: rank, |score| falling, layer, index."""
    found = _front(found, window.stop)
    if not len(found):
        return []
    kinds, starts = kind_of(shape)
    at = int(kinds[found.vector[0]])
    kind, index = shape.kinds[at], found.vector.astype(np.int64) - starts[at]
    score = scores(shards, kind, lens, end, Entries(found.layer, index, found.rank))
    order = np.lexsort((index, found.layer, -np.abs(score), found.rank))[window]
    columns = (found.layer, index, found.rank, score)
    listed = zip(*(column[order].tolist() for column in columns), strict=True)
    places = []
    for layer, number, rank, value in listed:
        if shards[layer].array(f"{kind}.ids")[number, lens, end, rank] != token or not math.isfinite(value):
            raise BrokenLayer(layer)
        places.append(place(shape, kind, layer, number, rank, value))
    return places


def scores(shards: Shards, kind: str, lens: int, end: int, found: Entries) -> Array:
    """The scores at places in the lists of a kind (`vector` counts within it)."""
    score = np.empty(len(found), np.float32)
    if len(found) <= FEW:
        columns = (found.layer, found.vector, found.rank)
        for at, (layer, vector, rank) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            where = vector, lens, end, rank
            score[at] = shards[layer].array(f"{kind}.scores")[where]
        return score
    for layer in np.unique(found.layer).tolist():
        chosen = np.flatnonzero(found.layer == layer)
        places = found.vector[chosen], lens, end, found.rank[chosen]
        score[chosen] = shards[layer].array(f"{kind}.scores")[places]
    return score


def place(shape: Shape, kind: str, layer: int, index: int, rank: int, score: float) -> Place:
    head, subhead = whose(shape, kind, index)
    return {
        "kind": kind,
        "layer": layer,
        "index": index,
        "head": head,
        "subhead": subhead,
        "rank": rank + 1,
        "score": score,
    }


def whose(shape: Shape, kind: str, index: int) -> tuple[int | None, int | None]:
    """Head and subhead of a vector; of kinds that heads share, the first head that has it."""
    if kind.startswith("ff_"):
        return None, None
    head, subhead = divmod(index, shape.d_head)
    if kind in ("w_k", "w_v"):
        head *= shape.n_heads // shape.n_kv_heads
    return head, subhead


def _front(found: Entries, count: int) -> Entries:
    """Those that may be among the first `count`: all up to the rank that the last of them has."""
    if len(found) <= count:
        return found
    up_to = np.cumsum(np.bincount(found.rank))
    last = int(np.searchsorted(up_to, count))
    return found.at(np.flatnonzero(found.rank <= last))


def _check(found: Entries, n_vectors: int, k: int) -> None:
    if len(found) and (found.vector.max() >= n_vectors or found.rank.max() >= k):
        wrong = np.flatnonzero((found.vector >= n_vectors) | (found.rank >= k))[0]
        raise BrokenLayer(int(found.layer[wrong]))
