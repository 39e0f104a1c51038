"""Passes over rows of scores on the CPU: the first tokens of a row, and how many tokens have more than a given score.
Other devices use torch; vocabulary.py chooses.
"""
# mypy: allow-untyped-decorators

import numpy as np
from numba import njit
from numpy.typing import NDArray

from precompute.vector_kernel import order_key

GROUP = 64  # tokens whose largest score is looked at first
NOTHING = np.float32(-np.inf)


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _largest(row: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """out[g] = the largest score of group g."""
    for g in range(len(out)):
        start = np.uint64(g * GROUP)  # unsigned: no check for counting from the end, so the loop can be vectorised
        most = NOTHING
        if g * GROUP + GROUP <= len(row):
            for t in range(np.uint64(GROUP)):
                most = max(most, row[start + t])
        else:
            for t in range(g * GROUP, len(row)):
                most = max(most, row[t])
        out[g] = most


@njit(cache=True, nogil=True)
def first_tokens(scores: NDArray[np.float32], ids: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Fills ids and values (n, k) with the k largest of each row of scores (n, d_vocab), ties by the smaller id.

    The k-th largest of the groups' maxima is a lower bound of the k-th largest score. A row with a score that is no
    number gets none.
    """
    n, d_vocab = scores.shape
    k = ids.shape[1]
    groups = (d_vocab + GROUP - 1) // GROUP
    largest = np.empty(groups, np.float32)
    keys = np.empty(d_vocab, np.int64)
    for r in range(n):
        _largest(scores[r], largest)
        floor = NOTHING
        if k <= groups:
            floor = np.partition(largest, groups - k)[groups - k]
        count = 0
        for g in range(groups):
            if largest[g] >= floor:
                for t in range(g * GROUP, min(g * GROUP + GROUP, d_vocab)):
                    if scores[r, t] >= floor:
                        keys[count] = order_key(scores[r, t], t)
                        count += 1
        keys[:count].sort()
        for rank in range(k):
            token = keys[rank] & 0xFFFFFFFF if rank < count else rank
            ids[r, rank] = token
            values[r, rank] = scores[r, token] if rank < count else np.float32(np.nan)


@njit(cache=True, nogil=True)
def count_above(scores: NDArray[np.float32], bounds: NDArray[np.float32], out: NDArray[np.int64]) -> None:
    """out[r] = how many scores of row r are larger than bounds[r]."""
    for r in range(len(scores)):
        count = 0
        bound = bounds[r]
        for score in scores[r]:
            count += score > bound
        out[r] = count
