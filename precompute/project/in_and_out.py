"""Compare the vectors of neurons with each other: does a neuron write what it reads, or its opposite?

The gain of the norm in front of FF is folded into the vectors that read, and the value is centred where that norm
centres what is read (LayerNorm). Mismatched vectors, of different neurons, show what chance gives.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.index.layout import NEURON_PAIRS
from lexiscope.precompute.project.chance import lines
from lexiscope.precompute.project.embedding import ROUNDING_SHARE, Float32, Float64
from lexiscope.precompute.shape import SIDES

MISMATCHED = 1000  # mismatched pairs, or as many as there are
AT_ONCE = 1024  # neurons whose vectors are in float64 at once

Numbers = NDArray[np.intp]


def cosines_of_neurons(vectors: Mapping[str, torch.Tensor], gain: Float64, centres: bool) -> tuple[Float32, Float32]:
    """Return the cosines (d_mlp, 3) of the vectors (d_mlp, d_model) that neurons have of these kinds, NaN where one is
    missing or zero; and the lines (3, 2) of |cosine| of mismatched pairs. `gain` (d_model,) is that of the norm in
    front, which may centre."""

    def directions(kind: str, numbers: Numbers) -> Float64:
        """Return vectors as they act through the norm, of length one; NaN where only rounding is left of them."""
        V = vectors[kind][torch.from_numpy(numbers)].cpu().numpy().astype(np.float64)
        acting = V * gain if SIDES[kind] == "reads" else V - V.mean(axis=1, keepdims=True) * centres
        length, size = (np.linalg.norm(each, axis=1, keepdims=True) for each in (acting, V))
        acting /= np.where(length > ROUNDING_SHARE * size, length, np.nan)
        return acting

    def cosines(first: Numbers, second: Numbers) -> Float32:
        made = np.full((len(first), len(NEURON_PAIRS)), np.nan, np.float32)
        for start in range(0, len(first), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            for at, (one, other) in enumerate(NEURON_PAIRS):
                if {one, other} <= vectors.keys():
                    a, b = directions(one, first[rows]), directions(other, second[rows])
                    made[rows, at] = np.einsum("nd,nd->n", a, b)
        return made

    n = len(vectors["ff_value"])
    order, pair = np.random.RandomState(0).permutation(n), np.arange(min(MISMATCHED, n * (n - 1)))
    of_others = cosines(order[pair % n], order[(pair % n + 1 + pair // n) % n])  # no pair twice
    return cosines(np.arange(n), np.arange(n)), np.stack([lines(np.abs(of_pair)) for of_pair in of_others.T])
