"""Compute one side of a head's matrix under a lens, A = E W (d_vocab, d_head), from the embeddings E and a factor W of
the matrix: in float32, with a bound of its error.

Where products would underflow in float32, the result is scaled by a power of two. Which pairs are largest does not
depend on such a scale; scores themselves are computed from the weights (exact.py).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from lexiscope.precompute.project.embedding import Embedding, Float32, Float64
from lexiscope.precompute.project.rounding import TINY, gamma

# A factor whose largest value is smaller is computed again, scaled: small values of it may be lost.
SMALL_FACTOR = 2.0**-60
LARGEST_EXPONENT = 100  # largest exponent of scaled weights
ZERO_SCORE = 2.0**-152  # a score below this is 0 in float32, with a factor of 4 to spare


@dataclass(frozen=True)
class Factor:
    values: torch.Tensor  # (d_vocab, d_head)
    error: torch.Tensor  # (d_vocab,) how far a row may be from the true one, as a vector
    scale: float = 1.0  # a power of two: values and error are this many times those of the weights

    @cached_property
    def largest(self) -> float:
        """Return the largest absolute value of all entries."""
        return _largest(self.values)

    @classmethod
    def of(cls, product: torch.Tensor, W: Float32 | Float64, embedding: Embedding, lens: str) -> "Factor":
        """Return the side, without scaling, from `product` (d_head, d_vocab): the float32 product Wᵀ Eᵀ, for which W
        (d_model, d_head) may have been rounded."""
        d_model = W.shape[0]
        size = float(np.linalg.norm(W.astype(np.float64)))
        if lens == "dot":
            values = product.T.contiguous()
            error = gamma(d_model + 3) * embedding.norm * size
        else:
            mean = torch.from_numpy(embedding.mean @ W.astype(np.float64)).to(product)
            inverse = torch.from_numpy(embedding.inverse_norm).to(product)
            values = (product - mean[:, None]).mul_(inverse).T.contiguous()
            reach = embedding.norm + float(np.linalg.norm(embedding.mean))
            error = (gamma(d_model + 9) * reach * size + d_model * TINY) * embedding.inverse_norm
        return cls(values, torch.from_numpy(error + d_model * TINY).to(product))


def scaled_factor(product: torch.Tensor, W: Float32 | Float64, embedding: Embedding, lens: str) -> Factor | None:
    """Return the side as Factor.of does, but scaled where float32 needs that; return None if it is surely all zeros."""
    if not W.any() or not (embedding.norm if lens == "dot" else embedding.inverse_norm).any():
        return None
    factor = Factor.of(product, W, embedding, lens)
    if factor.largest >= SMALL_FACTOR and (lens == "dot" or _largest(product) >= SMALL_FACTOR):
        return factor
    return _scaled_up(product, W, embedding, lens)


def all_scores_are_zero(A: Factor, B: Factor) -> bool:
    """Return True if every score is so small that float32 makes it 0."""
    scale = A.scale * B.scale
    return A.largest * B.largest / scale < ZERO_SCORE and _largest_norm(A) * _largest_norm(B) / scale < ZERO_SCORE


def underflow_error(A: Factor, B: Factor) -> float:
    """Return a bound of the error that underflow causes in any score: in the search, or when the exact score is rounded
    to float32."""
    return TINY * max(1.0, A.scale * B.scale)


def _scaled_up(product: torch.Tensor, W: Float32 | Float64, embedding: Embedding, lens: str) -> Factor:
    """Return the side made from weights that are scaled such that the product is about 1. Under the cosine lens, norms
    are scaled, too, such that the products of directions are about 1."""
    weight = _exponent(float(np.abs(W).max()))
    up = min(-weight - _exponent(float(embedding.norm.max())), LARGEST_EXPONENT - weight)
    W = np.ldexp(W, up)
    rows = embedding.on_device
    scaled_product = torch.from_numpy(np.ascontiguousarray(W.T, np.float32)).to(rows.device) @ rows.T
    down = 0
    if lens == "cosine":
        down = _exponent(float(np.linalg.norm(W.astype(np.float64))))
        embedding = replace(embedding, centred_norm=np.ldexp(embedding.centred_norm, down))
    return replace(Factor.of(scaled_product.to(product), W, embedding, lens), scale=2.0 ** (up - down))


def _exponent(x: float) -> int:
    return int(np.frexp(x)[1])


def _largest(values: torch.Tensor) -> float:
    low, high = torch.aminmax(values)
    return max(-float(low), float(high))


def _largest_norm(side: Factor) -> float:
    norms = torch.linalg.vector_norm(side.values, dim=1, dtype=torch.float64)
    return float((norms + side.error.double()).max())
