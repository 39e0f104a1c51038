"""The head pairs that hold a token, over all layers at once: inverted lists of pairs, best rank first.
Shard.paired does the same for one layer, and says what is wrong with a damaged one."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from app.page_types import PairPlace
from app.views.places import FEW, BrokenLayer, Shards
from precompute.shape import ENDS, MATRICES, PRESETS
from precompute.shard_reader import Array, Shard
from precompute.tokens import TokenTable

LAYER, END, HEAD, MATRIX, SIDE, RANK = range(6)  # columns of the places below


def paired_places(
    tokens: TokenTable,
    shards: Shards,
    token: int,
    lens: int,
    preset: int,
    matrix: str,
    window: Callable[[int], slice],
) -> tuple[int, tuple[PairPlace, ...]]:
    """How many there are, and the part of them that `window` chooses once it knows: rank, |score| falling, place."""
    places = _once(_places(shards, token, lens, preset, MATRICES.index(matrix)))
    total = len(places)
    part = window(total)
    places = _front(places, part.stop)
    scores, others = _looked_up(shards, token, lens, preset, places)
    columns = [places[:, column] for column in (END, SIDE, MATRIX, HEAD, LAYER)]
    order = np.lexsort((*columns, -np.abs(scores), places[:, RANK]))[part]
    texts = tokens.texts
    listed = zip(places[order].tolist(), scores[order].tolist(), others[order].tolist(), strict=True)
    return total, tuple(
        [
            {
                "matrix": matrix,
                "layer": layer,
                "head": head,
                "side": "to" if side else "from",
                "end": ENDS[end],
                "rank": rank + 1,
                "score": score,
                "other": {"id": other, "token": texts[other]},
            }
            for (layer, end, head, _, side, rank), score, other in listed
        ]
    )


def _places(shards: Shards, token: int, lens: int, preset: int, matrix: int) -> Array:
    """(n, 6) of both ends."""
    parts = [np.empty((0, 6), np.int64)]
    for layer, shard in shards.items():
        place, rank, offsets = (shard.array(f"paired.{part}") for part in ("place", "rank", "offsets"))
        for end in range(len(ENDS)):
            first, last = offsets[lens, end, token : token + 2].tolist()
            if not first <= last <= len(rank) or len(place) != len(rank):
                raise BrokenLayer(layer)
            if first == last:
                continue
            here = place[first:last]  # head, matrix, preset, side
            if np.any(here[:, 1:].max(axis=0) >= (len(MATRICES), len(PRESETS), 2)):
                raise BrokenLayer(layer)
            chosen = np.flatnonzero((here[:, 2] == preset) & (here[:, 1] == matrix))
            part = np.empty((len(chosen), 6), np.int64)
            part[:, LAYER], part[:, END] = layer, end
            part[:, HEAD], part[:, MATRIX], part[:, SIDE] = here[chosen][:, (0, 1, 3)].T
            part[:, RANK] = rank[first:last][chosen]
            parts.append(part)
    return np.concatenate(parts)


def _once(places: Array) -> Array:
    """A pair of the token with itself is listed under both sides, one after the other: the first stays."""
    where = places[:, (LAYER, END, HEAD, MATRIX, RANK)]
    again = np.flatnonzero((where[1:] == where[:-1]).all(axis=1)) + 1
    once: Array = np.delete(places, again, axis=0)
    return once


def _front(places: Array, count: int) -> Array:
    """Those that may be among the first `count`: all up to the rank that the last of them has."""
    if len(places) <= count or not count:
        return places[:count]
    last = np.partition(places[:, RANK], count - 1)[count - 1]
    chosen: Array = places[np.flatnonzero(places[:, RANK] <= last)]
    return chosen


def _looked_up(shards: Shards, token: int, lens: int, preset: int, places: Array) -> tuple[Array, Array]:
    """The score of each place, and the token at the other side of the pair."""
    scores, others = np.empty(len(places), np.float32), np.empty(len(places), np.int64)
    if len(places) <= FEW:
        for at, place in enumerate(places.tolist()):
            shard = shards[place[LAYER]]
            scores[at], others[at] = _of_pair(shard, token, lens, preset, place)
        return scores, others
    for layer in np.unique(places[:, LAYER]).tolist():
        for matrix, name in enumerate(MATRICES):
            chosen = np.flatnonzero((places[:, LAYER] == layer) & (places[:, MATRIX] == matrix))
            if len(chosen):
                scores[chosen], others[chosen] = _of_matrix(shards[layer], name, token, lens, preset, places[chosen])
    return scores, others


def _of_pair(shard: Shard, token: int, lens: int, preset: int, place: Sequence[int]) -> tuple[float, int]:
    _, end, head, matrix, side, rank = place
    name, where = MATRICES[matrix], (head, lens, preset, end)
    ids, d_vocab = shard.array(f"{name}.ids"), shard.array("inverted.offsets").shape[-1] - 1
    if head >= len(ids) or rank >= min(shard.array(f"{name}.count")[where], ids.shape[-2]):
        raise BrokenLayer(shard.layer)
    pair, score = ids[(*where, rank)].tolist(), float(shard.array(f"{name}.scores")[(*where, rank)])
    if pair[side] != token or pair[1 - side] >= d_vocab or not math.isfinite(score):
        raise BrokenLayer(shard.layer)
    return score, pair[1 - side]


def _of_matrix(shard: Shard, name: str, token: int, lens: int, preset: int, places: Array) -> tuple[Array, Array]:
    end, head, side, rank = (places[:, column] for column in (END, HEAD, SIDE, RANK))
    broken = BrokenLayer(shard.layer)
    ids = shard.array(f"{name}.ids")
    if np.any(head >= len(ids)):
        raise broken
    where = head, lens, preset, end
    if np.any(rank >= np.minimum(shard.array(f"{name}.count")[where], ids.shape[-2])):
        raise broken
    pairs = ids[(*where, rank)]  # (n, 2)
    here = np.arange(len(pairs))
    scores, others = shard.array(f"{name}.scores")[(*where, rank)], pairs[here, 1 - side]
    d_vocab = shard.array("inverted.offsets").shape[-1] - 1
    if np.any(pairs[here, side] != token) or np.any(others >= d_vocab) or not np.isfinite(scores).all():
        raise broken
    return scores, others
