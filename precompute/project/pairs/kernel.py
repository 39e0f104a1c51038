"""What both ways to search rows for large products share: arrays, bounds, and the scores of a strip of columns.
Knows no tokens and no lens.

A score is shift_i + shift_j + a_i · b_j. Its first coordinates and the norms of the rest bound it. pair_scan.py looks
at columns itself, pair_sift.py starts from ready-made products.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from precompute.project.compiled import kernel
from precompute.project.rounding import UNIT

# Numbers of leading coordinates after which the norm of the rest is known; scan uses the first two.
PREFIXES = (8, 16, 24, 32, 40, 48)
SCANNED = PREFIXES[1]
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
def outside(high: np.float32, low: np.float32, shift: np.float32) -> tuple[np.float32, np.float32]:
    """middle and half: what is >= high or <= low with `shift` is at least half from the middle without it.

    In float32 the two floors are known to the last bits of the larger one only; half is smaller by that much.
    """
    rounding = np.float32(8 * UNIT) * (abs(high) + abs(low) + abs(shift))
    return (high + low) * np.float32(0.5) - shift, (high - low) * np.float32(0.5) - rounding


@kernel(fastmath=FASTMATH)
def _finish(a: Floats, i: int, b: Floats, j: int, first: int | np.int64, score: np.float32) -> np.float32:
    for x in range(np.uint64(first), np.uint64(a.shape[1])):
        score += a[i, x] * b[j, x]
    return score


@kernel()
def score_strip(
    rows: Rows, columns: Columns, i: int, s: int, first: int | np.int64, partial: Floats, hope: Bytes,
    words: NDArray[np.uint64], high: np.float32, low: np.float32, error: np.float32, found: Found,
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
