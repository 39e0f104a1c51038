"""Compute how similar lists are, and which lens reads best, by the definitions in FORMAT.md, to check what the build
stores."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.shape import DIRECTION_KINDS
from lexiscope.precompute.verify.brute_force import BruteForce, Ids
from lexiscope.precompute.weights.difference import Difference

SIMILARITY_K, READ_FIRST, HUB_FACTOR = 100, 10, 10  # as FORMAT.md defines them
LAST_BIT = 4e-7  # relative error of a score
SMALLEST_FLOAT32 = 1.5e-45  # the most that rounding to float32 adds to a number near 0
SIGNS = (1, -1)  # multiplied with these, the scores of either end fall along its list

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # (n,) each


def partners(n: int) -> Ids:
    """Return the numbers of the second lists with which first lists are compared when they are shuffled."""
    order = np.random.RandomState(0).permutation(n).tolist()
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return np.array([following[number] for number in range(n)], np.int64)


def bounds(brute: BruteForce, layer: int, kinds: tuple[str, str], rows: tuple[Ids, Ids], lens: str, end: int) -> Bounds:
    """Return the least and the largest possible similarity of the top of these vectors of the first kind with one end
    of these of the second: the last bit of a score may decide whether a token is in a list."""
    surely_first, maybe_first = _listed(brute, layer, kinds[0], rows[0], lens, 1)
    surely_second, maybe_second = _listed(brute, layer, kinds[1], rows[1], lens, SIGNS[end])
    n = min(SIMILARITY_K, brute.model.shape.d_vocab)
    least = (surely_first & surely_second).sum(axis=1)
    most = np.minimum((maybe_first & maybe_second).sum(axis=1), n)
    return least / (2 * n - least) - LAST_BIT, most / (2 * n - most) + LAST_BIT


def vectors_that_count(shard: Shard, stored: Stored, kind: str) -> NDArray[np.bool_]:
    """Return which vectors of a kind have lists that count, (n,): in a difference those that changed, of directions
    those that exist."""
    norms = shard.all_norms(kind)
    return norms > 0 if stored.difference or kind in DIRECTION_KINDS else np.ones(len(norms), np.bool_)


def lists_that_count(shard: Shard, stored: Stored, kind: str) -> NDArray[np.integer]:
    """Return the stored lists of a kind that count, (n, L, E, k)."""
    return shard.array(f"{kind}.ids")[vectors_that_count(shard, stored, kind)]


def best_lens(index: Index, words: NDArray[np.bool_]) -> str:
    """Return the lens that reads best by the stored lists of all layers, which are checked themselves."""
    stored, d_vocab = index.stored, index.shape.d_vocab
    shares: dict[str, Fraction] = {}
    for at, lens in enumerate(stored.lenses):
        in_lists, among_first, n_lists = np.zeros(d_vocab, np.int64), np.zeros(d_vocab, np.int64), 0
        for layer in index.layers:
            for kind in stored.counted_kinds:
                ids = lists_that_count(index.shard(layer), stored, kind)[:, at]  # (n, E, k)
                in_lists += np.bincount(ids.ravel(), minlength=d_vocab)
                among_first += np.bincount(ids[..., :READ_FIRST].ravel(), minlength=d_vocab)
                n_lists += 2 * len(ids)
        is_hub = in_lists > HUB_FACTOR * stored.k / d_vocab * n_lists
        shares[lens] = Fraction(int(among_first[words & ~is_hub].sum()), max(1, int(among_first.sum())))
    return next(lens for lens in stored.lenses if shares[lens] == max(shares.values()))


def _listed(
    brute: BruteForce, layer: int, kind: str, numbers: Ids, lens: str, sign: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which tokens surely are, and which may be, among the first SIMILARITY_K: (len(numbers), d_vocab) each."""
    vectors = brute.vectors(layer, kind, numbers)
    scores = sign * (vectors @ brute.embedding(kind, lens).T)
    k = min(SIMILARITY_K, scores.shape[1])
    last = np.partition(scores, -k, axis=1)[:, [-k]]
    doubt = LAST_BIT * np.abs(last) + 1e-12 * np.abs(scores).max(axis=1, keepdims=True) + SMALLEST_FLOAT32
    # In a difference, vectors of 0 share no token.
    counts = vectors.any(axis=1, keepdims=True) | (not isinstance(brute.model, Difference))
    return (scores > last + doubt) & counts, (scores >= last - doubt) & counts
