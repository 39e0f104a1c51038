"""Vocabulary matrices that make searches err, if they can: ties, equal rows, zeros, outliers, tiny values.
Values are such that float64 leaves no doubt about a score: whole numbers, or random ones.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = (
    "random", "offset", "integers", "equal halves", "all equal", "zero rows", "all zero", "outlier row",
    "outlier column", "huge outlier", "signed zeros", "tiny", "subnormal", "heavy tail",
)  # fmt: skip


def vocabulary(kind: str, d_vocab: int, d_model: int, seed: int) -> NDArray[Any]:
    """(d_vocab, d_model) float32."""
    random = np.random.default_rng(seed)
    E = random.standard_normal((d_vocab, d_model)).astype(np.float32)
    match kind:
        case "offset":
            E += 3
        case "integers":
            E = whole_numbers(random, d_vocab, d_model)
        case "equal halves":
            E[: d_vocab // 2] = E[0]
        case "all equal":
            E[:] = E[0]
        case "zero rows":
            E[random.integers(0, d_vocab, d_vocab // 2)] = 0
        case "all zero":
            E[:] = 0
        case "outlier row":
            E[random.integers(d_vocab)] *= np.float32(1e4)
        case "outlier column":
            E[:, random.integers(d_model)] *= np.float32(1e3)
        case "huge outlier":
            E[random.integers(d_vocab)] *= np.float32(1e8)
        case "signed zeros":
            E = np.where(random.random(E.shape) < 0.5, np.float32(-0.0), whole_numbers(random, d_vocab, d_model))
        case "tiny":
            E *= np.float32(1e-30)
        case "subnormal":
            E *= np.float32(1e-41)
        case "heavy tail":
            E *= np.exp(2 * random.standard_normal((d_vocab, 1))).astype(np.float32)
    return whole_mean(E) if kind == "signed zeros" else E


def whole_numbers(random: np.random.Generator, d_vocab: int, d_model: int) -> NDArray[Any]:
    """Small ones, with a mean row of whole numbers: every score before normalising is exact, and many tie."""
    return whole_mean(random.integers(-2, 3, (d_vocab, d_model)).astype(np.float32))


def whole_mean(E: NDArray[Any]) -> NDArray[Any]:
    E[-1] -= E.sum(axis=0) % len(E)
    return E
