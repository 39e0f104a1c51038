"""The head pairs that hold a word, or two words, one at each side, over all layers at once: inverted lists of pairs.
Which tokens stand for a word is for search.py; the pairs of one token with one preset are in paired_places.py."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.page_types import PairMatch
from app.views.parts import token_views
from app.views.places import BrokenLayer, Shards
from precompute.shape import ENDS, MATRICES, PRESETS, Shape
from precompute.shard_reader import Array, Shard
from precompute.tokens import TokenTable

MANY = 256  # entries of one array: from here on, to read all of it is faster


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """Entries of pair lists; a slot is where a pair stands, so a pair stands in one for each preset that has it."""

    columns: Array  # (n, 6): layer, matrix, head, preset, end, rank
    pairs: Array  # (n, 2) ids
    scores: Array

    def at(self, chosen: Array) -> "_Slots":
        return _Slots(self.columns[chosen], self.pairs[chosen], self.scores[chosen])


def pair_matches(
    tokens: TokenTable,
    shards: Shards,
    shape: Shape,
    words: Sequence[Sequence[int]],
    lens: int,
    matrices: Sequence[str],
    window: Callable[[int], slice],
) -> tuple[int, tuple[PairMatch, ...]]:
    """How many there are, and the part of them that `window` chooses once it knows.

    Each pair once, where its rank is best; by rank, |score| falling, the upper layer, and then by place."""
    found = _once(_filled(shards, _common(shards, shape, words, lens, [MATRICES.index(m) for m in matrices]), lens))
    _check(found, words)
    total = len(found.scores)
    part = window(total)
    found = _front(found, part.stop)
    layer, matrix, head, preset, end, rank = found.columns.T
    order = np.lexsort((*found.pairs.T[::-1], preset, end, head, matrix, -layer, -np.abs(found.scores), rank))
    return total, tuple(_views(tokens, found.at(order[part])))


def _common(shards: Shards, shape: Shape, words: Sequence[Sequence[int]], lens: int, matrices: list[int]) -> Array:
    """(n, 6): the slots that hold the word, or the words at different sides."""
    sizes = (shape.n_layers, len(MATRICES), shape.n_heads, len(PRESETS), len(ENDS), _longest(shards))
    sides: list[list[Array]] = []  # of each word, the slots that hold it at the first side and at the second
    for word in words:
        places = np.concatenate([np.empty((0, 7), np.int64), *(_places(shards, shape, t, lens) for t in word)])
        places = places[np.isin(places[:, 1], matrices)]
        keys = np.ravel_multi_index(tuple(places[:, :6].T), sizes)
        sides.append([np.unique(keys[places[:, 6] == side]) for side in (0, 1)])
    if len(words) == 1:
        keys = np.union1d(*sides[0])
    else:
        (first, second), (other, another) = sides
        keys = np.union1d(
            np.intersect1d(first, another, assume_unique=True), np.intersect1d(second, other, assume_unique=True)
        )
    return np.stack(np.unravel_index(keys, sizes), axis=1)


def _longest(shards: Shards) -> int:
    return max((shard.array(f"{MATRICES[0]}.ids").shape[-2] for shard in shards.values()), default=1)


def _places(shards: Shards, shape: Shape, token: int, lens: int) -> Array:
    """(n, 7) of a token: layer, matrix, head, preset, end, rank, side."""
    parts = [np.empty((0, 7), np.int64)]
    limits = np.array([shape.n_heads, len(MATRICES), len(PRESETS), 2])
    for layer, shard in shards.items():
        place, rank, offsets = (shard.array(f"paired.{part}") for part in ("place", "rank", "offsets"))
        for end in range(len(ENDS)):
            first, last = offsets[lens, end, token : token + 2].tolist()
            if not first <= last <= len(rank) or len(place) != len(rank):
                raise BrokenLayer(layer)
            if first == last:
                continue
            here, ranks = place[first:last], rank[first:last]  # head, matrix, preset, side
            if np.any(here.max(axis=0) >= limits) or ranks.max() >= shard.array(f"{MATRICES[0]}.ids").shape[-2]:
                raise BrokenLayer(layer)
            part = np.empty((len(here), 7), np.int64)
            part[:, 0], part[:, 4], part[:, 5] = layer, end, ranks
            part[:, [2, 1, 3, 6]] = here
            parts.append(part)
    return np.concatenate(parts)


def _filled(shards: Shards, columns: Array, lens: int) -> _Slots:
    pairs, scores = np.empty((len(columns), 2), np.int64), np.empty(len(columns), np.float32)
    starts = np.flatnonzero(np.any(np.diff(columns[:, :2], axis=0, prepend=-1), axis=1)).tolist()
    for first, last in itertools.pairwise([*starts, len(columns)]):  # of one layer and matrix
        layer, matrix, head, preset, end, rank = columns[first:last].T
        shard, name, where = shards[int(layer[0])], MATRICES[int(matrix[0])], (head, lens, preset, end)
        if np.any(rank >= shard.array(f"{name}.count")[where]):
            raise BrokenLayer(shard.layer)
        pairs[first:last] = _read(shard, f"{name}.ids", (*where, rank))
        scores[first:last] = _read(shard, f"{name}.scores", (*where, rank))
        d_vocab = shard.array("inverted.offsets").shape[-1] - 1
        if pairs[first:last].max() >= d_vocab or not np.isfinite(scores[first:last]).all():
            raise BrokenLayer(shard.layer)
    return _Slots(columns, pairs, scores)


def _read(shard: Shard, name: str, where: tuple[Array | int, ...]) -> Array:
    array = shard.array(name)
    few = len(np.atleast_1d(where[0])) < MANY
    found: Array = (array if few else np.asarray(array))[where]
    return found


def _once(slots: _Slots) -> _Slots:
    """A pair of a head's matrix and end stands in the lists of several presets: where its rank is best stays."""
    layer, matrix, head, preset, end, rank = slots.columns.T
    parts = (layer, matrix, head, end, *slots.pairs.T)
    keys = np.ravel_multi_index(parts, [int(part.max(initial=0)) + 1 for part in parts])
    order = np.lexsort((rank * len(PRESETS) + preset, keys))
    return slots.at(order[np.diff(keys[order], prepend=-1) != 0])


