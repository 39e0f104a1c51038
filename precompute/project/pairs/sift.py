"""Search a finished product of rows and columns for pairs with large scores. Pairs whose bounds reach a floor, the
score that a pair needs to matter, are called hopeful; only those are scored with all of their coordinates.

`sift` takes products of the leading coordinates or of all of them. Of products of bytes, only the largest and the
smallest in each strip (a group of neighbouring columns) are compared with the floors: the few strips that may reach one
are opened, which means that all of their columns are scored.
"""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import FASTMATH, kernel
from lexiscope.precompute.project.pairs.coarse import CoarseSide
from lexiscope.precompute.project.pairs.strips import (
    STRIP,
    Bytes,
    Candidates,
    Columns,
    Floats,
    Ints,
    Rows,
    middle_and_half,
    score_strip,
)

Sums = NDArray[np.int32]
Floats64 = NDArray[np.float64]


@kernel(fastmath=FASTMATH)
def _count_hopeful(
    product: Floats, r: int, first: int, shift: Floats, rests: Floats, level: int, s: int, rest: np.float32,
    middle: np.float32, half: np.float32,
) -> int:  # fmt: skip
    """Count the columns of strip s whose scores with row r may be outside of middle ± half, where they reach a floor,
    by their entries in `product`, which start at column `first` of that array."""
    hopeful = np.float32(0)
    start = np.uint64(first)
    for c in range(np.uint64(STRIP)):
        score = product[r, start + c] + shift[s, c]
        hopeful += np.float32(abs(score - middle) + rest * rests[level, s, c] >= half)
    return int(hopeful)


@kernel(fastmath=FASTMATH)
def _mark_hopeful(
    product: Floats, r: int, first: int, shift: Floats, rests: Floats, level: int, s: int, rest: np.float32,
    middle: np.float32, half: np.float32, partial: Floats, hope: Bytes,
) -> None:  # fmt: skip
    """Do as _count_hopeful does for a strip and a row, but write the scores so far into `partial`, and flags of the
    counted columns into `hope`."""
    start = np.uint64(first)
    for c in range(np.uint64(STRIP)):
        score = product[r, start + c] + shift[s, c]
        partial[c] = score
        hope[c] = abs(score - middle) + rest * rests[level, s, c] >= half


@kernel()
def _sift_row(
    product: Floats, r: int, rows: Rows, columns: Columns, i: int, j0: int, level: int, prefix: int, high: np.float32,
    low: np.float32, error: np.float32, partial: Floats, hope: Bytes, candidates: Candidates,
) -> None:  # fmt: skip
    b_shift, b_rest, hope_by_eight = columns.shift, columns.rest, hope.view(np.uint64)
    middle, half = middle_and_half(high, low, rows.shift[i])
    rest = rows.rest[i, level] if prefix < rows.coords.shape[1] else np.float32(0)
    for first in range(0, product.shape[1], STRIP):
        s = (j0 + first) // STRIP
        if _count_hopeful(product, r, first, b_shift, b_rest, level, s, rest, middle, half) > 0:
            _mark_hopeful(product, r, first, b_shift, b_rest, level, s, rest, middle, half, partial, hope)
            score_strip(rows, columns, i, s, prefix, partial, hope, hope_by_eight, high, low, error, candidates)


@kernel()
def sift(
    product: Floats, rows: Rows, columns: Columns, i0: int, j0: int, level: int, prefix: int, top: float, bottom: float,
    error: Floats, candidates: Candidates,
) -> None:  # fmt: skip
    """Find the candidates of one tile, which begins at row i0 and column j0, from the product of the first `prefix`
    coordinates, padded to whole strips.

    `level` is the position of `prefix` in PREFIXES (any number if `prefix` is all coordinates); error[i - i0] is the
    error of the scores of row i.
    """
    partial = np.empty(STRIP, np.float32)
    hope = np.empty(STRIP, np.uint8)
    candidates.total[0] = 0
    for r in range(len(error)):
        high, low = np.float32(top - error[r]), np.float32(bottom + error[r])
        _sift_row(product, r, rows, columns, i0 + r, j0, level, prefix, high, low, error[r], partial, hope, candidates)


def strip_limits(columns: Columns, coarse: CoarseSide) -> Floats64:
    """Return (strips, 5): the highest and the lowest shift of each strip's columns, their largest `lost` and `size`,
    and 1 / step, as CoarseSide names them."""
    starts = np.arange(0, len(columns.tokens), STRIP)
    shift = columns.shift.reshape(-1)[: len(columns.tokens)]
    shifts = np.maximum.reduceat(shift, starts), np.minimum.reduceat(shift, starts)
    return np.stack([*shifts, coarse.lost.max(1), coarse.size.max(1), 1 / coarse.step.astype(np.float64)], axis=1)


def row_needs(rows: Rows, coarse: CoarseSide, some: slice, top: float, bottom: float, error: Floats) -> Floats64:
    """Return (rows, 5): what the product plus the column's shift must reach at the top and at the bottom, and each
    row's norm, `lost` and 1 / step. `error` is how far a row's scores may be off. All is float64, because these bounds
    leave no room for float32 rounding."""
    off, shift, step = (x.astype(np.float64) for x in (error, rows.shift[some], coarse.step[some]))
    return np.stack([top - off - shift, bottom + off - shift, rows.norm[some], coarse.lost[some], 1 / step], axis=1)


@kernel()
def _extremes(product: Sums, r: int, first: int) -> tuple[int, int]:
    """Return the largest and the smallest of the STRIP products of row r that start at column `first`."""
    start = np.uint64(first)
    most = least = product[r, start]
    for c in range(np.uint64(STRIP)):
        most = max(most, product[r, start + c])
        least = min(least, product[r, start + c])
    return most, least


@kernel()
def open_strips(product: Sums, first: int, limits: Floats64, need: Floats64, opened: Ints, n: int) -> int:
    """Append to `opened`, of which n entries are in use, each [row, strip] whose extreme products show that a score may
    reach a floor, and return the new count. `product`, made from coordinates in bytes, begins at strip `first`."""
    for r in range(len(need)):
        top, bottom, norm, lost, inverse = need[r]
        for strip in range(product.shape[1] // STRIP):
            most, least = _extremes(product, r, strip * STRIP)
            s = np.uint64(first + strip)
            slack = norm * limits[s, 2] + lost * limits[s, 3]
            scale = inverse * limits[s, 4]
            # Allow one byte product more, because these float64 numbers are rounded, too.
            if (most + 1 >= (top - limits[s, 0] - slack) * scale) or (
                least - 1 <= (bottom - limits[s, 1] + slack) * scale
            ):
                opened[n, 0] = r
                opened[n, 1] = first + strip
                n += 1
    return n


@kernel()
def score_strips(
    rows: Rows,
    columns: Columns,
    i0: int,
    opened: Ints,
    top: float,
    bottom: float,
    error: Floats,
    candidates: Candidates,
) -> None:
    """Score all columns of the opened strips, given as [row, strip] (n, 2), and add pairs that may reach a floor to the
    candidates. Rows of `opened` and of `error` are counted from i0."""
    hope = np.ones(STRIP, np.uint8)
    hope_by_eight, first = hope.view(np.uint64), np.int64(0)  # numba would compile again for a constant
    candidates.total[0] = 0
    for n in range(len(opened)):
        r, s = opened[n]
        high, low = np.float32(top - error[r]), np.float32(bottom + error[r])
        score_strip(
            rows, columns, i0 + r, s, first, columns.shift[s], hope, hope_by_eight, high, low, error[r], candidates
        )
