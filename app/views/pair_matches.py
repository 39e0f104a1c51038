"""The head pairs that hold a word, or two words, one at each side, over all layers at once.
Which tokens stand for a word is for search.py; the pairs of one token with one preset are in paired_places.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.views.column_rows import ColumnRows
from app.views.page_types import PairMatch
from app.views.pair_slots import Slots, n_pairs, pairs_at, slots_of
from app.views.parts import token_views
from app.views.ranked import Window
from app.views.slices import BrokenLayer, Shards
from precompute.index.shard_reader import Array
from precompute.index.tokens import TokenTable
from precompute.shape import ENDS, MATRICES, PRESETS, Shape


@dataclass(frozen=True, slots=True, eq=False)
class _Filled:
    slots: Slots
    pairs: Array  # (n, 2) ids
    scores: Array

    def __len__(self) -> int:
        return len(self.scores)

    def at(self, chosen: Array) -> "_Filled":
        return _Filled(self.slots.at(chosen), self.pairs[chosen], self.scores[chosen])


def pair_matches(
    tokens: TokenTable,
    shards: Shards,
    shape: Shape,
    words: Sequence[Sequence[int]],
    lens: int,
    matrices: Sequence[str],
    window: Window,
) -> tuple[int, ColumnRows[PairMatch]]:
    """How many there are, and the part of them that `window` chooses once it knows.

    Each pair once, where its rank is best; by rank, |score| falling, the upper layer, and then by place."""
    slots = _common(shards, shape, words, lens, [MATRICES.index(matrix) for matrix in matrices])
    found = _once(_Filled(slots, *pairs_at(shards, shape, lens, slots)))
    _check(found, words)
    part = window(len(found))
    total, found = len(found), _front(found, part.stop)
    layer, matrix, head, preset, end, rank = found.slots.columns
    order = np.lexsort((*found.pairs.T[::-1], preset, end, head, matrix, -layer, -np.abs(found.scores), rank))
    shown = found.at(order[part])
    return total, ColumnRows(partial(_view, tokens), *shown.slots.columns, shown.pairs, shown.scores)


def _common(shards: Shards, shape: Shape, words: Sequence[Sequence[int]], lens: int, matrices: list[int]) -> Slots:
    """The slots that hold the word, or the words at different sides."""
    sizes = (shape.n_layers, len(MATRICES), shape.n_heads, len(PRESETS), len(ENDS), n_pairs(shards))
    words_sides: list[list[Array]] = []  # of each word, the slots that hold it at the first side and at the second
    for word in words:
        of_sides: list[list[Array]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)]]
        for token in word:
            slots, side = slots_of(shards, shape, token, lens)
            keys = np.ravel_multi_index(slots.columns, sizes)
            chosen = np.isin(slots.matrix, matrices)
            for at, of_side in enumerate(of_sides):
                of_side.append(keys[chosen & (side == at)])
        words_sides.append([np.unique(np.concatenate(of_side)) for of_side in of_sides])
    if len(words) == 1:
        keys = np.union1d(*words_sides[0])
    else:
        (first, second), (other, another) = words_sides
        keys = np.union1d(
            np.intersect1d(first, another, assume_unique=True), np.intersect1d(second, other, assume_unique=True)
        )
    return Slots(*np.unravel_index(keys, sizes))


def _once(found: _Filled) -> _Filled:
    """A pair of a head's matrix and end stands in the lists of several presets: where its rank is best stays."""
    layer, matrix, head, preset, end, rank = found.slots.columns
    parts = (layer, matrix, head, end, *found.pairs.T)
    keys = np.ravel_multi_index(parts, [int(part.max(initial=0)) + 1 for part in parts])
    order = np.lexsort((rank * len(PRESETS) + preset, keys))
    return found.at(order[np.diff(keys[order], prepend=-1) != 0])


def _front(found: _Filled, count: int) -> _Filled:
    """Those that may be among the first `count`: all up to the rank that the last of them has."""
    ranks = found.slots.rank
    if not 0 < count < len(ranks):
        return found.at(np.arange(len(ranks) if count else 0))
    return found.at(np.flatnonzero(ranks <= np.partition(ranks, count - 1)[count - 1]))


def _check(found: _Filled, words: Sequence[Sequence[int]]) -> None:
    """That the pairs do hold the words; if not, the layer is damaged."""
    here = [np.isin(found.pairs, [*word]) for word in words]  # (n, 2) each
    holds = here[0].any(axis=1) if len(words) == 1 else (here[0] & here[1][:, ::-1]).any(axis=1)
    for wrong in np.flatnonzero(~holds)[:1]:
        raise BrokenLayer(int(found.slots.layer[wrong]))


def _view(
    tokens: TokenTable, layer: int, matrix: int, head: int, preset: int, end: int, rank: int, pair: list[int],
    score: float,
) -> PairMatch:  # fmt: skip
    first, second = token_views(tokens, pair)
    return {
        "matrix": MATRICES[matrix], "layer": layer, "head": head, "preset": PRESETS[preset], "end": ENDS[end],
        "rank": rank + 1, "from": first, "to": second, "score": score,
    }  # fmt: skip
