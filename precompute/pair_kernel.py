"""Finds the pairs of rows with large products on the CPU, skipping most of the matrix. Knows no tokens and no lens.

A score is shift_i + shift_j + a_i · b_j. Its first coordinates and the norms of the rest bound it. `scan` also skips
columns without looking at them: they stand in shells of like norm, sorted by shift within a shell, so that for a block
of rows only the two outer ranges of a shell are worth a look. pair_sift.py starts from ready-made products instead.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from precompute.compiled import kernel
from precompute.rounding import UNIT

# Numbers of leading coordinates after which the norm of the rest is known; scan uses the first two.
PREFIXES = (8, 16, 24, 32, 40, 48)
SCANNED = PREFIXES[1]
ROWS = 8  # rows that share their ranges
STRIP = 128  # columns that are looked at together; shells start at multiples of it
ERROR_TERMS = 6
FASTMATH = {"reassoc", "contract", "nsz"}

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class Rows(NamedTuple):
    tokens: Ints  # (n,)
    surface: Ints  # (n,) rows and columns of one surface are not a pair
    coords: Floats  # (n, d)
    shift: Floats  # (n,)
    norm: Floats  # (n,) all norms here are rounded up
    rest: Floats  # (n, prefixes) norm of the coordinates after a prefix
    error: Floats  # (n, ERROR_TERMS) with a column's terms: how far a computed score may be off


class Columns(NamedTuple):
    tokens: Ints
    surface: Ints
    coords: Floats  # (n rounded up to strips, d) padded with zeros, as the next three
    strips: Floats  # (n / STRIP rounded up, d, STRIP) the first SCANNED of coords, coordinate by coordinate
    shift: Floats  # (n / STRIP rounded up, STRIP)
    rest: Floats  # (prefixes, n / STRIP rounded up, STRIP)
    starts: NDArray[np.int64]  # (shells + 1,)
    reach: Floats  # (shells,) largest norm
    error: Floats  # (shells, ERROR_TERMS) largest terms


class Found(NamedTuple):
    """Where candidates are written; if `total` exceeds the room, the search must be repeated in parts."""

    i: Ints  # (room,)
    j: Ints
    score: Floats
    error: Floats
    total: NDArray[np.int64]  # (1,)

    @classmethod
    def room(cls, room: int) -> "Found":
        ints, floats = np.empty((2, room), np.int32), np.empty((2, room), np.float32)
        return cls(ints[0], ints[1], floats[0], floats[1], np.zeros(1, np.int64))


# The functions below take whole arrays and positions: a slice or a tuple made in a hot loop costs atomic reference
# counts. Positions that are unsigned, or counted from 0 to a constant, need no check for
# counting from the end, and only then do loops become vector instructions.


@kernel()
def _put(found: Found, i: int, j: int, score: np.float32, error: np.float32) -> None:
    at = found.total[0]
    if at < len(found.i):
        found.i[at] = i
        found.j[at] = j
        found.score[at] = score
        found.error[at] = error
    found.total[0] = at + 1


@kernel()
def _first_at_least(values: Floats, start: int, stop: int, least: np.float32) -> int:
    """Position of the first value >= least in the sorted stretch start to stop of an array in strips."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle // STRIP, middle % STRIP] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel()
def outside(high: np.float32, low: np.float32, shift: np.float32) -> tuple[np.float32, np.float32]:
    """middle and half: what is >= high or <= low with `shift` is at least half from the middle without it.

    In float32 the two floors are known to the last bits of the larger one only; half is smaller by that much.
    """
    rounding = np.float32(8 * UNIT) * (abs(high) + abs(low) + abs(shift))
    return (high + low) * np.float32(0.5) - shift, (high - low) * np.float32(0.5) - rounding


@kernel(fastmath=FASTMATH)
def _bound_strip(
    a: Floats, i: int, strips: Floats, shift: Floats, rests: Floats, s: int, rest: np.float32, middle: np.float32,
    half: np.float32, partial: Floats,
) -> int:  # fmt: skip
    """partial[c] = the score of column c of strip s from the first 8 coordinates. Returns how many have hope: they may
    leave middle ± half with the rest."""
    a0, a1, a2, a3, a4, a5, a6, a7 = a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5], a[i, 6], a[i, 7]
    hopeful = np.float32(0)
    for c in range(STRIP):
        score = (
            shift[s, c] + a0 * strips[s, 0, c] + a1 * strips[s, 1, c] + a2 * strips[s, 2, c] + a3 * strips[s, 3, c]
            + a4 * strips[s, 4, c] + a5 * strips[s, 5, c] + a6 * strips[s, 6, c] + a7 * strips[s, 7, c]
        )  # fmt: skip
        partial[c] = score
        hopeful += np.float32(abs(score - middle) + rest * rests[0, s, c] >= half)
    return int(hopeful)


@kernel(fastmath=FASTMATH)
def _bound_closer(
    a: Floats, i: int, strips: Floats, rests: Floats, s: int, rest: np.float32, middle: np.float32, half: np.float32,
    partial: Floats, hope: Bytes,
) -> int:  # fmt: skip
    """Adds the next 8 coordinates to `partial`; hope[c] = whether column c still has hope."""
    a0, a1, a2, a3, a4, a5, a6, a7 = a[i, 8], a[i, 9], a[i, 10], a[i, 11], a[i, 12], a[i, 13], a[i, 14], a[i, 15]
    hopeful = np.float32(0)
    for c in range(STRIP):
        score = (
            partial[c] + a0 * strips[s, 8, c] + a1 * strips[s, 9, c] + a2 * strips[s, 10, c] + a3 * strips[s, 11, c]
            + a4 * strips[s, 12, c] + a5 * strips[s, 13, c] + a6 * strips[s, 14, c] + a7 * strips[s, 15, c]
        )  # fmt: skip
        partial[c] = score
        passes = abs(score - middle) + rest * rests[1, s, c] >= half
        hope[c] = passes
        hopeful += np.float32(passes)
    return int(hopeful)


