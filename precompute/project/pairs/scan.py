"""Search rows for large products with columns, without computing anything for most of the columns.

A score is shift_i + shift_j + a_i · b_j. Columns are sorted into shells of similar norm, and by shift within a shell.
Because |a_i · b_j| <= |a_i||b_j|, only columns at the two ends of a shell can reach a floor, the score that a pair
needs to matter, with a block of rows. For those columns, a bound is computed from the first coordinates and the norms
of the others; pairs whose bound reaches the floor are scored.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import FASTMATH, kernel
from lexiscope.precompute.project.pairs.strips import (
    ERROR_TERMS,
    LEADING,
    STRIP,
    Bytes,
    Candidates,
    Columns,
    Floats,
    Rows,
    middle_and_half,
    score_strip,
)

ROWS_PER_BLOCK = 8  # rows that share their ranges of strips


class Block(NamedTuple):
    """The extremes of some neighbouring rows, from which follow bounds that hold for all of these rows."""

    least_shift: np.float32
    most_shift: np.float32
    largest_norm: np.float32
    error: Floats  # (ERROR_TERMS,) the largest of each term among the rows


@kernel()
def _first_at_least(values: Floats, start: int, stop: int, least: np.float32) -> int:
    """Return the position of the first value >= least between start and stop. `values` (strips, STRIP) are sorted
    there, read as one long array."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle // STRIP, middle % STRIP] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel()
def _block(rows: Rows, i0: int, i1: int) -> Block:
    error = np.empty(ERROR_TERMS, np.float32)
    for term in range(ERROR_TERMS):
        error[term] = rows.error[i0:i1, term].max()
    return Block(rows.shift[i0:i1].min(), rows.shift[i0:i1].max(), rows.norm[i0:i1].max(), error)


@kernel()
def _shell_error(block: Block, columns: Columns, shell: int) -> np.float32:
    error = np.float32(0)
    for term in range(ERROR_TERMS):
        error += block.error[term] * columns.error[shell, term]
    return error


@kernel()
def _ranges_of_shell(
    block: Block, columns: Columns, shell: int, high: np.float32, low: np.float32
) -> tuple[int, int, int, int]:
    """Return the strips of a shell whose columns may score <= low with the block, then those whose columns may score >=
    high, as start, stop, start, stop: columns are sorted by shift, so these are at the two ends of the shell."""
    reach = block.largest_norm * columns.largest_norm[shell]
    start, stop = columns.starts[shell], columns.starts[shell + 1]
    need_top = high - block.most_shift - reach
    need_bottom = low - block.least_shift + reach
    upper = _first_at_least(columns.shift, start, stop, need_top)
    lower = _first_at_least(columns.shift, start, stop, np.nextafter(need_bottom, np.float32(np.inf)))
    low_stop = (lower + STRIP - 1) // STRIP if lower > start else start // STRIP
    high_start = max(low_stop, upper // STRIP)
    high_stop = (stop + STRIP - 1) // STRIP if upper < stop else high_start
    return start // STRIP, low_stop, high_start, high_stop if high_stop > high_start else low_stop


@kernel()
def strips_within_reach(rows: Rows, columns: Columns, i0: int, i1: int, top: float, bottom: float) -> NDArray[np.int64]:
    """Return ranges (ranges, 2) of strips, groups of neighbouring columns, in which rows i0 to i1 may have scores >=
    top or <= bottom."""
    ranges = np.empty((2 * len(columns.largest_norm) + 1, 2), np.int64)
    ranges[0] = 0
    n = 0
    block = _block(rows, i0, i1)
    for shell in range(len(columns.largest_norm)):
        error = _shell_error(block, columns, shell)
        ends = _ranges_of_shell(block, columns, shell, np.float32(top - error), np.float32(bottom + error))
        for start, stop in ((ends[0], ends[1]), (ends[2], ends[3])):
            if start >= stop:
                continue
            if start == ranges[n, 1]:
                ranges[n, 1] = stop
            else:
                n += 1
                ranges[n] = start, stop
    return ranges[int(ranges[0, 1] == 0) : n + 1]


@kernel(fastmath=FASTMATH)
def _any_hope_by_8(
    a: Floats, i: int, k: int, leading: Floats, shift: Floats, rests: Floats, s: int, rest: np.float32,
    rest_k: np.float32, middle: np.float32, middle_k: np.float32, half: np.float32, half_k: np.float32,
) -> tuple[np.bool_, np.bool_]:  # fmt: skip
    """Return True if the score of row i or k with any column of strip s may be outside of middle ± half, where it
    reaches a floor, by the first 8 coordinates and the norms of the others. Two rows are tested at once, because
    reading the columns takes longer than multiplying."""
    a0, a1, a2, a3, a4, a5, a6, a7 = a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5], a[i, 6], a[i, 7]
    b0, b1, b2, b3, b4, b5, b6, b7 = a[k, 0], a[k, 1], a[k, 2], a[k, 3], a[k, 4], a[k, 5], a[k, 6], a[k, 7]
    hopeful = hopeful_k = np.float32(0)
    for c in range(STRIP):
        x0, x1, x2, x3 = leading[s, 0, c], leading[s, 1, c], leading[s, 2, c], leading[s, 3, c]
        x4, x5, x6, x7 = leading[s, 4, c], leading[s, 5, c], leading[s, 6, c], leading[s, 7, c]
        score = shift[s, c] + a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3 + a4 * x4 + a5 * x5 + a6 * x6 + a7 * x7
        score_k = shift[s, c] + b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3 + b4 * x4 + b5 * x5 + b6 * x6 + b7 * x7
        hopeful += np.float32(abs(score - middle) + rest * rests[0, s, c] >= half)
        hopeful_k += np.float32(abs(score_k - middle_k) + rest_k * rests[0, s, c] >= half_k)
    return hopeful > 0, hopeful_k > 0


