"""Read rows of scores on the CPU: find the first tokens of a row, and count the tokens with larger scores than a given
one."""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.vector_kernel import GROUP, LOWEST, order_key


@kernel(fastmath={"reassoc", "nsz"})
def _largest(row: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Set out[g] to the largest score of group g of GROUP tokens."""
    for g in range(len(out)):
        start = np.uint64(g * GROUP)  # unsigned: no check for counting from the end, so the loop can be vectorised
        most = LOWEST
        if g * GROUP + GROUP <= len(row):
            for t in range(np.uint64(GROUP)):
                most = max(most, row[start + t])
        else:
            for t in range(g * GROUP, len(row)):
                most = max(most, row[t])
        out[g] = most


@kernel()
def first_tokens(scores: NDArray[np.float32], ids: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Fill ids and values (n, k) with the k largest of each row of scores (n, d_vocab), ties by the smaller id.

    The k-th largest of the maxima of groups is a lower bound of the k-th largest score. A row that holds
    NaN may get NaN among its values.
    """
    n, d_vocab = scores.shape
    k = ids.shape[1]
    groups = (d_vocab + GROUP - 1) // GROUP
    largest = np.empty(groups, np.float32)
    keys = np.empty(d_vocab, np.int64)
    for r in range(n):
        _largest(scores[r], largest)
        floor = LOWEST
        if k <= groups:
            floor = np.partition(largest, groups - k)[groups - k]
        count = 0
        for g in range(groups):
            if largest[g] >= floor:
                for t in range(g * GROUP, min(g * GROUP + GROUP, d_vocab)):
                    if scores[r, t] >= floor:
                        keys[count] = order_key(scores[r, t], t)
                        count += 1
        keys[:count].sort()
        for rank in range(k):
            token = keys[rank] & 0xFFFFFFFF if rank < count else rank
            ids[r, rank] = token
            values[r, rank] = scores[r, token] if rank < count else np.float32(np.nan)


@kernel()
def count_above(scores: NDArray[np.float32], bounds: NDArray[np.float32], out: NDArray[np.int64]) -> None:
    """Set out[r] to the number of scores of row r that are larger than bounds[r]."""
    for r in range(len(scores)):
        count = 0
        bound = bounds[r]
        for score in scores[r]:
            count += score > bound
        out[r] = count


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _sum_of_exponentials(row: NDArray[np.float32], highest: np.float32) -> float:
    """Return the sum of exp(score - highest), off by 2e-6. For speed, powers of two are computed from the bits of a
    float (the whole part of the exponent) and a polynomial (the rest)."""
    total = 0.0
    for start in range(0, len(row), 512):
        part = np.float32(0)
        for score in row[start : start + 512]:
            x = max((score - highest) * np.float32(1.4426950408889634), np.float32(-126))
            whole = np.floor(x)
            f = x - whole
            power = np.float32(1.8775767e-3)
            power = power * f + np.float32(8.9893397e-3)
            power = power * f + np.float32(5.5826318e-2)
            power = power * f + np.float32(2.4015361e-1)
            power = power * f + np.float32(6.9315308e-1)
            power = power * f + np.float32(9.9999994e-1)
            part += power * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
        total += float(part)
    return total


@kernel()
def sums_of_exponentials(scores: NDArray[np.float32], highest: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Set out[r] to the sum of exp(score - highest[r]) over row r."""
    for r in range(len(scores)):
        out[r] = _sum_of_exponentials(scores[r], highest[r])


@kernel()
def count_around(
    scores: NDArray[np.float32], low: NDArray[np.float32], high: NDArray[np.float32],
    above: NDArray[np.int64], within: NDArray[np.int64],
) -> None:  # fmt: skip
    """Set above[r, m] to the number of scores of row r that are larger than high[r, m], and within[r, m] to the number
    of scores from low[r, m] to high[r, m]."""
    for r in range(len(scores)):
        row = scores[r]
        for m in range(low.shape[1]):
            more, reach = np.int32(0), np.int32(0)  # 32 bits, like scores, so that the loop can be vectorised
            bottom, top = low[r, m], high[r, m]
            for t in range(len(row)):
                more += np.int32(row[t] > top)
                reach += np.int32(row[t] >= bottom)
            above[r, m] = more
            within[r, m] = reach - more


@kernel()
def find_several(
    scores: NDArray[np.float32], low: NDArray[np.float32], high: NDArray[np.float32], within: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (n, 3): the row r, the range m and the token of every score from low[r, m] to high[r, m], for those ranges
    that hold several scores, as within[r, m] tells."""
    found = np.empty((within.sum(), 3), np.int64)
    count = 0
    for r in range(len(scores)):
        for m in range(low.shape[1]):
            left = within[r, m] if within[r, m] > 1 else 0
            t = 0
            while left:
                if low[r, m] <= scores[r, t] <= high[r, m]:
                    found[count, 0] = r
                    found[count, 1] = m
                    found[count, 2] = t
                    count += 1
                    left -= 1
                t += 1
    return found[:count]


@kernel(fastmath={"reassoc", "contract"})
def dots(
    A: NDArray[np.float64], B: NDArray[np.float32], a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return A[a[n]] · B[b[n]] in float64, for each n."""
    out = np.empty(len(a))
    for n in range(len(a)):
        x, y, total = A[a[n]], B[b[n]], 0.0
        for i in range(len(x)):
            total += x[i] * np.float64(y[i])
        out[n] = total
    return out
