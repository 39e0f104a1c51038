"""Compare the vectors of neurons with each other: does a neuron write what it reads, or its opposite?

The gain of the norm in front of the FF is folded into the vectors that read, and the value is centred where that norm
centres what is read (LayerNorm). As what mismatched vectors give, pairs of vectors of different neurons are compared,
too.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.index.layout import NEURON_PAIRS
from lexiscope.precompute.project.embedding import ROUNDING_SHARE, Float64
from lexiscope.precompute.shape import SIDES

MISMATCHED = 1000  # mismatched pairs, or as many as there are
SHARES = (0.95, 0.99)  # shares of the mismatched pairs that stay under the stored |cosines|
AT_ONCE = 1024  # neurons whose vectors are in float64 at once

Numbers = NDArray[np.intp]


class NeuronVectors:
    def __init__(self, vectors: Mapping[str, torch.Tensor], gain: Float64, centres: bool) -> None:
        """Hold the vectors (d_mlp, d_model) of each kind that neurons have, and what the norm in front of them does."""
        self._vectors, self._gain, self._centres = vectors, gain, centres
        self._n = len(vectors["ff_value"])

    def cosines(self) -> NDArray[np.float32]:
        """Return the cosines (d_mlp, 3) of the vectors of each neuron; NaN where there is no vector, or one of
        zeros."""
        return self._cosines(np.arange(self._n), np.arange(self._n))

    def mismatched(self) -> NDArray[np.float32]:
        """Return which |cosine| the SHARES of mismatched pairs stay under, (3, SHARES); NaN where there are none."""
        sizes = np.abs(self._cosines(*mismatched_neurons(self._n))).astype(np.float64)
        known = [of_pair[np.isfinite(of_pair)] for of_pair in sizes.T]
        quantiles = [np.quantile(of_pair, SHARES) if len(of_pair) else np.full(2, np.nan) for of_pair in known]
        return np.array(quantiles, np.float32)

    def _cosines(self, first: Numbers, second: Numbers) -> NDArray[np.float32]:
        """Return the cosines (n, 3) of the vectors of some neurons (n,) with those of others."""
        cosines = np.full((len(first), len(NEURON_PAIRS)), np.nan, np.float32)
        for start in range(0, len(first), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            for at, (one, other) in enumerate(NEURON_PAIRS):
                if one in self._vectors and other in self._vectors:
                    a, b = self._directions(one, first[rows]), self._directions(other, second[rows])
                    cosines[rows, at] = np.einsum("nd,nd->n", a, b)
        return cosines

    def _directions(self, kind: str, numbers: Numbers) -> Float64:
        """Return vectors as they act through the norm, set to length one; NaN where nothing but rounding is left of
        them."""
        V = self._vectors[kind][torch.from_numpy(numbers)].cpu().numpy().astype(np.float64)
        acting = V
        if SIDES[kind] == "reads":
            acting = V * self._gain
        elif self._centres:
            acting = V - V.mean(axis=1, keepdims=True)
        length, size = (np.linalg.norm(each, axis=1, keepdims=True) for each in (acting, V))
        directions: Float64 = np.full_like(acting, np.nan)
        np.divide(acting, length, out=directions, where=length > ROUNDING_SHARE * size)
        return directions


def mismatched_neurons(n: int) -> tuple[Numbers, Numbers]:
    """Return numbers of neurons, and of another neuron for each: no pair twice."""
    order, pair = np.random.RandomState(0).permutation(n), np.arange(min(MISMATCHED, n * (n - 1)))
    return order[pair % n], order[(pair % n + 1 + pair // n) % n]
