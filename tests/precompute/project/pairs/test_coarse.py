"""Coarse coordinates are never further off than they say, and are used only where processors add them up exactly."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.project.pairs.coarse import (
    LARGEST_D,
    coarse_columns,
    coarse_rows,
    multiply_bytes,
    relative_cost,
)
from lexiscope.precompute.project.pairs.coordinates import suffix_norms
from lexiscope.precompute.project.pairs.strips import STRIP

pytestmark = pytest.mark.slow

SCALES = (1e-38, 1e-30, 1e-16, 1e-12, 1e-3, 1.0, 1e8)


def hard_rows(generator: np.random.Generator, n: int, d: int, scale: float) -> np.ndarray:
    """Even rows, rows of one coordinate, equal ones, zeros, and an outlier."""
    rows = generator.normal(0, 1, (n, d)) * scale
    rows[1::5] *= np.arange(d) == generator.integers(d)
    rows[2::5] = rows[0]
    rows[3::7] = 0
    rows[-1] *= 1000
    return rows.astype(np.float32)


@given(d=st.integers(1, 130), scales=st.tuples(*[st.sampled_from(SCALES)] * 2), seed=st.integers(0, 1000))
def test_coarse_products_err_less_than_is_claimed(d: int, scales: tuple[float, float], seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = hard_rows(generator, 20, d, scales[0]), hard_rows(generator, 2 * STRIP, d, scales[1])
    a_norm, b_norm = suffix_norms(a, (0,))[0], suffix_norms(b, (0,))[0]
    rows, columns = coarse_rows(a, a_norm), coarse_columns(b, b_norm.reshape(-1, STRIP))
    sums = rows.bytes.astype(np.int64) @ columns.bytes.astype(np.int64).T
    guess = sums * rows.step.astype(float)[:, None] * np.repeat(columns.step.astype(float), STRIP)
    slack = a_norm.astype(float)[:, None] * columns.lost.reshape(-1) + rows.lost.astype(float)[
        :, None
    ] * columns.size.reshape(-1)
    assert (np.abs(guess - a.astype(float) @ b.astype(float).T) <= slack).all()


@pytest.mark.skipif(relative_cost(64) == math.inf, reason="this processor does not add bytes up exactly")
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (3, 200, 64), (256, 2048, 65)])
def test_products_of_bytes(n: int, m: int, d: int) -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-127, 128, (count, d)).astype(np.int8) for count in (n, m))
    out = torch.empty(n, m, dtype=torch.int32)
    multiply_bytes(a, b, out)
    assert np.array_equal(out.numpy(), a.astype(np.int32) @ b.astype(np.int32).T)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What processors can do is asked once; here it is to be asked again."""
    relative_cost.cache_clear()
    yield
    relative_cost.cache_clear()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("fault", ["missing", "refuses", "saturates", "too many coordinates"])
def test_they_are_left_out_where_they_cannot_be_trusted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("not on this processor")

    def saturate(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """As by pairs of products in 16 bits, one side shifted to be positive."""
        shifted = (a.int() + 128)[:, :, None] * b.int()[None]  # (n, d, m)
        pairs = (shifted[:, ::2] + shifted[:, 1::2]).clamp(-(2**15), 2**15 - 1)
        out.copy_(pairs.sum(1) - 128 * b.int().sum(0))

    match fault:
        case "missing":
            monkeypatch.delattr(torch, "_int_mm")
        case "refuses":
            monkeypatch.setattr(torch, "_int_mm", refuse)
        case "saturates":
            monkeypatch.setattr(torch, "_int_mm", saturate)
    assert relative_cost(LARGEST_D + 1 if fault == "too many coordinates" else 8) == math.inf
