"""Compute the singular directions of a head by a whole decomposition of its whole matrix, in numpy."""

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


def by_full_svd(M: Float64, W: Float64, d_head: int) -> tuple[Float64, Float64, Float64]:
    """Decompose M (d_model, d_model): return what it reads and what it writes (d_head, d_model) each, and σ (d_head,),
    at most as many as M has. W (d_vocab, d_model), with which the latter is compared, decides the signs."""
    U, sigma, Vh = np.linalg.svd(M)
    ins, outs = U.T[:d_head], Vh[:d_head]
    scores = outs @ W.T
    largest = scores[np.arange(len(outs)), np.abs(scores).argmax(axis=1)]
    sign = np.where(largest < 0, -1.0, 1.0)[:, None]
    return ins * sign, outs * sign, sigma[:d_head]
