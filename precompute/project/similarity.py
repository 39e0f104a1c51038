"""Measure how similar two lists are, and, as what chance gives, how similar lists of different neurons or subheads
are."""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Float32

Ids = NDArray[np.integer]


def jaccard(a: Ids, b: Ids) -> Float32:
    """Return Sim_k: the Jaccard index of two lists of k tokens, (n, k) each -> (n,)."""
    shared = in_common(a, b)
    return np.asarray(shared / (a.shape[1] + b.shape[1] - shared), np.float32)


def in_common(a: Ids, b: Ids) -> NDArray[np.int64]:
    """Count the tokens that two lists of k have in common, (n, k) each -> (n,)."""
    both = np.sort(np.concatenate([a, b], axis=1), axis=1)
    return np.asarray((both[:, 1:] == both[:, :-1]).sum(axis=1))


def similarities(first: Ids, second: Ids) -> tuple[Float32, Float32]:
    """Return (n, L, E): Sim_k of the top of each first vector with the top and with the bottom of its second, from
    their lists (n, L, E, k); and the same with the second of another, `partners`."""
    n, lenses, ends, _ = first.shape
    matched, shuffled = np.empty((n, lenses, ends), np.float32), np.empty((n, lenses, ends), np.float32)
    partner = partners(n)
    for lens, end in np.ndindex(lenses, ends):
        top, other = first[:, lens, 0], second[:, lens, end]
        matched[:, lens, end] = jaccard(top, other)
        shuffled[:, lens, end] = jaccard(top, other[partner])
    return matched, shuffled


def partners(n: int, seed: int = 0) -> NDArray[np.int64]:
    """Return (n,): for each number a random other one (if there is another), the same on every machine: all numbers are
    put in random order, and each goes with the next one. numpy promises that the stream of RandomState never
    changes."""
    order = np.random.RandomState(seed).permutation(n)
    partner = np.empty(n, np.int64)
    partner[order] = np.roll(order, -1)
    return partner
