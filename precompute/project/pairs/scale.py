"""The factors of a head's matrix at a size that float32 holds: where a product would vanish, powers of two keep it.
Which pairs are largest does not depend on such a scale; scores are computed from the weights themselves (exact.py)."""

from dataclasses import replace

import numpy as np
import torch

from precompute.project.embedding import Embedding, Float32
from precompute.project.pairs.space import Factor, largest

SMALL = 2.0**-60  # a factor whose largest value is smaller is made anew: small values of it may be lost
LARGEST_EXPONENT = 100  # of scaled weights
NOTHING = 2.0**-152  # a score below it is 0 in float32, four times over


def factor(product: torch.Tensor, W: Float32, embedding: Embedding, lens: str) -> Factor | None:
    """One side of a matrix under a lens, from the float32 product (d_head, d_vocab); None if it is surely zero."""
    if not W.any() or not (embedding.norm if lens == "dot" else embedding.inverse_norm).any():
        return None
    made = Factor.of(product, W, embedding, lens)
    if made.largest >= SMALL and (lens == "dot" or largest(product) >= SMALL):
        return made
    return _scaled(product, W, embedding, lens)


def surely_nothing(A: Factor, B: Factor) -> bool:
    """Whether every score is so small that float32 makes it 0."""
    scale = A.scale * B.scale
    return A.largest * B.largest / scale < NOTHING and _reach(A) * _reach(B) / scale < NOTHING


def _scaled(product: torch.Tensor, W: Float32, embedding: Embedding, lens: str) -> Factor:
    """Weights such that the product is about 1; under the cosine lens norms such that the directions' product is."""
    weight = _exponent(float(np.abs(W).max()))
    up = min(-weight - _exponent(float(embedding.norm.max())), LARGEST_EXPONENT - weight)
    W = np.ldexp(W, up)
    rows = embedding.on_device
    again = torch.from_numpy(np.ascontiguousarray(W.T)).to(rows.device) @ rows.T
    down = 0
    if lens == "cosine":
        down = _exponent(float(np.linalg.norm(W.astype(np.float64))))
        embedding = replace(embedding, centred_norm=np.ldexp(embedding.centred_norm, down))
    return replace(Factor.of(again.to(product), W, embedding, lens), scale=2.0 ** (up - down))


def _exponent(x: float) -> int:
    return int(np.frexp(x)[1])


def _reach(side: Factor) -> float:
    norms = torch.linalg.vector_norm(side.values, dim=1, dtype=torch.float64)
    return float((norms + side.error.double()).max())
