"""Define the arrays of a search, whose columns are grouped into strips of 128, and the kernel that finishes the scores
of columns that still have hope. Nothing here depends on the meaning of tokens or on the lens.

A score is shift_i + shift_j + a_i · b_j. The first coordinates of a and b, and the norms of the others, bound it: a
pair has hope if by this bound it may reach a floor, the score that a pair needs to matter. scan.py computes the first
coordinates itself, sift.py starts from finished products.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import FASTMATH, kernel
from lexiscope.precompute.project.rounding import UNIT

PREFIXES = (8, 16, 24, 32, 40, 48)  # for each of these numbers of leading coordinates, the norm of the others is stored
LEADING = PREFIXES[1]  # how many leading coordinates a scan multiplies
STRIP = 128  # columns that are handled together; shells start at multiples of it
ERROR_TERMS = 6  # a score is off by at most the sum of so many products of a row's and a column's term

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class Rows(NamedTuple):
    tokens: Ints  # (n,)
    surface: Ints  # (n,) a row and a column of the same surface are not a pair
    coords: Floats  # (n, d)
    shift: Floats  # (n,)
    norm: Floats  # (n,) all norms here are rounded up
    rest: Floats  # (n, prefixes) norm of the coordinates after a prefix
    error: Floats  # (n, ERROR_TERMS)


class Columns(NamedTuple):
    tokens: Ints  # (n,)
    surface: Ints  # (n,)
    coords: Floats  # (strips * STRIP, d) padded with zeros, as are the next three
    leading: Floats  # (strips, LEADING, STRIP) the first of coords, coordinate by coordinate
    shift: Floats  # (strips, STRIP)
    rest: Floats  # (prefixes, strips, STRIP)
    starts: NDArray[np.int64]  # (shells + 1,) first columns of the shells, and how many columns there are
    largest_norm: Floats  # (shells,)
    error: Floats  # (shells, ERROR_TERMS) the largest of a shell


class Candidates(NamedTuple):
    """The pairs that kernels found and that may be on a list. If `total` is larger than the arrays, the search must be
    repeated in parts."""

    i: Ints  # (room,) positions in Rows
    j: Ints  # (room,) positions in Columns
    score: Floats  # (room,)
    error: Floats  # (room,)
    total: NDArray[np.int64]  # (1,) how many were found, even if there was no room for them

    @classmethod
    def with_room(cls, room: int) -> "Candidates":
        ints, floats = np.empty((2, room), np.int32), np.empty((2, room), np.float32)
        return cls(ints[0], ints[1], floats[0], floats[1], np.zeros(1, np.int64))


# The kernels take whole arrays and positions: a slice or a tuple made in a hot loop costs atomic reference counts.
# Positions that are unsigned, or counted from 0 to a constant, need no check for counting from the end, and only then
# do loops become vector instructions.


@kernel()
def _put(candidates: Candidates, i: int, j: int, score: np.float32, error: np.float32) -> None:
    at = candidates.total[0]
    if at < len(candidates.i):
        candidates.i[at] = i
        candidates.j[at] = j
        candidates.score[at] = score
        candidates.error[at] = error
    candidates.total[0] = at + 1


@kernel()
def middle_and_half(high: np.float32, low: np.float32, shift: np.float32) -> tuple[np.float32, np.float32]:
    """Return `middle` and `half`, which turn two comparisons into one: x + shift >= high or x + shift <= low only if
    |x - middle| >= half.

    In float32 both are off by some last bits of the larger floor; half is smaller by that much.
    """
    rounding = np.float32(8 * UNIT) * (abs(high) + abs(low) + abs(shift))
    return (high + low) * np.float32(0.5) - shift, (high - low) * np.float32(0.5) - rounding


@kernel(fastmath=FASTMATH)
def _finish(a: Floats, i: int, b: Floats, j: int, first: int | np.int64, score: np.float32) -> np.float32:
    """Return a partial score with the products of the coordinates from `first` on added to it."""
    for x in range(np.uint64(first), np.uint64(a.shape[1])):
        score += a[i, x] * b[j, x]
    return score


@kernel()
def score_strip(
    rows: Rows, columns: Columns, i: int, s: int, first: int | np.int64, partial: Floats, hope: Bytes,
    hope_by_eight: NDArray[np.uint64], high: np.float32, low: np.float32, error: np.float32, candidates: Candidates,
) -> None:  # fmt: skip
    """Finish the scores of row i with the hopeful columns of strip s, which lack the coordinates from `first` on, and
    add the pairs that reach a floor to the candidates.

    hope (STRIP,) is 1 or 0; hope_by_eight (STRIP / 8,) is the same memory, with which eight columns without hope are
    skipped at a time.
    """
    stop = min(STRIP, len(columns.tokens) - s * STRIP)
    for eight in range(STRIP // 8):
        if hope_by_eight[eight] != 0:
            for c in range(8 * eight, min(8 * eight + 8, stop)):
                if hope[c]:
                    j = s * STRIP + c
                    score = _finish(rows.coords, i, columns.coords, j, first, partial[c]) + rows.shift[i]
                    if (score >= high or score <= low) and rows.surface[i] != columns.surface[j]:
                        _put(candidates, i, j, score, error)


@kernel(fastmath=FASTMATH)
def row_dots(
    A: Floats, B: Floats, a_error: Floats, b_error: Floats, i: Ints, j: Ints, relative: float, absolute: float
) -> tuple[Floats, Floats]:
    """Return the dot products of rows A[i[n]] and B[j[n]], as the scores of pairs, and how far they may be off."""
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
