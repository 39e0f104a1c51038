"""Draw random vectors, which tell what z the first token of a list reaches by chance: Gaussian ones, and mixtures of a
layer's own vectors. numpy draws them on the CPU, so that they are the same for every device."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Float32

DRAWS = 1000  # vectors of each source
SHARES = (0.95, 0.99)  # shares of random vectors, or of mismatched pairs, that stay under a line


def gaussian_vectors(d_model: int) -> Float32:
    """Return Gaussian vectors, (DRAWS, d_model)."""
    return np.random.RandomState(0).standard_normal((DRAWS, d_model)).astype(np.float32)


def draws_of_layers(n_layers: int) -> list[slice]:
    """Return which of the DRAWS mixtures are of each layer: of all as many, or one more of some."""
    return [slice(*bounds) for bounds in pairwise(-(-DRAWS * layer // n_layers) for layer in range(n_layers + 1))]


def mixtures(V: Float32, layer: int, count: int) -> Float32:
    """Return random mixtures of the vectors V (n, d_model) of a layer, (count, d_model): sums with Gaussian
    coefficients, about as long as the vectors."""
    coefficients = np.random.RandomState(layer).standard_normal((count, len(V))) / np.sqrt(len(V))
    return np.asarray(coefficients.astype(np.float32) @ V)


def lines(numbers: NDArray[np.float32]) -> Float32:
    """Return which numbers the SHARES of all (n,) stay under, (2,). NaN are left out; without others, lines are NaN."""
    known = numbers[np.isfinite(numbers)].astype(np.float64)
    return (np.quantile(known, SHARES) if len(known) else np.full(2, np.nan)).astype(np.float32)
