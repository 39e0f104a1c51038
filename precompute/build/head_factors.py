"""Hold the matrices of a layer's heads, each as two factors that are never multiplied out: those of one model, or of a
difference of two models."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Embedding, Float32, Float64
from lexiscope.precompute.project.pairs.head_pairs import Matrix
from lexiscope.precompute.shape import FACTORS, MATRICES, Shape
from lexiscope.precompute.weights.difference import Difference, Parameters, subtracted

Vectors = dict[str, torch.Tensor]  # by kind: (count, d_model)
Factors = tuple[Float32 | Float64, Float32 | Float64]  # (d_model, d) each: the matrix is left rightᵀ


@dataclass(frozen=True)
class HeadFactors:
    """The vectors that the matrices of a layer's heads are made of."""

    shape: Shape
    own: Vectors  # vectors of the model; of a difference, the tuned model's
    base: Vectors | None  # vectors of the base of a difference

    @classmethod
    def read(cls, model: Parameters, layer: int) -> "HeadFactors":
        kinds = [kind for matrix in MATRICES for kind in FACTORS[matrix]]
        models = (model.tuned, model.base) if isinstance(model, Difference) else (model,)
        own, *base = ({kind: each.vectors(layer, kind) for kind in kinds} for each in models)
        return cls(model.shape, own, base[0] if base else None)

    def vectors(self, kind: str) -> torch.Tensor:
        """Return the vectors of a kind, (count, d_model)."""
        return self.own[kind] - self.base[kind] if self.base else self.own[kind]

    def of_head(self, matrix: str, head: int) -> Factors:
        own = self._of_head(self.own, matrix, head)
        return subtracted(own, self._of_head(self.base, matrix, head)) if self.base else own

    def norms(self) -> dict[str, NDArray[Any]]:
        """Return the norms of the heads' matrices of a difference, and those of the base's matrices, as arrays by their
        names in FORMAT.md."""
        if not self.base:
            return {}
        norms: dict[str, NDArray[Any]] = {}
        heads = range(self.shape.n_heads)
        for matrix in MATRICES:
            of_base = (frobenius_norm(self._of_head(self.base, matrix, head)) for head in heads)
            norms[f"{matrix}.norm"] = np.array([frobenius_norm(self.of_head(matrix, head)) for head in heads], "f4")
            norms[f"{matrix}.base_norm"] = np.array([*of_base], "f4")
        return norms

    def _of_head(self, vectors: Vectors, matrix: str, head: int) -> tuple[Float32, Float32]:
        left, right = (vectors[kind][self._rows(kind, head)].numpy().T for kind in FACTORS[matrix])
        return np.ascontiguousarray(left), np.ascontiguousarray(right)

    def _rows(self, kind: str, head: int) -> slice:
        first = self.shape.row(kind, head, 0)
        return slice(first, first + self.shape.d_head)


def head_matrix(factors: HeadFactors, matrix: str, head: int, source: Embedding, target: Embedding) -> Matrix:
    """Return a head's matrix `vo` or `qk` for the pair search; only this head's vectors are multiplied with the
    vocabulary."""
    W_left, W_right = factors.of_head(matrix, head)
    return Matrix(source, target, W_left, W_right, _product(W_left, source), _product(W_right, target))


def frobenius_norm(factors: Factors) -> float:
    """Return the norm |left rightᵀ| of a head's matrix without multiplying it out, from two small matrices (d, d): the
    squared norm is the sum of the products of the entries of leftᵀ left and rightᵀ right."""
    left, right = (torch.from_numpy(factor).double() for factor in factors)
    square = float(((left.T @ left) * (right.T @ right)).sum())
    return math.sqrt(max(0.0, square))


def _product(W: Float32 | Float64, embedding: Embedding) -> torch.Tensor:
    """Multiply the columns of W (d_model, d) with the vocabulary, in float32: (d, d_vocab)."""
    rows = torch.from_numpy(np.ascontiguousarray(W.T, np.float32))
    return rows.to(embedding.on_device.device) @ embedding.on_device.T
