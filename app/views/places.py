"""The vectors that list a token, over all layers at once, with scores only where they are needed.
Shard.listed does the same for one layer, and says what is wrong with a damaged one."""

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

import numpy as np

from app.views.column_rows import ColumnRows
from app.views.page_types import Place
from app.views.ranked import Window, ranked
from app.views.slices import BrokenLayer, Shards, entries_at, slices
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.index.shard_reader import Array, Shard
from precompute.shape import ENDS, LENSES, Shape

Made = TypeVar("Made")


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
    end: Array
    vector: Array
    rank: Array

    def at(self, chosen: Array) -> "Entries":
        return Entries(self.layer[chosen], self.end[chosen], self.vector[chosen], self.rank[chosen])


@cache
def kind_of(shape: Shape) -> tuple[Array, Array]:
    """The kind of every vector of a layer, by its number in Shape.kinds, and where each kind begins."""
    counts = [shape.count(kind) for kind in shape.kinds]
    return np.repeat(np.arange(len(counts), dtype=np.uint8), counts), np.cumsum([0, *counts])


def entries(shards: Shards, shape: Shape, token: int, lens: int) -> Entries:
    """Every place of a token in the lists of one lens: end after end, layer after layer, best rank first."""
    where = slices(shards, shape, token, lens, "inverted")
    vector, rank = where.read("inverted.vector"), where.read("inverted.rank")
    number = where.numbers()
    found = Entries(where.layer[number], where.end[number], vector, rank)
    n_vectors, k = len(kind_of(shape)[0]), _k(shards)
    if len(rank) and (vector.max() >= n_vectors or rank.max() >= k):
        raise BrokenLayer(int(found.layer[np.flatnonzero((vector >= n_vectors) | (rank >= k))[0]]))
    return found


def best_places(
    shards: Shards, shape: Shape, token: int, lens: int, kinds: Collection[str], window: Window
) -> dict[tuple[str, str], tuple[int, ColumnRows[Place]]]:
    """For each of these kinds and each end: how many places a token has, and a part of them in the order: rank,
    |score| falling, layer, index. `window` chooses the part once it knows how many the longest list has."""
    found = entries(shards, shape, token, lens)
    lists = kind_of(shape)[0][found.vector] * len(ENDS) + found.end
    wanted = [kind in kinds for kind in shape.kinds for _ in ENDS]
    best = ranked(lists, found.rank, _k(shards), wanted, window)
    found = found.at(best.chosen)
    index, score = _looked_up(shards, shape, lens, "scores", found)
    for wrong in np.flatnonzero(~np.isfinite(score))[:1]:
        raise BrokenLayer(int(found.layer[wrong]))
    sections = best.sections(-np.abs(score), found.layer, index)
    check_listed(shards, shape, lens, found.at(np.concatenate(sections)), token)
    columns = (found.layer, index, found.rank, score)
    return {
        (kind, end): (total, ColumnRows(partial(place, shape, kind), *(column[section] for column in columns)))
        for (kind, end), total, section in zip(itertools.product(shape.kinds, ENDS), best.totals, sections, strict=True)
        if kind in kinds
    }


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


def _looked_up(shards: Shards, shape: Shape, lens: int, part: str, found: Entries) -> tuple[Array, Array]:
    """Of each place: the vector's number within its kind, and what the array `part` of that kind has there."""
    of_vector, starts = kind_of(shape)
    kind = of_vector[found.vector]
    index = found.vector - starts[kind]
    position = ((index * len(LENSES) + lens) * len(ENDS) + found.end) * _k(shards) + found.rank
    names = [f"{kind}.{part}" for kind in shape.kinds]
    return index, entries_at(shards, names, kind, found.layer, position)


def check_listed(shards: Shards, shape: Shape, lens: int, found: Entries, token: int | Array) -> None:
    """That the token, or each one's own, does stand there; if not, the layer is damaged."""
    _, ids = _looked_up(shards, shape, lens, "ids", found)
    for wrong in np.flatnonzero(ids != token)[:1]:
        raise BrokenLayer(int(found.layer[wrong]))


def _k(shards: Shards) -> int:
    return next((shard.array("ff_key.ids").shape[-1] for shard in shards.values()), 1)