@kernel(fastmath=FASTMATH)
def _mark_hope_by_16(
    a: Floats, i: int, leading: Floats, shift: Floats, rests: Floats, s: int, rest: np.float32, middle: np.float32,
    half: np.float32, partial: Floats, hope: Bytes,
) -> int:  # fmt: skip
    """Test the columns of a strip with one row by their first 16 coordinates. Set partial[c] to the score of column c
    so far, and hope[c] to 1 if the whole score may be outside of middle ± half; return how many columns have hope."""
    a0, a1, a2, a3, a4, a5, a6, a7 = a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5], a[i, 6], a[i, 7]
    b0, b1, b2, b3, b4, b5, b6, b7 = a[i, 8], a[i, 9], a[i, 10], a[i, 11], a[i, 12], a[i, 13], a[i, 14], a[i, 15]
    hopeful = np.float32(0)
    for c in range(STRIP):
        score = (
            shift[s, c] + a0 * leading[s, 0, c] + a1 * leading[s, 1, c] + a2 * leading[s, 2, c] + a3 * leading[s, 3, c]
            + a4 * leading[s, 4, c] + a5 * leading[s, 5, c] + a6 * leading[s, 6, c] + a7 * leading[s, 7, c]
            + b0 * leading[s, 8, c] + b1 * leading[s, 9, c] + b2 * leading[s, 10, c] + b3 * leading[s, 11, c]
            + b4 * leading[s, 12, c] + b5 * leading[s, 13, c] + b6 * leading[s, 14, c] + b7 * leading[s, 15, c]
        )  # fmt: skip
        partial[c] = score
        passes = abs(score - middle) + rest * rests[1, s, c] >= half
        hope[c] = passes
        hopeful += np.float32(passes)
    return int(hopeful)


@kernel()
def _scan_block(
    rows: Rows,
    columns: Columns,
    i0: int,
    i1: int,
    top: float,
    bottom: float,
    partial: Floats,
    hope: Bytes,
    candidates: Candidates,
) -> None:
    a, a_shift, a_rest = rows.coords, rows.shift, rows.rest
    leading, b_shift, b_rest = columns.leading, columns.shift, columns.rest
    hope_by_eight = hope.view(np.uint64)
    block, first_left = _block(rows, i0, i1), np.int64(LEADING)  # numba would compile again for a constant
    for shell in range(len(columns.largest_norm)):
        error = _shell_error(block, columns, shell)
        high, low = np.float32(top - error), np.float32(bottom + error)
        first, low_stop, high_start, last = _ranges_of_shell(block, columns, shell, high, low)
        for s in range(first, last):
            if low_stop <= s < high_start:
                continue
            for i in range(i0, i1, 2):
                k = min(i + 1, i1 - 1)
                middle, half = middle_and_half(high, low, a_shift[i])
                middle_k, half_k = middle_and_half(high, low, a_shift[k])
                hope_i, hope_k = _any_hope_by_8(
                    a, i, k, leading, b_shift, b_rest, s, a_rest[i, 0], a_rest[k, 0], middle, middle_k, half, half_k
                )
                if hope_i and _mark_hope_by_16(
                    a, i, leading, b_shift, b_rest, s, a_rest[i, 1], middle, half, partial, hope
                ):
                    score_strip(
                        rows, columns, i, s, first_left, partial, hope, hope_by_eight, high, low, error, candidates
                    )
                if (
                    k > i
                    and hope_k
                    and _mark_hope_by_16(
                        a, k, leading, b_shift, b_rest, s, a_rest[k, 1], middle_k, half_k, partial, hope
                    )
                ):
                    score_strip(
                        rows, columns, k, s, first_left, partial, hope, hope_by_eight, high, low, error, candidates
                    )


@kernel()
def scan(
    rows: Rows, columns: Columns, start: int, stop: int, top: float, bottom: float, candidates: Candidates
) -> None:
    """Add to the candidates the pairs of rows start to stop whose scores may be >= top or <= bottom."""
    partial = np.empty(STRIP, np.float32)
    hope = np.empty(STRIP, np.uint8)
    candidates.total[0] = 0
    for i0 in range(start, stop, ROWS_PER_BLOCK):
        _scan_block(rows, columns, i0, min(i0 + ROWS_PER_BLOCK, stop), top, bottom, partial, hope, candidates)
