"""All scores of a vector, or of a head's matrix, straight from the weights in float64: the slow way, to check the fast.

Shares no code with the projection that it checks: mean, norms and factors are written down here once more.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from precompute.index.tokens import distinct_classes, whole_words
from precompute.shape import LENSES, SIDES
from precompute.weights.architectures.base import Model

Ids = NDArray[np.int64]
Float64 = NDArray[np.float64]

FACTORS = {"vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}

# A token whose embedding is the mean row, up to rounding, has no direction: all its cosine scores are 0.
# So is one whose centred norm is below this share of what it was computed from, or has no inverse in float32.
ROUNDING_SHARE = 1e-9
SMALLEST_NORM = 1e-37


@dataclass(frozen=True)
class HeadMatrix:
    left: Float64  # (d_vocab, d_head)
    right: Float64  # (d_vocab, d_head): the matrix is left rightᵀ

    def rows(self, tokens: Ids) -> Float64:
        return self.left[tokens] @ self.right.T  # (len(tokens), d_vocab)

    def at(self, pairs: Ids) -> Float64:
        """(n, 2) -> (n,)"""
        scores: Float64 = np.einsum("nd,nd->n", self.left[pairs[:, 0]], self.right[pairs[:, 1]])
        return scores


class BruteForce:
    def __init__(self, model: Model, tokens: list[bytes]) -> None:
        self.model = model
        self.surface, self.words = distinct_classes(tokens), whole_words(tokens)
        embeddings = {"reads": model.W_E} | ({} if model.shape.tied else {"writes": model.W_U})
        self._lensed = {
            (side, lens): _lensed(W.numpy().astype(np.float64), lens)
            for side, W in embeddings.items()
            for lens in LENSES
        }

    def embedding(self, kind: str, lens: str) -> Float64:
        """(d_vocab, d_model): what vectors of this kind are multiplied with under the lens."""
        return self._lensed["reads" if self.model.shape.tied else SIDES[kind], lens]

    def vectors(self, layer: int, kind: str, numbers: Ids) -> Float64:
        return self.model.vectors(layer, kind)[numbers].numpy().astype(np.float64)  # (len(numbers), d_model)

    def head(self, layer: int, matrix: str, head: int, lens: str) -> HeadMatrix:
        left, right = FACTORS[matrix]
        W_left, W_right = (factor[head].numpy().astype(np.float64) for factor in self.model.factors(layer, matrix))
        return HeadMatrix(self.embedding(left, lens) @ W_left, self.embedding(right, lens) @ W_right.T)

    def allowed(self, preset: str, tokens: Ids, others: Ids) -> NDArray[np.bool_]:
        """Whether a preset has the pair (token, other), for arrays that numpy can match up."""
        distinct = self.surface[tokens] != self.surface[others]
        words = self.words[tokens] & self.words[others]
        masks = {"all": np.ones_like(distinct), "distinct": distinct, "words": distinct & words}
        return np.asarray(masks[preset])


def _lensed(W: Float64, lens: str) -> Float64:
    """W (d_vocab, d_model), under the cosine lens every row centred and normalised."""
    if lens == "dot":
        return W
    mean = W.mean(axis=0)
    centred = W - mean
    norm = np.linalg.norm(centred, axis=1, keepdims=True)  # (d_vocab, 1)
    computed_from = np.linalg.norm(W, axis=1, keepdims=True) + np.linalg.norm(mean)
    has_direction = norm > ROUNDING_SHARE * computed_from + SMALLEST_NORM
    directions: Float64 = np.divide(centred, norm, out=np.zeros_like(centred), where=has_direction)
    return directions
