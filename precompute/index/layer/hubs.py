"""Find hubs, which are tokens in an unusual share of all lists, and the lens whose lists read best.

A token is a hub, under a lens, if it is in more than HUB_FACTOR times as many of the lists (of all vectors, both ends)
as it would be if lists were drawn at random. The lens that reads best is the one with the largest share of readable
words among the first TOKENS_SEEN tokens of all these lists: whole words (`tokens.whole_words`) that are not hubs of
that lens. Of equal lenses it is the first. A layer that is damaged or missing is not counted in either.
"""

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS, HUB_FACTOR

TOKENS_SEEN = 10  # tokens of a list that a reader sees at first sight

Counts = NDArray[np.int64]  # (d_vocab,) by token


def hubs_of_lists(shards: Sequence[Shard], stored: Stored, lens: str) -> frozenset[int]:
    """Return the tokens that are hubs under a lens, counted over all lists of vectors of these layers."""
    counts, n_lists = np.zeros(stored.shape.d_vocab, np.int64), 0
    for shard in shards:
        try:
            in_layer: Counts = np.sum([shard.lists_of_tokens(lens, end) for end in ENDS], axis=0)
        except IndexFault:
            continue
        counts += in_layer
        n_lists += int(in_layer.sum()) // stored.k  # in a difference, only lists of vectors that changed count
    return _hubs(counts, n_lists, stored.k)


def lists_of_tokens(shards: Sequence[Shard], stored: Stored, lens: str) -> Counts:
    """Return how many lists of vectors of these layers hold each token, (d_vocab,): of all kinds, at both ends."""
    counts: Counts = np.zeros(stored.shape.d_vocab, np.int64)
    for shard in shards if stored.kinds else ():
        with suppress(IndexFault):
            counts += shard.all_lists_of_tokens(lens)
    return counts


def hubs_among_nearest(ids: Array) -> frozenset[int]:
    """Return the tokens that are hubs in the lists of nearest tokens, ids (d_vocab, nearest)."""
    d_vocab, nearest = ids.shape
    known = ids[ids < d_vocab]  # a damaged list may hold other numbers
    return _hubs(np.bincount(known, minlength=d_vocab), d_vocab, nearest)


def lens_that_reads_best(shards: Sequence[Shard], stored: Stored, words: NDArray[np.bool_]) -> str:
    """Return the lens that reads best, as defined at the top of this module; `words` (d_vocab,) flags the whole
    words."""
    if len(stored.lenses) == 1:
        return stored.lens
    shares = {lens: _readable_share(shards, stored, lens, words) for lens in stored.lenses}
    return max(shares, key=lambda lens: shares[lens])  # of equal lenses the first


def _readable_share(shards: Sequence[Shard], stored: Stored, lens: str, words: NDArray[np.bool_]) -> Fraction:
    readable = words.copy()
    readable[[*hubs_of_lists(shards, stored, lens)]] = False
    n_readable = n_tokens = 0
    for shard in shards:
        try:
            counts = shard.lists_by_first_tokens(lens, TOKENS_SEEN)
        except IndexFault:
            continue
        n_readable += int(counts[readable].sum())
        n_tokens += int(counts.sum())
    return Fraction(n_readable, max(1, n_tokens))


def _hubs(counts: Counts, n_lists: int, length: int) -> frozenset[int]:
    """Return the tokens that are hubs, from `counts`, how many of `n_lists` lists of this length hold each token."""
    by_chance = n_lists * length  # expected count times d_vocab
    return frozenset(np.flatnonzero(counts * len(counts) > HUB_FACTOR * by_chance).tolist())
