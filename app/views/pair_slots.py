"""The slots of pair lists that hold a token, over all layers at once, and what stands in a slot.
Which of them a page shows is for paired_places.py and pair_matches.py."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from app.views.slices import BrokenLayer, Shards, entries_at, slices
from precompute.index.shard_reader import Array
from precompute.shape import ENDS, LENSES, MATRICES, PRESETS, Shape


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """A slot is where a pair stands, so a pair stands in one for each preset that has it; ranks start at 0."""

    layer: Array  # (n,)
    matrix: Array
    head: Array
    preset: Array
    end: Array
    rank: Array

    @property
    def columns(self) -> tuple[Array, ...]:
        return self.layer, self.matrix, self.head, self.preset, self.end, self.rank

    def at(self, chosen: Array) -> Self:
        return type(self)(*(column[chosen] for column in self.columns))


def slots_of(shards: Shards, shape: Shape, token: int, lens: int, preset: int | None = None) -> tuple[Slots, Array]:
    """Those that hold a token, of one preset or of all: end after end, layer after layer, best rank first; and the
    side it stands at. A pair of the token with itself is there twice, once for each side."""
    where = slices(shards, shape, token, lens, "paired")
    place, rank = where.read("paired.place", 4).reshape(-1, 4), where.read("paired.rank")  # head, matrix, preset, side
    number = where.numbers()
    if preset is not None and place[:, 2].max(initial=0) < len(PRESETS):
        chosen = np.flatnonzero(place[:, 2] == preset)
        place, rank, number = place[chosen], rank[chosen], number[chosen]
    layer, (head, matrix, of_preset, side) = where.layer[number], place.T
    limits = zip((*place.T, rank), (shape.n_heads, len(MATRICES), len(PRESETS), 2, n_pairs(shards)), strict=True)
    for wrong in (np.flatnonzero(column >= limit) for column, limit in limits if column.max(initial=0) >= limit):
        raise BrokenLayer(int(layer[wrong[0]]))
    return Slots(layer, matrix, head, of_preset, where.end[number], rank), side


def pairs_at(shards: Shards, shape: Shape, lens: int, slots: Slots) -> tuple[Array, Array]:
    """The ids (n, 2) and the scores (n,) of the pairs that stand there."""
    place = ((slots.head.astype(np.int64) * len(LENSES) + lens) * len(PRESETS) + slots.preset) * len(ENDS) + slots.end
    position = place * n_pairs(shards) + slots.rank

    def stored(part: str, at: Array, width: int = 1) -> Array:
        return entries_at(shards, [f"{matrix}.{part}" for matrix in MATRICES], slots.matrix, slots.layer, at, width)

    ids, scores = stored("ids", position, 2), stored("scores", position)
    wrong = (slots.rank >= stored("count", place)) | (ids >= shape.d_vocab).any(axis=1) | ~np.isfinite(scores)
    for first in np.flatnonzero(wrong)[:1]:
        raise BrokenLayer(int(slots.layer[first]))
    return ids.astype(np.int64), scores


def n_pairs(shards: Shards) -> int:
    """How many a list has room for."""
    return next((shard.array(f"{MATRICES[0]}.ids").shape[-2] for shard in shards.values()), 1)
