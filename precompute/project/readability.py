"""Measure how well a list of pairs can be read: whether a person could name what the head does from its first pairs.

A pair can be read if its two words are alike (buy, purchase), or if other pairs are like it on both sides (Chile,
Chilean beside Spain, Spanish). docs/definitions.md says how well this agrees with people's ratings.
"""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Embedding, Float64

PAIRS_READ = 20  # first pairs of a list, which a person reads
LIKE_IT = 3  # how many of the most similar other pairs a pair is compared with

Ids = NDArray[np.integer]


def readability(pairs: Ids, source: Embedding, target: Embedding) -> np.float32:
    """Return the mean of how well each of the first pairs (n, 2) can be read, from -1 to 1; NaN without a pair.

    Let c be the cosine of two tokens' centred embeddings, 0 for a token without a direction. The value of a pair (a, b)
    is the larger of two numbers: c(a, b), and the mean of c(a, a') · c(b, b') over the three other pairs (a', b') for
    which this product is largest. For c(b, b') the embeddings of `target` are used, otherwise those of `source`.
    """
    first = pairs[:PAIRS_READ].astype(np.int64)
    if not len(first):
        return np.float32(np.nan)
    A, B = _directions(source, first[:, 0]), _directions(target, first[:, 1])  # (n, d_model)
    like = (A @ A.T) * (B @ B.T)  # (n, n)
    np.fill_diagonal(like, -np.inf)
    best = np.sort(like, axis=1)[:, ::-1][:, : min(LIKE_IT, len(first) - 1)]
    alike = (A * _directions(source, first[:, 1])).sum(axis=1)  # (n,)
    return np.float32(np.maximum(alike, best.mean(axis=1)).mean() if best.size else alike.mean())


def _directions(embedding: Embedding, tokens: NDArray[np.int64]) -> Float64:
    """Return the embeddings (tokens, d_model), centred and of length one."""
    centred = embedding.rows[tokens].astype(np.float64) - embedding.mean
    norm = embedding.centred_norm[tokens, None]
    return np.divide(centred, norm, out=np.zeros_like(centred), where=norm > 0)
