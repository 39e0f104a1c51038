"""Measure how similar two lists of tokens are and, to compare with chance, how similar the lists of different neurons
or subheads are."""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Float32

Ids = NDArray[np.integer]


def jaccard(a: Ids, b: Ids) -> Float32:
    """Return the paper's Sim_k, the Jaccard index of two lists of k tokens, for n pairs of lists: (n, k) each ->
    (n,)."""
    shared = in_common(a, b)
    return np.asarray(shared / (a.shape[1] + b.shape[1] - shared), np.float32)


def in_common(a: Ids, b: Ids) -> NDArray[np.int64]:
    """Count the tokens that two lists of k tokens have in common, for n pairs of lists: (n, k) each -> (n,)."""
    both = np.sort(np.concatenate([a, b], axis=1), axis=1)
    return np.asarray((both[:, 1:] == both[:, :-1]).sum(axis=1))


def similarities(first: Ids, second: Ids) -> tuple[Float32, Float32]:
    """Return Sim_k of the top list of each first vector with the top and with the bottom list of its second vector, (n,
    lenses, ends), from their lists (n, lenses, ends, k). Return the same for other pairs, in which `partners` chooses
    the second vector."""
    n, lenses, ends, _ = first.shape
    matched, shuffled = np.empty((n, lenses, ends), np.float32), np.empty((n, lenses, ends), np.float32)
    partner = partners(n)
    for lens, end in np.ndindex(lenses, ends):
        top, other = first[:, lens, 0], second[:, lens, end]
        matched[:, lens, end] = jaccard(top, other)
        shuffled[:, lens, end] = jaccard(top, other[partner])
    return matched, shuffled


def partners(n: int, seed: int = 0) -> NDArray[np.int64]:
    """Return for each of n numbers a random other one, (n,), the same on every machine (the number itself if there is
    no other). All numbers are put in random order, and each goes with the next one; numpy promises that the stream of
    RandomState never changes."""
    order = np.random.RandomState(seed).permutation(n)
    partner = np.empty(n, np.int64)
    partner[order] = np.roll(order, -1)
    return partner
