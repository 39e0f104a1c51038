"""Compute the arrays of a comparison of two models, for each kind of vectors, and the kernel, a matrix that turns
states of A into states of B. Nothing is written here."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from lexiscope.precompute.compare.common_tokens import CommonTokens
from lexiscope.precompute.compare.correlate import Vectors, correlate
from lexiscope.precompute.compare.matches import Matches
from lexiscope.precompute.compare.space import Grams, UnitRows, feature_rows, unit_rows
from lexiscope.precompute.index.comparison_record import MATCHES
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.difference import Parameters

RANDOM_VECTORS = 1000  # random vectors of each model, from which the similarity by chance is computed
VECTORS_MADE = 512  # vectors that become rows at once
FEATURE_SHARE = 0.4  # share of a kind's time that its comparison in feature space takes


@dataclass(frozen=True)
class Comparer:
    """Compare two models by the tokens they share. What all kinds of vectors have in common is computed once."""

    a: Parameters
    b: Parameters
    common: CommonTokens
    device: torch.device
    pool: Executor

    def kind(self, kind: str, step: Callable[[float], None]) -> dict[str, Array]:
        """Compare one kind of vectors, and return its arrays. `step` is called with the share of the work that was done
        since its last call."""
        a, b = self.in_embedding_space(kind)
        in_features = self.a.shape.d_model == self.b.shape.d_model
        share = FEATURE_SHARE if in_features else 0.0
        of_a, of_b = Matches(len(a), len(b), MATCHES), Matches(len(b), len(a), MATCHES)
        similarity = correlate(a, b, (of_a, of_b), self.device, self.pool, lambda done: step(done * (1 - share)))
        arrays: dict[str, Array] = {"similarity": similarity.astype("float32"), "assignment": assign(similarity)}
        arrays |= of_a.arrays("a", b.count) | of_b.arrays("b", a.count)
        if in_features:
            a, b = self.in_feature_space(kind)
            similarity = correlate(a, b, None, self.device, self.pool, lambda done: step(done * share))
            arrays |= {"feature_space": similarity.astype("float32"), "feature_assignment": assign(similarity)}
        return arrays

    def kernel(self) -> dict[str, Array]:
        return {"kernel": self._reading_grams.kernel().to("cpu", torch.float32).numpy()}

    def chance(self) -> dict[str, float]:
        """Return the mean |r| that random vectors would have in each space of comparison: the similarity of layers that
        have nothing in common."""
        generator = torch.Generator().manual_seed(0)
        V_a, V_b = (torch.randn(RANDOM_VECTORS, model.shape.d_model, generator=generator) for model in (self.a, self.b))
        similarities = {}
        for side, (a, b) in (("reads", self._reading), ("writes", self._writing)):
            similarities[side] = float((a.rows(V_a) @ b.rows(V_b).T).abs_().mean())
        if V_a.shape == V_b.shape:
            similarities["feature_space"] = float((feature_rows(V_a) @ feature_rows(V_b).T).abs_().mean())
        return similarities

    def in_embedding_space(self, kind: str) -> tuple[Vectors, Vectors]:
        """Return the vectors of both models as rows whose dot products are the correlations of the vectors' projections
        onto the common tokens."""
        a, b = self._writing if SIDES[kind] == "writes" else self._reading
        return self._vectors(self.a, kind, a.width, a.rows), self._vectors(self.b, kind, b.width, b.rows)

    def in_feature_space(self, kind: str) -> tuple[Vectors, Vectors]:
        """Return the vectors of both models as rows whose dot products are the correlations of the vectors themselves,
        over their d_model coordinates."""
        width = self.a.shape.d_model
        return self._vectors(self.a, kind, width, feature_rows), self._vectors(self.b, kind, width, feature_rows)

    @cached_property
    def _reading_grams(self) -> Grams:
        return Grams.of(self.a.W_E, self.b.W_E, self.common, self.device, self.pool)

    @cached_property
    def _reading(self) -> tuple[UnitRows, UnitRows]:
        return unit_rows(self._reading_grams, self.pool)

    @cached_property
    def _writing(self) -> tuple[UnitRows, UnitRows]:
        if self.a.shape.tied and self.b.shape.tied:
            return self._reading
        grams = Grams.of(self.a.W_U, self.b.W_U, self.common, self.device, self.pool)
        return unit_rows(grams, self.pool)

    def _vectors(self, model: Parameters, kind: str, width: int, to_rows: Callable[[Tensor], Tensor]) -> Vectors:
        def rows(layer: int) -> Tensor:
            return torch.cat([to_rows(vectors) for vectors in torch.split(model.vectors(layer, kind), VECTORS_MADE)])

        return Vectors(model.shape.n_layers, model.shape.count(kind), width, rows)


def assign(similarity: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Pair layers of A and B one to one such that their similarities have the largest sum; `similarity` is (layers of
    A, layers of B). Return the pairs (m, 2), ordered by the layer of A."""
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return np.stack([rows, columns], axis=1).astype(np.uint16)
