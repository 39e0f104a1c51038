"""The head pairs that hold a token, over all layers at once, best rank first.
Shard.paired does the same for one layer, and says what is wrong with a damaged one."""

from collections.abc import Collection
from functools import partial

import numpy as np

from app.views.column_rows import ColumnRows
from app.views.page_types import PairPlace
from app.views.pair_slots import Slots, n_pairs, pairs_at, slots_of
from app.views.ranked import Window, ranked
from app.views.slices import BrokenLayer, Shards
from precompute.index.shard_reader import Array
from precompute.index.tokens import TokenTable
from precompute.shape import ENDS, MATRICES, Shape


def paired_places(
    tokens: TokenTable,
    shards: Shards,
    shape: Shape,
    token: int,
    lens: int,
    preset: int,
    matrices: Collection[str],
    window: Window,
) -> tuple[dict[str, int], ColumnRows[PairPlace]]:
    """For each of these matrices: how many there are, and a part of them in the order: rank, |score| falling, layer,
    head, side, end; matrix after matrix. `window` chooses the part once it knows how many the longer list has."""
    slots, side = _once(*slots_of(shards, shape, token, lens, preset))
    wanted = [matrix in matrices for matrix in MATRICES]
    best = ranked(slots.matrix, slots.rank, n_pairs(shards), wanted, window)
    slots, side = slots.at(best.chosen), side[best.chosen]
    ids, scores = pairs_at(shards, shape, lens, slots)
    here = np.arange(len(ids))
    for wrong in np.flatnonzero(ids[here, side] != token)[:1]:
        raise BrokenLayer(int(slots.layer[wrong]))
    sections = best.sections(-np.abs(scores), slots.layer, slots.head, side, slots.end)
    shown = np.concatenate(sections)
    columns = (slots.matrix, slots.layer, slots.head, side, slots.end, slots.rank, scores, ids[here, 1 - side])
    totals = {matrix: total for matrix, total in zip(MATRICES, best.totals, strict=True) if matrix in matrices}
    return totals, ColumnRows(partial(_place, tokens), *(column[shown] for column in columns))


def _once(slots: Slots, side: Array) -> tuple[Slots, Array]:
    """A pair of the token with itself is listed under both sides, one after the other: the first stays."""
    again = np.flatnonzero(side[1:]) + 1
    for column in (slots.head, slots.rank, slots.matrix, slots.preset, slots.end, slots.layer):  # most differ at once
        again = again[column[again] == column[again - 1]]
    kept = np.delete(np.arange(len(side)), again)
    return slots.at(kept), side[kept]


def _place(
    tokens: TokenTable, matrix: int, layer: int, head: int, side: int, end: int, rank: int, score: float, other: int
) -> PairPlace:
    return {
        "matrix": MATRICES[matrix],
        "layer": layer,
        "head": head,
        "side": "to" if side else "from",
        "end": ENDS[end],
        "rank": rank + 1,
        "score": score,
        "other": {"id": other, "token": tokens.texts[other]},
    }
