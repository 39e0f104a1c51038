"""Turn vectors of two models into rows whose dot products are correlations: those between the vectors' projections onto
the common tokens, which are never computed themselves.

With both embeddings centred over the tokens and G_XY = W_Xᵀ W_Y, r(a, b) = a G_AB bᵀ / sqrt(a G_AA aᵀ · b G_BB bᵀ).
With G_XX = S_X S_Xᵀ and S_A⁻¹ G_AB S_B⁻ᵀ = P diag(c) Qᵀ (the canonical correlations c) this is the dot product of a S_A
P / |a S_A| and b S_B Q / |b S_B|, weighted by c. So each vector is multiplied with one small matrix. All of this is
float64.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.compare.common_tokens import CommonTokens

CHUNK = 4096  # tokens multiplied at once
SMALLEST_EIGENVALUE = 1e-13  # as a share of the largest; what is below is rounding
SMALLEST_SPREAD = 1e-6  # share of the largest spread for a vector's length; a projection with less is constant


@dataclass(frozen=True)
class Grams:
    """The products of two models' embeddings with themselves and each other, over the tokens they share, and the mean
    embeddings."""

    AA: Tensor  # (d_A, d_A) of the centred embeddings
    BB: Tensor  # (d_B, d_B)
    AB: Tensor  # (d_A, d_B)
    mean_a: Tensor  # (d_A,)
    mean_b: Tensor  # (d_B,)
    tokens: int

    @classmethod
    def of(cls, W_a: Tensor, W_b: Tensor, common: CommonTokens, device: torch.device, pool: Executor) -> "Grams":
        """Compute these products of W_a (d_vocab_A, d_A) and W_b (d_vocab_B, d_B), both float32."""
        mean_a, mean_b = (_mean(W, ids).to(device) for W, ids in ((W_a, common.a), (W_b, common.b)))

        def products(start: int) -> tuple[Tensor, Tensor, Tensor]:
            A, B = (
                _rows(W, ids, start).to(mean).sub_(mean)
                for W, ids, mean in ((W_a, common.a, mean_a), (W_b, common.b, mean_b))
            )
            return A.T @ A, B.T @ B, A.T @ B

        parts = pool.map(products, range(0, len(common), CHUNK))
        AA, BB, AB = next(parts)
        for part in parts:
            for total, G in zip((AA, BB, AB), part, strict=True):
                total += G
        return cls(AA, BB, AB, mean_a, mean_b, len(common))

    def kernel(self) -> Tensor:
        """Return K_AB = (W_Aᵀ W_B)(W_Bᵀ W_B)⁻¹, (d_A, d_B), of embeddings that are not centred: states of A times this
        kernel are states of B."""
        AB = self.AB + self.tokens * torch.outer(self.mean_a, self.mean_b)
        BB = self.BB + self.tokens * torch.outer(self.mean_b, self.mean_b)
        inverse: Tensor = torch.linalg.pinv(BB, rtol=SMALLEST_EIGENVALUE, hermitian=True)
        return AB @ inverse


@dataclass(frozen=True)
class UnitRows:
    """Turn the vectors of one model into rows whose dot products with the rows of the other model are correlations."""

    directions: Tensor  # (d, rank): the length of v @ directions is the spread of v's projection
    weights: Tensor  # (width,): factors of the first coordinates of v @ directions, once it has length one
    largest: float  # largest spread that the projection of a vector of length 1 can have

    @property
    def width(self) -> int:
        return len(self.weights)

    def rows(self, V: Tensor) -> Tensor:
        """Turn vectors (n, d), float32, into rows (n, width), float64; a vector with a constant projection gives a row
        of zeros."""
        V = V.to(self.directions)
        coordinates = V @ self.directions
        length = torch.linalg.vector_norm(coordinates, dim=1)
        constant = length <= SMALLEST_SPREAD * self.largest * torch.linalg.vector_norm(V, dim=1)
        scale = torch.where(constant, 0.0, 1.0 / length)
        return coordinates[:, : self.width].mul_(self.weights).mul_(scale[:, None])


def unit_rows(grams: Grams, pool: Executor) -> tuple[UnitRows, UnitRows]:
    """Return what turns vectors of A into rows, and the same for B."""
    (half_a, inverse_a), (half_b, inverse_b) = pool.map(_halves, (grams.AA, grams.BB))
    P, c, Q = torch.linalg.svd(inverse_a.T @ grams.AB @ inverse_b)
    largest_a, largest_b = (float(torch.linalg.vector_norm(half, dim=0).max()) for half in (half_a, half_b))
    return UnitRows(half_a @ P, c, largest_a), UnitRows(half_b @ Q.T, torch.ones_like(c), largest_b)


def feature_rows(V: Tensor) -> Tensor:
    """Return the vectors V (n, d_model), each centred over its coordinates and set to length 1, or to zeros if its
    coordinates are all equal.

    float32 is enough, because these rows are only used for the mean of |r|.
    """
    centred = V - V.mean(dim=1, keepdim=True, dtype=torch.float64).to(V)
    length = torch.linalg.vector_norm(centred, dim=1, dtype=torch.float64)
    constant = length <= SMALLEST_SPREAD * torch.linalg.vector_norm(V, dim=1, dtype=torch.float64)
    return centred.mul_(torch.where(constant, 0.0, 1.0 / length).to(V)[:, None])


def _halves(G: Tensor) -> tuple[Tensor, Tensor]:
    """Return S and S⁻ᵀ, both (d, rank), of a Gram matrix G = S Sᵀ."""
    values, vectors = torch.linalg.eigh(G)
    kept = values > max(float(values[-1]) * SMALLEST_EIGENVALUE, np.finfo(np.float64).tiny)
    root = values[kept].sqrt()
    return vectors[:, kept] * root, vectors[:, kept] / root


def _mean(W: Tensor, ids: NDArray[np.int64]) -> Tensor:
    total = torch.zeros(W.shape[1], dtype=torch.float64)
    for start in range(0, len(ids), CHUNK):
        total += _rows(W, ids, start).sum(dim=0, dtype=torch.float64)
    return total / len(ids)


def _rows(W: Tensor, ids: NDArray[np.int64], start: int) -> Tensor:
    """Return the embeddings of a chunk of the tokens `ids`, from position `start` on: (chunk, d)."""
    return W.index_select(0, torch.from_numpy(ids[start : start + CHUNK]))
