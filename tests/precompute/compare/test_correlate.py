"""Correlations of rows in layers: whatever the blocks, kept layers and crowds, lists are those of a full sort."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lexiscope.precompute.compare import correlate as module
from lexiscope.precompute.compare.correlate import Vectors, correlate
from lexiscope.precompute.compare.matches import Matches

CPU = torch.device("cpu")


def rows(n: int, seed: int, width: int = 24) -> NDArray[np.float64]:
    made = np.random.default_rng(seed).normal(size=(n, width))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


def copies(n: int, seed: int) -> NDArray[np.float64]:
    """Rows that are equal or opposite, so that every |r| of a block is the same."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (n, 1))
    return np.asarray(rows(1, 5) * signs)


def some_zeros(n: int, seed: int) -> NDArray[np.float64]:
    made = rows(n, seed)
    made[: n // 2] = 0
    made[-1] = 0
    return made


def vectors(all_rows: NDArray[np.float64], n_layers: int) -> Vectors:
    layers = torch.from_numpy(all_rows.copy()).chunk(n_layers)
    return Vectors(n_layers, len(layers[0]), all_rows.shape[1], layers.__getitem__)


@pytest.mark.parametrize(("block", "kept_bytes"), [(7, 1), (7, 1 << 30), (512, 1)])
@pytest.mark.parametrize(("A", "B"), [
    (rows(60, 0), rows(90, 1)),
    (copies(60, 0), copies(90, 1)),
    (rows(60, 0), copies(90, 1)),
    (some_zeros(60, 0), some_zeros(90, 1)),
    (np.zeros((60, 24)), rows(90, 1)),
    (np.repeat(rows(3, 0), 20, axis=0), np.repeat(rows(9, 1), 10, axis=0)),
    (rows(6, 0), rows(3, 1)),
])  # fmt: skip
def test_against_a_full_sort(
    A: NDArray[np.float64], B: NDArray[np.float64], block: int, kept_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CORRELATED_ROWS", block)
    monkeypatch.setattr(module, "KEPT_LAYERS_BYTES", kept_bytes)
    matches = Matches(len(A), len(B), 10), Matches(len(B), len(A), 10)
    shares: list[float] = []
    with ThreadPoolExecutor(3) as pool:
        similarity = correlate(vectors(A, 2), vectors(B, 3), matches, CPU, pool, shares.append)
        alone = correlate(vectors(A, 2), vectors(B, 3), None, CPU, pool, shares.append)
    r = A @ B.T
    expected = np.abs(r).reshape(2, len(A) // 2, 3, len(B) // 3).mean(axis=(1, 3))
    assert np.allclose(similarity, expected, atol=1e-7)
    assert np.allclose(alone, expected, atol=1e-7)
    assert sum(shares) == pytest.approx(2)
    for found, sizes, side, count in ((matches[0], r, "a", len(B) // 3), (matches[1], r.T, "b", len(A) // 2)):
        arrays = found.arrays(side, count)
        rounded = sizes.astype(np.float32)
        rounded[np.abs(rounded) > 1 - 1e-6] = np.sign(rounded[np.abs(rounded) > 1 - 1e-6])
        order = np.argsort(-np.abs(np.round(rounded, 6)), axis=1, kind="stable")[:, : found.most]
        numbers = arrays[f"{side}.layer"].astype(int) * count + arrays[f"{side}.index"]
        assert np.array_equal(numbers, order)
        assert np.allclose(arrays[f"{side}.r"], np.take_along_axis(sizes, order, axis=1), atol=1e-6)