@kernel(fastmath=FASTMATH)
def _finish(a: Floats, i: int, b: Floats, j: int, first: int, score: np.float32) -> np.float32:
    for x in range(np.uint64(first), np.uint64(a.shape[1])):
        score += a[i, x] * b[j, x]
    return score


@kernel()
def score_strip(
    rows: Rows, columns: Columns, i: int, s: int, first: int, partial: Floats, hope: Bytes, words: NDArray[np.uint64],
    high: np.float32, low: np.float32, error: np.float32, found: Found,
) -> None:  # fmt: skip
    """Finishes the scores of the hopeful columns of strip s, which lack the coordinates from `first` on."""
    stop = min(STRIP, len(columns.tokens) - s * STRIP)
    for word in range(STRIP // 8):
        if words[word] != 0:  # the same memory as hope, eight columns at a time
            for c in range(8 * word, min(8 * word + 8, stop)):
                if hope[c]:
                    j = s * STRIP + c
                    score = _finish(rows.coords, i, columns.coords, j, first, partial[c]) + rows.shift[i]
                    if (score >= high or score <= low) and rows.surface[i] != columns.surface[j]:
                        _put(found, i, j, score, error)


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
    found: Found,
) -> None:
    a, a_shift, a_rest = rows.coords, rows.shift, rows.rest
    strips, b_shift, b_rest = columns.strips, columns.shift, columns.rest
    words = hope.view(np.uint64)
    least_shift = a_shift[i0:i1].min()
    most_shift = a_shift[i0:i1].max()
    norm = rows.norm[i0:i1].max()
    terms = np.empty(ERROR_TERMS, np.float32)
    for term in range(ERROR_TERMS):
        terms[term] = rows.error[i0:i1, term].max()
    for shell in range(len(columns.reach)):
        error = np.float32(0)
        for term in range(ERROR_TERMS):
            error += terms[term] * columns.error[shell, term]
        high = np.float32(top - error)
        low = np.float32(bottom + error)
        reach = norm * columns.reach[shell]
        start, stop = columns.starts[shell], columns.starts[shell + 1]
        need_top = high - most_shift - reach
        need_bottom = low - least_shift + reach
        upper = _first_at_least(b_shift, start, stop, need_top)
        lower = _first_at_least(b_shift, start, stop, np.nextafter(need_bottom, np.float32(np.inf)))
        # Whole strips: from the start to `lower`, and from `upper` to the end.
        low_stop = (lower + STRIP - 1) // STRIP if lower > start else start // STRIP
        high_start = max(low_stop, upper // STRIP)
        high_stop = (stop + STRIP - 1) // STRIP if upper < stop else high_start
        for s in range(start // STRIP, high_stop if high_stop > low_stop else low_stop):
            if low_stop <= s < high_start:
                continue
            for i in range(i0, i1):
                middle, half = outside(high, low, a_shift[i])
                if _bound_strip(a, i, strips, b_shift, b_rest, s, a_rest[i, 0], middle, half, partial) == 0:
                    continue
                if _bound_closer(a, i, strips, b_rest, s, a_rest[i, 1], middle, half, partial, hope) > 0:
                    score_strip(rows, columns, i, s, SCANNED, partial, hope, words, high, low, error, found)


@kernel()
def scan(rows: Rows, columns: Columns, start: int, stop: int, top: float, bottom: float, found: Found) -> None:
    """Candidates among rows start to stop: scores that may be >= top or <= bottom."""
    partial = np.empty(STRIP, np.float32)
    hope = np.empty(STRIP, np.uint8)
    found.total[0] = 0
    for i0 in range(start, stop, ROWS):
        _scan_block(rows, columns, i0, min(i0 + ROWS, stop), top, bottom, partial, hope, found)


@kernel(fastmath=FASTMATH)
def row_dots(
    A: Floats, B: Floats, a_error: Floats, b_error: Floats, i: Ints, j: Ints, relative: float, absolute: float
) -> tuple[Floats, Floats]:
    """Scores of the pairs (i[n], j[n]) of rows of A and B, and how far they may be off."""
    scores, errors = np.empty(len(i), np.float32), np.empty(len(i), np.float32)
    for n in range(len(i)):
        score, aa, bb = np.float32(0), 0.0, 0.0  # squares of tiny values vanish in float32
        row, column = np.uint64(i[n]), np.uint64(j[n])
        for x in range(np.uint64(A.shape[1])):
            score += A[row, x] * B[column, x]
            aa += np.float64(A[row, x]) * np.float64(A[row, x])
            bb += np.float64(B[column, x]) * np.float64(B[column, x])
        a, b = np.sqrt(aa) * 1.00001, np.sqrt(bb) * 1.00001
        scores[n] = score
        errors[n] = a_error[row] * (b + b_error[column]) + a * (b_error[column] + relative * b) + absolute
    return scores, errors
