"""The lists of one layer as columns, a row per entry: of a kind of vectors, or of the pairs of a head's matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from precompute.files import damaged
from precompute.index.index import Index
from precompute.index.list_checks import SIGNS, fault, sound
from precompute.index.shard_reader import Shard
from precompute.shape import ENDS, MATRICES, PRESETS

Array = NDArray[Any]


class Entries:
    """Makes the rows of an index. Names and tokens are dictionaries, so that a token's text is there once."""

    def __init__(self, index: Index, lenses: Sequence[str]) -> None:
        self.index = index
        self.lenses = tuple(lenses)
        self._lens_at = [index.stored.lenses.index(lens) for lens in lenses]
        self._tokens = pa.array(index.tokens.texts, pa.string())

    def of(self, name: str, layer: int) -> pa.Table:
        """Of a kind of vectors, or of a matrix."""
        return self.pairs(name, layer) if name in MATRICES else self.vectors(name, layer)

    def vectors(self, kind: str, layer: int) -> pa.Table:
        shape, shard = self.index.shape, self.index.shard(layer)
        ids, scores = (shard.array(f"{kind}.{part}")[:, self._lens_at] for part in ("ids", "scores"))  # (n, L, E, k)
        _check(shard, kind, ids, scores, shape.d_vocab)
        n = len(ids)
        heads, numbers = np.zeros(n, np.uint16), np.arange(n, dtype=np.uint32)
        if in_heads := not kind.startswith("ff_"):
            heads, numbers = np.array([shape.head_and_subhead(kind, row) for row in range(n)]).T
        vector, lens, end, rank = _places(ids.shape)
        return pa.table(
            {
                "layer": pa.repeat(pa.scalar(layer, pa.uint16()), ids.size),
                "head": pa.array(heads.astype(np.uint16)[vector]) if in_heads else pa.nulls(ids.size, pa.uint16()),
                "index": pa.array(numbers.astype(np.uint32)[vector]),
                "lens": _named(lens, self.lenses),
                "end": _named(end, ENDS),
                "rank": pa.array(rank.astype(np.uint16) + np.uint16(1)),
                "token_id": pa.array(ids.reshape(-1).astype(np.uint32)),
                "token": self._texts(ids),
                "score": pa.array(scores.reshape(-1)),
            }
        )

    def pairs(self, matrix: str, layer: int) -> pa.Table:
        shard = self.index.shard(layer)
        ids, scores = (shard.array(f"{matrix}.{part}")[:, self._lens_at] for part in ("ids", "scores"))
        counts = shard.array(f"{matrix}.count")[:, self._lens_at]  # (n_heads, L, P, E)
        if counts.size and counts.max() > self.index.stored.pairs:
            raise damaged(shard.file.path, f"is damaged: {matrix} claims {counts.max()} pairs in a list")
        there = np.arange(self.index.stored.pairs) < counts[..., None]  # (n_heads, L, P, E, pairs)
        for head, lens, preset, end in np.ndindex(*counts.shape):
            at, count = (head, lens, preset, end), counts[head, lens, preset, end]
            said = fault(ids[at][:count], scores[at][:count] * SIGNS[end, 0], self.index.shape.d_vocab)
            if said:
                raise damaged(shard.file.path, f"is damaged: {matrix} of head {head} {said}")
        head, lens, preset, end, rank = (place[there.reshape(-1)] for place in _places(there.shape))
        kept = ids[there]  # (rows, 2)
        return pa.table(
            {
                "layer": pa.repeat(pa.scalar(layer, pa.uint16()), len(kept)),
                "head": pa.array(head.astype(np.uint16)),
                "lens": _named(lens, self.lenses),
                "preset": _named(preset, PRESETS),
                "end": _named(end, ENDS),
                "rank": pa.array(rank.astype(np.uint32) + np.uint32(1)),
                "from_id": pa.array(kept[:, 0].astype(np.uint32)),
                "from": self._texts(kept[:, 0]),
                "to_id": pa.array(kept[:, 1].astype(np.uint32)),
                "to": self._texts(kept[:, 1]),
                "score": pa.array(scores[there]),
            }
        )

    def _texts(self, ids: Array) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(ids.reshape(-1).astype(np.int32)), self._tokens)


def _places(shape: tuple[int, ...]) -> list[Array]:
    """Of every entry of an array, in order: where it stands along each axis."""
    return [np.broadcast_to(axis, shape).reshape(-1) for axis in np.ogrid[tuple(map(slice, shape))]]


def _named(places: Array, names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int8)), pa.array(names))


def _check(shard: Shard, kind: str, ids: Array, scores: Array, d_vocab: int) -> None:
    falling = scores * SIGNS
    if sound(ids, falling, d_vocab):
        return
    for at in np.ndindex(*ids.shape[:-1]):
        if said := fault(ids[at], falling[at], d_vocab):
            raise damaged(shard.file.path, f"is damaged: {kind} {at[0]} {said}")
