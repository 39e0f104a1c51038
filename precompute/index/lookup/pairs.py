"""Find the head pairs that hold a token, or the words of a search, over all layers at once, best rank first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from lexiscope.precompute.index.lookup.layers import Layers, check, rank_parts, read_entries, token_slices
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS, MATRICES, PRESETS


@dataclass(frozen=True, slots=True, eq=False)
class PairListings:
    """Head pairs that hold a token, as columns; a pair of the token with itself is listed once."""

    totals: dict[str, int]  # how many there are by matrix; the columns hold a part of each
    matrix: Array  # index into MATRICES
    layer: Array
    head: Array
    side: Array  # 0 if the token is `from`, 1 if it is `to`
    end: Array  # index into ENDS
    rank: Array  # from 0
    score: Array
    other: Array  # the token at the other side


@dataclass(frozen=True, slots=True, eq=False)
class PairMatches:
    """Head pairs that hold the words of a search, as columns; each pair is listed once, with the preset in which its
    rank is best."""

    total: int
    layer: Array
    matrix: Array
    head: Array
    preset: Array  # index into PRESETS
    end: Array
    rank: Array  # from 0
    ids: Array  # (n, 2): from, to
    score: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """The places of pairs in lists: a pair has one slot for each preset whose list has it."""

    layer: Array  # (n,)
    matrix: Array
    head: Array
    preset: Array
    end: Array
    rank: Array

    @property
    def columns(self) -> tuple[Array, ...]:
        return self.layer, self.matrix, self.head, self.preset, self.end, self.rank

    def at(self, chosen: Array) -> "_Slots":
        return _Slots(*(column[chosen] for column in self.columns))


def pair_listings(
    layers: Layers, token: int, lens: int, preset: int, matrices: Collection[str], part: slice
) -> PairListings:
    """Return a part of the pairs of each matrix that hold the token, in this order: rank, |score| falling, layer, head,
    side, end."""
    wanted = [matrix in matrices for matrix in MATRICES]
    if not any(wanted):
        return PairListings({}, *(np.empty(0, np.int64) for _ in range(8)))
    slots, side = _without_own_mirror(*_slots(layers, token, lens, preset))
    parts = rank_parts(slots.matrix, slots.rank, layers.stored.pairs, wanted, part)
    slots, side = slots.at(parts.chosen), side[parts.chosen]
    ids, score = _pairs(layers, lens, slots)
    row = np.arange(len(ids))
    check(ids[row, side] == token, slots.layer)
    shown = np.concatenate(parts.sections(-np.abs(score), slots.layer, slots.head, side, slots.end))
    columns = (slots.matrix, slots.layer, slots.head, side, slots.end, slots.rank, score, ids[row, 1 - side])
    totals = {matrix: total for matrix, total in zip(MATRICES, parts.totals, strict=True) if matrix in matrices}
    return PairListings(totals, *(column[shown] for column in columns))


def pair_matches(
    layers: Layers, words: Sequence[Sequence[int]], lens: int, matrices: Collection[str], part: slice
) -> PairMatches:
    """Return a part of the pairs that hold the one or two words, in this order: rank, |score| falling, upper layers
    first, then the place in the layer."""
    if not matrices:
        none = np.empty(0, np.int64)
        return PairMatches(0, none, none, none, none, none, none, none.reshape(0, 2), none)
    slots = _common_slots(layers, words, lens, [MATRICES.index(matrix) for matrix in matrices])
    ids, score = _pairs(layers, lens, slots)
    _check_words(slots, ids, words)
    kept = _best_presets(slots, ids)
    total = len(kept)
    kept = kept[_may_be_among_first(slots.rank[kept], part.stop)]
    slots, ids, score = slots.at(kept), ids[kept], score[kept]
    layer, matrix, head, preset, end, rank = slots.columns
    order = np.lexsort((*ids.T[::-1], preset, end, head, matrix, -layer, -np.abs(score), rank))[part]
    columns = (*slots.columns, ids, score)
    return PairMatches(total, *(column[order] for column in columns))


def _slots(layers: Layers, token: int, lens: int, preset: int | None = None) -> tuple[_Slots, Array]:
    """Return the slots of pairs that hold a token, of one preset or of all, and the token's side in each: end after
    end, layer after layer, best rank first. A pair of the token with itself is there twice, once for each side."""
    where = token_slices(layers, token, lens, "paired")
    slot = where.read("paired.place", 4).reshape(-1, 4)  # head, matrix, preset, side
    rank, number = where.read("paired.rank"), where.numbers()
    if preset is not None and slot[:, 2].max(initial=0) < len(PRESETS):
        chosen = np.flatnonzero(slot[:, 2] == preset)
        slot, rank, number = slot[chosen], rank[chosen], number[chosen]
    layer, (head, matrix, of_preset, side) = where.layer[number], slot.T
    limits = (layers.stored.shape.n_heads, len(MATRICES), len(PRESETS), 2, layers.stored.pairs)
    for column, limit in zip((*slot.T, rank), limits, strict=True):
        if column.max(initial=0) >= limit:
            check(column < limit, layer)
    return _Slots(layer, matrix, head, of_preset, where.end[number], rank), side


def _pairs(layers: Layers, lens: int, slots: _Slots) -> tuple[Array, Array]:
    """Return the ids (n, 2) and the scores (n,) of the pairs in these slots (places in lists)."""
    head = slots.head.astype(np.int64)
    a_list = ((head * len(layers.stored.lenses) + lens) * len(PRESETS) + slots.preset) * len(ENDS) + slots.end
    entry = a_list * layers.stored.pairs + slots.rank

    ids, scores = (
        read_entries(
            layers, [f"{matrix}.{name}" for matrix in MATRICES], slots.matrix, slots.layer, entry * width, width
        )
        for name, width in (("ids", 2), ("scores", 1))
    )
    known = (ids < layers.stored.shape.d_vocab).all(axis=1)
    check((slots.rank < _counts(layers, lens, slots)) & known & np.isfinite(scores), slots.layer)
    return ids.astype(np.int64), scores


def _counts(layers: Layers, lens: int, slots: _Slots) -> Array:
    """Return for each slot (place of a pair) how many pairs its list has: (n,)."""
    if not len(slots.rank):
        return np.empty(0, np.uint32)
    counts = np.stack(
        [[shard.heads.all_pair_counts(matrix) for matrix in MATRICES] for shard in layers.shards.values()]
    )
    nth = np.searchsorted([*layers.shards], slots.layer)
    of_lists: Array = counts[nth, slots.matrix, slots.head, lens, slots.preset, slots.end]
    return of_lists


def _without_own_mirror(slots: _Slots, side: Array) -> tuple[_Slots, Array]:
    """Keep a pair of the token with itself only once. It was found at both of its sides, in two slots one after the
    other: the first stays."""
    again = np.flatnonzero(side[1:]) + 1
    # Compare first the columns in which most neighbouring slots differ.
    for column in (slots.head, slots.rank, slots.matrix, slots.preset, slots.end, slots.layer):
        again = again[column[again] == column[again - 1]]
    kept = np.delete(np.arange(len(side)), again)
    return slots.at(kept), side[kept]


def _common_slots(layers: Layers, words: Sequence[Sequence[int]], lens: int, matrices: list[int]) -> _Slots:
    """Return the slots (places in lists) of pairs that hold the word or, of two words, one at each side."""
    shape = layers.stored.shape
    sizes = (shape.n_layers, len(MATRICES), shape.n_heads, len(PRESETS), len(ENDS), layers.stored.pairs)
    by_side: list[list[Array]] = []  # for each word, the slots that hold it at the first side and at the second
    for word in words:
        of_sides: list[list[Array]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)]]
        for token in word:
            slots, side = _slots(layers, token, lens)
            keys = np.ravel_multi_index(slots.columns, sizes)
            chosen = np.isin(slots.matrix, matrices)
            for number, of_side in enumerate(of_sides):
                of_side.append(keys[chosen & (side == number)])
        by_side.append([np.unique(np.concatenate(of_side)) for of_side in of_sides])
    match by_side:
        case [[first, second]]:
            keys = np.union1d(first, second)
        case [[first, second], [other_first, other_second]]:
            keys = np.union1d(
                np.intersect1d(first, other_second, assume_unique=True),
                np.intersect1d(second, other_first, assume_unique=True),
            )
        case _:
            keys = np.empty(0, np.int64)
    return _Slots(*np.unravel_index(keys, sizes))


def _best_presets(slots: _Slots, ids: Array) -> Array:
    """Return only the slots with the best rank of each pair: a pair of a head's matrix and end may be in the lists of
    several presets."""
    layer, matrix, head, preset, end, rank = slots.columns
    identity = (layer, matrix, head, end, *ids.T)
    keys = np.ravel_multi_index(identity, [int(column.max(initial=0)) + 1 for column in identity])
    order = np.lexsort((rank * len(PRESETS) + preset, keys))
    best: Array = order[np.diff(keys[order], prepend=-1) != 0]
    return best


def _may_be_among_first(ranks: Array, count: int | None) -> Array:
    """Return flags of the entries that may be among the first `count`: those whose rank is at most that of the entry
    number `count`."""
    if count is None or count >= len(ranks):
        return np.arange(len(ranks))
    return np.flatnonzero(ranks <= np.partition(ranks, count - 1)[count - 1]) if count else np.arange(0)


def _check_words(slots: _Slots, ids: Array, words: Sequence[Sequence[int]]) -> None:
    """Raise DamagedLayer unless the pairs hold the words, as the inverted lists say."""
    holds = [np.isin(ids, [*word]) for word in words]  # (n, 2) each
    if len(words) == 1:
        check(np.any(holds[0], axis=1), slots.layer)
    elif words:
        check(np.any(holds[0] & holds[1][:, ::-1], axis=1), slots.layer)
