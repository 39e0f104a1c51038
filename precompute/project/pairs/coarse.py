"""Round the coordinates of a pair search to bytes. Where a processor multiplies bytes several times faster than floats,
products of bytes tell which pairs may have large scores, with a bound of how far each product is off. That helps with
heads in which norms rule out few pairs.

Both sides are first multiplied with the same orthogonal matrix. This changes no product, but makes the coordinates of a
row similar in size, so that a single large one does not make the rounding coarse for all of them.
"""

import math
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.rounding import TINY, gamma

LARGEST_BYTE = 127
LARGEST_D = 2**24 // LARGEST_BYTE**2  # most coordinates for which sums of products are exact in float32
SMALLEST_STEP = 1e-15  # rows that need a smaller step become 0; the product of two such steps is far from underflow
USUAL_LOSS_SHARE = 0.007  # what rows of 64 coordinates usually lose by rounding, as a share of their norm; for plans
TIMED_SHAPE = (256, 1024)  # rows and columns of the product that is timed
TIMED_RUNS = 7

Floats = NDArray[np.float32]


class CoarseSide(NamedTuple):
    """The rows or columns of a search with their coordinates rounded to bytes: step * bytes approximates a row, and the
    length of the difference is at most `lost`."""

    bytes: NDArray[np.int8]  # (n, d)
    step: Floats  # (n,), or (n / STRIP,) where the rows of a strip share one; positive
    lost: Floats  # (n,), or (n / STRIP, STRIP)
    size: Floats  # shaped like `lost`: at least the norm of step * bytes


# With â and b̂ the rounded rows, a · b - â · b̂ = a · (b - b̂) + (a - â) · b̂, at most |a| lost_b + lost_a size_b.


def coarse_rows(coords: Floats, norm: Floats) -> CoarseSide:
    """Return coords (n, d) of rows rounded to bytes, with a step for each row; `norm` (n,) holds their norms, rounded
    up."""
    return _coarse(coords, norm, 1)


def coarse_columns(coords: Floats, norm: Floats) -> CoarseSide:
    """Return coords (n, d) of columns rounded to bytes, with a step for each strip of STRIP neighbouring columns;
    `norm` (n / STRIP, STRIP) holds their norms, rounded up."""
    flat = _coarse(coords, norm.reshape(-1), norm.shape[1])
    return flat._replace(lost=flat.lost.reshape(norm.shape), size=flat.size.reshape(norm.shape))


def _coarse(coords: Floats, norm: Floats, together: int) -> CoarseSide:
    d = coords.shape[1]
    turned = (torch.from_numpy(coords) @ _rotation(d)).numpy()
    return CoarseSide(*_round(turned, norm, together, gamma(d + 8) * math.sqrt(d)))


@cache
def _rotation(d: int) -> torch.Tensor:
    """Return an orthogonal matrix (d, d), the same at every call."""
    generator = torch.Generator().manual_seed(0)
    turn: torch.Tensor = torch.linalg.qr(torch.randn(d, d, dtype=torch.float64, generator=generator)).Q
    return turn.float()


@kernel()
def _round(
    turned: Floats, norm: Floats, together: int, turning: float
) -> tuple[NDArray[np.int8], Floats, Floats, Floats]:
    """Round rows to bytes, with one step for every `together` rows; return bytes, steps, and `lost` and `size` as in
    CoarseSide. Rotating the rows in float32 has changed each by at most `turning` times its norm."""
    n, d = turned.shape
    rounded = np.zeros((n, d), np.int8)
    steps, lost, size = np.ones(n // together, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
    for i in range(n):
        if i % together == 0:
            step = np.abs(turned[i : i + together]).max() / np.float32(LARGEST_BYTE)
            inverse = np.float32(0)
            if step >= SMALLEST_STEP:
                steps[i // together] = step
                inverse = np.float32(1) / step
        squares = 0.0
        for x in range(d):
            nearest = np.rint(turned[i, x] * inverse)
            rounded[i, x] = np.int8(nearest)
            left = np.float64(turned[i, x]) - np.float64(nearest) * np.float64(step)
            squares += left * left
        lost[i] = (np.sqrt(squares) + turning * norm[i] + d**1.5 * TINY) * (1 + 1e-6)
        size[i] = (norm[i] + lost[i]) * (1 + 1e-6)
    return rounded, steps, lost, size


def multiply_bytes(a: NDArray[np.int8], b: NDArray[np.int8], out: torch.Tensor) -> None:
    """Set out (n, m), int32, to the product of a (n, d) with b (m, d) transposed."""
    torch._int_mm(torch.from_numpy(a), torch.from_numpy(b).T, out=out)


@cache
def relative_cost(d: int) -> float:
    """Return the time that a product of bytes takes here as a share of the time of a float product; infinite if this
    machine cannot multiply bytes, or not exactly."""
    if d > LARGEST_D or not hasattr(torch, "_int_mm"):
        return math.inf
    try:
        if not _sums_are_exact(d):
            return math.inf
    except RuntimeError:
        return math.inf
    n, m = TIMED_SHAPE
    a, b = torch.ones(n, d), torch.ones(m, d)
    plain, bytes_ = torch.empty(n, m), torch.empty(n, m, dtype=torch.int32)
    a8, b8 = a.to(torch.int8).numpy(), b.to(torch.int8).numpy()
    return _seconds(lambda: multiply_bytes(a8, b8, bytes_)) / _seconds(lambda: torch.mm(a, b.T, out=plain))


def _sums_are_exact(d: int) -> bool:
    """Return True if sums of products of bytes are exact here, which rows of extreme values show: some processors add
    two products in 16 bits and cut off what does not fit."""
    signs = np.array([1, -1, 1, -1], np.int8)[:, None]
    rows = np.repeat(np.full((4, d), LARGEST_BYTE, np.int8) * signs, TIMED_SHAPE[0] // 4, axis=0)
    columns = np.repeat(np.full((4, d), LARGEST_BYTE, np.int8) * signs, TIMED_SHAPE[1] // 4, axis=0)
    out = torch.empty(*TIMED_SHAPE, dtype=torch.int32)
    multiply_bytes(rows, columns, out)
    return bool(np.array_equal(out.numpy(), rows.astype(np.int32) @ columns.astype(np.int32).T))


def _seconds(work: Callable[[], object]) -> float:
    """Return the seconds of the shortest of several runs of `work`."""
    best = math.inf
    for _ in range(TIMED_RUNS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
