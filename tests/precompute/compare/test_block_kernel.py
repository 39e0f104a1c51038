"""The scan of a block against plain sorting, by the kernel and by torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.compare.block_kernel import scan
from lexiscope.precompute.compare.correlate import scan_on_device
from lexiscope.precompute.project.embedding import Float32

Scan = Callable[..., tuple[float, NDArray[np.int64], NDArray[np.int64]]]
SCANS: dict[str, Scan] = {
    "kernel": scan,
    "torch": lambda product, *more: scan_on_device(torch.from_numpy(product), *more),
}
ERROR = np.float32(1e-4)


def blocks(n_rows: int, n_columns: int, seed: int, ties: bool) -> Float32:
    random = np.random.default_rng(seed)
    block = random.uniform(-1, 1, (n_rows, n_columns)).astype(np.float32)
    return np.round(block, 1) if ties else block


def floors(block: Float32, seed: int) -> tuple[Float32, Float32]:
    """As they are in the middle of a comparison: nothing yet, low ones, high ones, and rows that want nothing more."""
    random = np.random.default_rng(seed)
    choices = np.array([-1, 0, 0.3, 0.9, 0.999, 2], np.float32)
    return random.choice(choices, block.shape[0]), random.choice(choices, block.shape[1])


def wanted(block: Float32, floor: Float32, most: int) -> set[tuple[int, int]]:
    """Whatever of a row may be among its best, were each product off by half the error that is claimed."""
    pairs = set()
    for i, row in enumerate(np.abs(block)):
        kth = np.sort(row)[::-1][most - 1] if most <= len(row) else -1
        pairs |= {(i, int(j)) for j in np.flatnonzero((row >= kth - ERROR / 2) & (row >= floor[i] - ERROR / 2))}
    return pairs


@pytest.mark.parametrize("way", SCANS)
@given(
    n_rows=st.one_of(st.integers(1, 40), st.sampled_from([320, 511])),
    n_columns=st.one_of(st.integers(1, 40), st.sampled_from([159, 513, 2048])),
    seed=st.integers(0, 99),
    most=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    ties=st.booleans(),
)
def test_nothing_is_missed(way: str, n_rows: int, n_columns: int, seed: int, most: tuple[int, int], ties: bool) -> None:
    block = blocks(n_rows, n_columns, seed, ties)
    row_floors, column_floors = floors(block, seed)
    total, of_rows, of_columns = SCANS[way](block, row_floors, column_floors, ERROR, *most)
    assert total == pytest.approx(np.abs(block).sum(dtype=np.float64), rel=1e-5)
    rows, columns = (_as_set(pairs) for pairs in (of_rows, of_columns))
    assert rows >= wanted(block, row_floors, most[0])
    assert {(j, i) for i, j in columns} >= wanted(block.T, column_floors, most[1])
    assert all(abs(block[i, j]) + 2 * ERROR >= row_floors[i] for i, j in rows)
    assert all(abs(block[i, j]) + 2 * ERROR >= column_floors[j] for i, j in columns)


def _as_set(pairs: NDArray[Any]) -> set[tuple[int, int]]:
    listed = [(int(i), int(j)) for i, j in pairs]
    assert len({*listed}) == len(listed)
    return {*listed}
