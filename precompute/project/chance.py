"""Draw random vectors, which tell what z the first token of a list reaches by chance: Gaussian ones, and mixtures of a
layer's own vectors. numpy draws them on the CPU, so that they are the same for every device."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Float32, Float64

DRAWS = 1000  # vectors of each source
SHARES = (0.95, 0.99)  # shares of the vectors that stay under a line


def gaussian_vectors(d_model: int) -> Float32:
    """Return Gaussian vectors, (DRAWS, d_model)."""
    return np.random.RandomState(0).standard_normal((DRAWS, d_model)).astype(np.float32)


def draws_of_layers(n_layers: int) -> list[slice]:
    """Return which of the DRAWS mixtures are of each layer: as many of one as of another, or one more of the first."""
    bounds = [-(-DRAWS * layer // n_layers) for layer in range(n_layers + 1)]
    return [slice(*of_layer) for of_layer in pairwise(bounds)]


def mixtures(V: Float32, layer: int, count: int) -> Float32:
    """Return random mixtures of the vectors V (n, d_model) of a layer, (count, d_model): sums with Gaussian
    coefficients, about as long as the vectors."""
    coefficients = np.random.RandomState(layer).standard_normal((count, len(V))) / np.sqrt(len(V))
    return np.asarray(coefficients.astype(np.float32) @ V)


def lines(z: NDArray[np.float32]) -> Float64:
    """Return which z (DRAWS, lenses) the SHARES of draws stay under, (lenses, SHARES). Draws without z, as those of
    vectors of zeros, are left out; without any, lines are NaN."""
    of_lenses = [of_lens[np.isfinite(of_lens)] for of_lens in z.T.astype(np.float64)]
    return np.stack([np.quantile(of_lens, SHARES) if len(of_lens) else np.full(2, np.nan) for of_lens in of_lenses])