def _front(slots: _Slots, count: int) -> _Slots:
    """Those that may be among the first `count`: all up to the rank that the last of them has."""
    ranks = slots.columns[:, 5]
    if not 0 < count < len(ranks):
        return slots.at(np.arange(len(ranks) if count else 0))
    return slots.at(np.flatnonzero(ranks <= np.partition(ranks, count - 1)[count - 1]))


def _check(slots: _Slots, words: Sequence[Sequence[int]]) -> None:
    """That the pairs do hold the words; if not, the layer is damaged."""
    here = [np.isin(slots.pairs, [*word]) for word in words]  # (n, 2) each
    holds = here[0].any(axis=1) if len(words) == 1 else (here[0] & here[1][:, ::-1]).any(axis=1)
    for layer in slots.columns[~holds, 0][:1].tolist():
        raise BrokenLayer(layer)


def _views(tokens: TokenTable, slots: _Slots) -> list[PairMatch]:
    views: list[PairMatch] = []
    listed = zip(slots.columns.tolist(), slots.pairs.tolist(), slots.scores.tolist(), strict=True)
    for (layer, matrix, head, preset, end, rank), pair, score in listed:
        first, second = token_views(tokens, pair)
        views.append(
            {
                "matrix": MATRICES[matrix], "layer": layer, "head": head, "preset": PRESETS[preset],
                "end": ENDS[end], "rank": rank + 1, "from": first, "to": second, "score": score,
            }
        )  # fmt: skip
    return views
