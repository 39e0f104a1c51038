"""Compute all scores of a vector, or of a head's matrix, straight from the weights in float64: the slow way, with which
the fast one is checked.

This shares no code with the projection that it checks: mean, norms and factors are defined here once more.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.tokens import distinct_classes, whole_words
from lexiscope.precompute.shape import LENSES, SIDES
from lexiscope.precompute.weights.difference import Difference, Parameters

Ids = NDArray[np.int64]
Float64 = NDArray[np.float64]

FACTORS = {"vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}

# A token whose embedding is the mean row, up to rounding, has no direction: all its cosine scores are 0. That holds if
# its centred norm is below this share of the numbers it was computed from, or has no inverse in float32.
ROUNDING_SHARE = 1e-9
SMALLEST_NORM = 1e-37


@dataclass(frozen=True)
class HeadMatrix:
    left: Float64  # (d_vocab, d)
    right: Float64  # (d_vocab, d): the matrix is left rightᵀ
    subtracted: float = 0.0  # for a difference: the largest score of those that were subtracted from each other

    def rows(self, tokens: Ids) -> Float64:
        return self.left[tokens] @ self.right.T  # (len(tokens), d_vocab)

    def at(self, pairs: Ids) -> Float64:
        """Return the scores (n,) of pairs (n, 2)."""
        scores: Float64 = np.einsum("nd,nd->n", self.left[pairs[:, 0]], self.right[pairs[:, 1]])
        return scores


class BruteForce:
    def __init__(self, model: Parameters, tokens: list[bytes]) -> None:
        self.model = model
        self.surface, self.words = distinct_classes(tokens), whole_words(tokens)
        embeddings = {"reads": model.W_E} | ({} if model.shape.tied else {"writes": model.W_U})
        self._lensed = {
            (side, lens): _lensed(W.numpy().astype(np.float64), lens)
            for side, W in embeddings.items()
            for lens in LENSES
        }

    def embedding(self, kind: str, lens: str) -> Float64:
        """Return the matrix (d_vocab, d_model) that vectors of this kind are multiplied with under the lens."""
        return self._lensed["reads" if self.model.shape.tied else SIDES[kind], lens]

    def vectors(self, layer: int, kind: str, numbers: Ids) -> Float64:
        """Return these vectors of a kind, (len(numbers), d_model)."""
        if isinstance(self.model, Difference):
            tuned, base = (each.vectors(layer, kind)[numbers] for each in (self.model.tuned, self.model.base))
            return (tuned - base).numpy().astype(np.float64)
        return self.model.vectors(layer, kind)[numbers].numpy().astype(np.float64)

    def norm_in_front(self, layer: int) -> tuple[Float64, bool]:
        """Return the gain of the norm in front of a layer's neurons (d_model,), and whether it centres."""
        assert not isinstance(self.model, Difference)
        gain, centres = self.model.norm_in_front(layer)
        return gain.numpy().astype(np.float64), centres

    def norms_of_base(self, layer: int, kind: str, numbers: Ids) -> Float64:
        """Return the norms of the base's vectors, (len(numbers),), of a difference."""
        assert isinstance(self.model, Difference)
        vectors = self.model.base.vectors(layer, kind)[numbers].numpy().astype(np.float64)
        return np.asarray(np.linalg.norm(vectors, axis=1))

    def head_norms(self, layer: int, matrix: str, head: int) -> tuple[float, float]:
        """Return the norm of a head's matrix in a difference, and that of the base's matrix."""
        tuned, base = self._multiplied_out(layer, matrix, head)
        return float(np.linalg.norm(tuned - base)), float(np.linalg.norm(base))

    def head(self, layer: int, matrix: str, head: int, lens: str) -> HeadMatrix:
        left, right = FACTORS[matrix]
        if isinstance(self.model, Difference):
            tuned, base = self._multiplied_out(layer, matrix, head)
            source, target = self.embedding(left, lens), self.embedding(right, lens)
            lengths = [float(np.linalg.norm(side, axis=1).max(initial=0)) for side in (source, target)]
            subtracted = float(np.linalg.norm(tuned) + np.linalg.norm(base)) * lengths[0] * lengths[1]
            return HeadMatrix(source @ (tuned - base), target, subtracted)
        W_left, W_right = (factor[head].numpy().astype(np.float64) for factor in self.model.factors(layer, matrix))
        return HeadMatrix(self.embedding(left, lens) @ W_left, self.embedding(right, lens) @ W_right.T)

    def _multiplied_out(self, layer: int, matrix: str, head: int) -> tuple[Float64, Float64]:
        """Return the whole matrix of a head, as a product, in the tuned model and in the base, (d_model, d_model)
        each."""
        assert isinstance(self.model, Difference)
        models = (self.model.tuned, self.model.base)
        factors = (
            [factor[head].numpy().astype(np.float64) for factor in each.factors(layer, matrix)] for each in models
        )
        tuned, base = (left @ right for left, right in factors)
        return tuned, base

    def allowed(self, preset: str, tokens: Ids, others: Ids) -> NDArray[np.bool_]:
        """Return flags: True where a preset of pairs allows the pair (token, other). Both are arrays that numpy can
        broadcast."""
        distinct = self.surface[tokens] != self.surface[others]
        words = self.words[tokens] & self.words[others]
        masks = {"all": np.ones_like(distinct), "distinct": distinct, "words": distinct & words}
        return np.asarray(masks[preset])


def _lensed(W: Float64, lens: str) -> Float64:
    """Return W (d_vocab, d_model); under the cosine lens, every row is centred and set to length one."""
    if lens == "dot":
        return W
    mean = W.mean(axis=0)
    centred = W - mean
    norm = np.linalg.norm(centred, axis=1, keepdims=True)  # (d_vocab, 1)
    computed_from = np.linalg.norm(W, axis=1, keepdims=True) + np.linalg.norm(mean)
    has_direction = norm > ROUNDING_SHARE * computed_from + SMALLEST_NORM
    directions: Float64 = np.divide(centred, norm, out=np.zeros_like(centred), where=has_direction)
    return directions
