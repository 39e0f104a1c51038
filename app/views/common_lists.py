"""The vectors that list a token of every word, over all layers at once, the best ranks first.
Which tokens stand for a word is for search.py."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.views.places import Entries, check_listed, entries, kind_of
from app.views.slices import Shards
from precompute.index.shard_reader import Array
from precompute.shape import ENDS, Shape

_NONE = np.iinfo(np.uint32).max  # the rank of a token that is not listed


@dataclass(frozen=True, slots=True, eq=False)
class Common:
    """Lists that hold all words: of each word the best rank, from 0, and whose; `vector` numbers a layer's vectors."""

    layer: Array  # (n,)
    vector: Array
    end: Array
    ranks: Array  # (n, words)
    tokens: Array

    def __len__(self) -> int:
        return len(self.layer)

    def at(self, window: slice) -> "Common":
        parts = (self.layer, self.vector, self.end, self.ranks, self.tokens)
        return Common(*(part[window] for part in parts))


def common_lists(shards: Shards, shape: Shape, words: Sequence[Sequence[int]], lens: int, kind: int | None) -> Common:
    """By the sum of the best ranks, then the upper layer, then kind, index and end; `kind` numbers Shape.kinds."""
    kinds = kind_of(shape)[0]
    keys = np.empty(0, np.int64)  # lists, numbered by end, layer and vector
    ranks, tokens = (np.empty((0, len(words)), np.uint32) for _ in range(2))
    for at, word in enumerate(words):
        best, whose = _best(shards, shape, word, lens)
        if not at:
            keys = np.flatnonzero(best != _NONE)
            if kind is not None:
                keys = keys[kinds[keys % len(kinds)] == kind]
            ranks, tokens = (np.empty((len(keys), len(words)), np.uint32) for _ in range(2))
        held = np.flatnonzero(best[keys] != _NONE)
        keys, ranks, tokens = keys[held], ranks[held], tokens[held]
        ranks[:, at], tokens[:, at] = best[keys], whose[keys]
        if not len(keys):
            break
    place, vector = np.divmod(keys, len(kinds))
    end, nth = np.divmod(place, max(1, len(shards)))
    layer = np.array([*shards], np.int64)[nth]
    order = np.lexsort((end, vector, -layer, ranks.sum(axis=1)))
    return Common(layer[order], vector[order], end[order], ranks[order], tokens[order])


def check_common(shards: Shards, shape: Shape, found: Common, lens: int) -> None:
    """That the tokens do stand in those lists; if not, the layer is damaged."""
    for rank, token in zip(found.ranks.T, found.tokens.T, strict=True):  # of each word
        check_listed(shards, shape, lens, Entries(found.layer, found.end, found.vector, rank), token)


def _best(shards: Shards, shape: Shape, word: Sequence[int], lens: int) -> tuple[Array, Array]:
    """Of every list: the best rank that a token of the word has in it, and that token."""
    n_vectors = len(kind_of(shape)[0])
    nth = np.zeros(shape.n_layers, np.int64)
    nth[[*shards]] = np.arange(len(shards))
    best = np.full(len(ENDS) * len(shards) * n_vectors, _NONE, np.uint32)
    whose = np.zeros(len(best), np.uint32)
    for token in word:
        found = entries(shards, shape, token, lens)
        keys = (found.end * len(shards) + nth[found.layer]) * n_vectors + found.vector
        better = np.flatnonzero(found.rank < best[keys])
        best[keys[better]] = found.rank[better]
        whose[keys[better]] = token
    return best, whose
