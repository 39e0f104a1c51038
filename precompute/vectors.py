"""Top-k token lists of parameter vectors: a float32 product on the device, then exact selection. Knows no model.

Lists are (n, lens, end, k) in the order of shape.LENSES and shape.ENDS.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from precompute import vector_kernel
from precompute.embedding import Embedding, Float32
from precompute.errors import BadWeights
from precompute.exact import dot
from precompute.rounding import LARGEST, TINY, gamma

BLOCK = 256  # vectors per product: the scores of a block are d_vocab * BLOCK * 4 bytes
MARGIN = 32  # extra candidates taken from a device's own top-k


@dataclass(frozen=True)
class Lists:
    ids: NDArray[np.uint32]  # (n, 2, 2, k)
    scores: Float32  # (n, 2, 2, k)


class Projector:
    """Projects vectors onto one vocabulary matrix. Holds what all vectors share."""

    def __init__(self, embedding: Embedding, k: int) -> None:
        self.embedding = embedding
        d_vocab, d_model = embedding.rows.shape
        self.k = min(k, d_vocab)
        # A score is off by at most unit * slack: unit belongs to the vector, slack to the token and lens. The small
        # constant in each covers underflow. 16 roundings more than the product has cover the comparisons themselves.
        self._least = (d_model * TINY) ** 0.5
        self._gamma = gamma(d_model + 16)
        mean_norm = float(np.linalg.norm(embedding.mean))
        dot_slack = embedding.norm + self._least
        cosine_slack = (embedding.norm + mean_norm + self._least) * embedding.inverse_norm
        self.slack = np.stack([dot_slack, cosine_slack]).astype(np.float32)
        padding = -d_vocab % vector_kernel.GROUP
        padded = np.pad(self.slack, ((0, 0), (0, padding)))
        self.group_slack = padded.reshape(2, -1, vector_kernel.GROUP).max(axis=2)
        self._inverse = embedding.inverse_norm

    def scores(self, V: torch.Tensor) -> torch.Tensor:
        """V (n, d_model) on the device -> V W_Eᵀ (n, d_vocab), float32."""
        return V @ self.embedding.on_device.T

    def lists(self, V: torch.Tensor, keep: torch.Tensor | None = None) -> Lists:
        """Lists of V (n, d_model), in blocks. `keep` (n, d_vocab) receives the scores of the product."""
        n = len(V)
        ids = np.empty((n, 2, 2, self.k), np.uint32)
        scores = np.empty((n, 2, 2, self.k), np.float32)
        for rows in blocks(n):
            block = V[rows].to(self.embedding.on_device.device)
            if keep is None:
                product = self.scores(block)
            else:
                product = torch.mm(block, self.embedding.on_device.T, out=keep[rows])
            self.select(block, product, ids[rows], scores[rows])
        return Lists(ids, scores)

    def select(self, V: torch.Tensor, product: torch.Tensor, ids: NDArray[np.uint32], scores: Float32) -> None:
        """The lists of a block from its product with the vocabulary, written into `ids` and `scores`."""
        vectors = np.ascontiguousarray(V.cpu().numpy())
        units, mean_dots = self._units(vectors), self._mean_dots(vectors)
        if product.device.type == "cpu":
            self._select(product.numpy(), vectors, units, mean_dots, ids, scores)
            return
        raise AssertionError(product.device)

    def _select(
        self,
        product: Float32,
        vectors: Float32,
        units: Float32,
        mean_dots: NDArray[np.float64],
        ids: NDArray[np.uint32],
        scores: Float32,
    ) -> None:
        vector_kernel.select(
            product, vectors, units, mean_dots, self.embedding.rows, self._inverse, self.slack, self.group_slack, ids, scores
        )

    def _units(self, vectors: Float32) -> Float32:
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not np.isfinite(norms).all() or norms.max(initial=0) * (self.slack[0].max() + 1) > LARGEST:
            raise BadWeights("weights so large that scores overflow float32: no list can be made from them")
        return (self._gamma * norms + self._least).astype(np.float32)

    def _mean_dots(self, vectors: Float32) -> NDArray[np.float64]:
        """v · mean in float64, each vector by itself so that the result does not depend on the block."""
        return np.einsum("nd,d->n", vectors.astype(np.float64), self.embedding.mean)


def blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))
