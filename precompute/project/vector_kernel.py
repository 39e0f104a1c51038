"""Find the exact top-k tokens of vectors on the CPU: one pass over the float32 scores of a vector serves both lenses
and both ends, which are the largest and the smallest scores.

The scores of the matrix product only tell which tokens may be on a list; those tokens are scored again by exact.dot.
"""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import FASTMATH, kernel
from lexiscope.precompute.project.exact import LANES, dot

GROUP = 64  # neighbouring scores of which only the extreme ones are compared at first
LOWEST = np.float32(-np.inf)


@kernel()
def order_key(score: np.float32, token: int) -> np.int64:
    """Return a key that sorts by score, largest first, then by token, smallest first."""
    bits = np.int64(np.float32(score).view(np.int32))
    if bits < 0:
        bits = np.int64(-2147483648) - bits  # float order for negative numbers; -0 equals 0
    return ((-bits) << np.int64(32)) + np.int64(token)


@kernel(fastmath=FASTMATH)
def _group_extremes(
    row: NDArray[np.float32], shift: np.float32, inverse: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Set out[lens, end, g] to the largest score in group g of GROUP tokens or, for the bottom end, to the largest
    negated score, in one pass for both lenses."""
    for g in range(out.shape[2]):
        start = np.uint64(g * GROUP)  # unsigned: no check for counting from the end, so the loop can be vectorised
        top = bottom = cosine_top = cosine_bottom = LOWEST
        if g * GROUP + GROUP <= len(row):
            for t in range(np.uint64(GROUP)):
                score = row[start + t]
                cosine = (score - shift) * inverse[start + t]
                top = max(top, score)
                bottom = max(bottom, -score)
                cosine_top = max(cosine_top, cosine)
                cosine_bottom = max(cosine_bottom, -cosine)
        else:
            for t in range(g * GROUP, len(row)):
                score = row[t]
                cosine = (score - shift) * inverse[t]
                top = max(top, score)
                bottom = max(bottom, -score)
                cosine_top = max(cosine_top, cosine)
                cosine_bottom = max(cosine_bottom, -cosine)
        out[0, 0, g] = top
        out[0, 1, g] = bottom
        out[1, 0, g] = cosine_top
        out[1, 1, g] = cosine_bottom


@kernel()
def kth_largest(values: NDArray[np.float32], k: int) -> np.float32:
    """Return the k-th largest of the values, which are reordered. This is Hoare's selection; numpy's takes seconds to
    compile."""
    first, last, wanted = 0, len(values) - 1, k - 1
    while first < last:
        a, b, c = values[first], values[(first + last) // 2], values[last]
        pivot = max(min(a, b), min(max(a, b), c))
        left, right = first, last
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if wanted <= right:
            last = right
        elif wanted >= left:
            first = left
        else:
            break
    kth: np.float32 = values[wanted]
    return kth


@kernel()
def _find_candidates(
    row: NDArray[np.float32],
    shift: np.float32,
    scale: NDArray[np.float32],  # with shift, turns a score of the product into the score of this lens
    sign: np.float32,
    slack: NDArray[np.float32],
    group_slack: NDArray[np.float32],
    error: np.float32,
    k: int,
    extremes: NDArray[np.float32],
    candidates: NDArray[np.int32],
    bounds: NDArray[np.float32],
) -> int:
    """Write into `candidates`, in rising order, every token that may be among the k largest of sign * score; return how
    many there are.

    The k-th largest of any set of lower bounds is a lower bound of the k-th largest score: this is used first for
    groups of tokens, then for the tokens of the groups that are left.
    """
    floor = LOWEST
    if k <= len(extremes):
        floor = kth_largest(extremes - error * group_slack, k)
    count = 0
    for g in range(len(extremes)):
        if extremes[g] + error * group_slack[g] >= floor:
            for t in range(g * GROUP, min(g * GROUP + GROUP, len(row))):
                score = sign * (row[t] - shift) * scale[t]
                if score + error * slack[t] >= floor:
                    candidates[count] = t
                    bounds[count] = score
                    count += 1
    if count > k:
        lower = np.empty(count, np.float32)
        for c in range(count):
            lower[c] = bounds[c] - error * slack[candidates[c]]
        floor = kth_largest(lower, k)
        kept = 0
        for c in range(count):
            if bounds[c] + error * slack[candidates[c]] >= floor:
                candidates[kept] = candidates[c]
                kept += 1
        count = kept
    return count


@kernel()
def _dots(
    vector: NDArray[np.float32],
    rows: NDArray[np.float32],
    candidates: NDArray[np.int32],
    known: NDArray[np.int32],
    known_dots: NDArray[np.float64],
    out: NDArray[np.float64],
    lanes: NDArray[np.float64],
) -> None:
    """Compute the exact products v · e_t of the candidates. Those of tokens in `known`, which rise as the candidates
    do, are taken from `known_dots`."""
    at = 0
    for c in range(len(candidates)):
        while at < len(known) and known[at] < candidates[c]:
            at += 1
        if at < len(known) and known[at] == candidates[c]:
            out[c] = known_dots[at]
        else:
            out[c] = dot(vector, rows[candidates[c]], lanes)


@kernel()
def _write_list(
    candidates: NDArray[np.int32],
    dots: NDArray[np.float64],
    mean_dot: float,
    inverse: NDArray[np.float64],
    lens: int,
    end: int,
    ids: NDArray[np.uint32],  # (k,) out
    out: NDArray[np.float32],  # (k,) out
) -> None:
    """Round the exact scores of the candidates, and write the best ones into a list: `ids` and `out`."""
    sign = np.float32(1 - 2 * end)
    keys = np.empty(len(candidates), np.int64)
    exact = np.empty(len(candidates), np.float32)
    for c in range(len(candidates)):
        score = dots[c]
        if lens == 1:
            score = (score - mean_dot) * inverse[candidates[c]]
        exact[c] = np.float32(score) + np.float32(0)  # + 0 turns -0 into 0
        keys[c] = order_key(sign * exact[c], candidates[c])
    order = np.argsort(keys)
    for rank in range(len(ids)):
        ids[rank] = candidates[order[rank]]
        out[rank] = exact[order[rank]]


@kernel()
def select(
    scores: NDArray[np.float32],  # (n, d_vocab) from the matrix product
    vectors: NDArray[np.float32],  # (n, d_model)
    errors: NDArray[np.float32],  # (n,) times a token's slack: how far a score of the product may be off
    mean_dots: NDArray[np.float64],  # (n,) v · mean, exact
    rows: NDArray[np.float32],  # (d_vocab, d_model)
    inverse: NDArray[np.float64],  # (d_vocab,) 1 / |e_t - mean|
    slack: NDArray[np.float32],  # (2, d_vocab) by lens
    group_slack: NDArray[np.float32],  # (2, groups) the largest of a group
    ids: NDArray[np.uint32],  # (n, 2, 2, k) out
    out: NDArray[np.float32],  # (n, 2, 2, k) out
) -> None:
    """Make the lists of some vectors, for both lenses and both ends, from their products with the vocabulary."""
    d_vocab, k = scores.shape[1], ids.shape[3]
    scales = np.ones((2, d_vocab), np.float32)
    scales[1] = inverse.astype(np.float32)
    extremes = np.empty((2, 2, group_slack.shape[1]), np.float32)
    candidates = np.empty((2, d_vocab), np.int32)
    dots = np.empty((2, d_vocab), np.float64)
    bounds = np.empty(d_vocab, np.float32)
    lanes = np.empty(LANES)
    counts = np.zeros(2, np.int64)
    shifts = np.zeros(2, np.float32)
    for v in range(len(scores)):
        shifts[1] = mean_dots[v]
        _group_extremes(scores[v], shifts[1], scales[1], extremes)
        for end in range(2):
            sign = np.float32(1 - 2 * end)
            counts[:] = 0
            for lens in range(2):
                count = _find_candidates(
                    scores[v], shifts[lens], scales[lens], sign, slack[lens], group_slack[lens], errors[v], k,
                    extremes[lens, end], candidates[lens], bounds,
                )  # fmt: skip
                counts[lens] = count
                _dots(
                    vectors[v],
                    rows,
                    candidates[lens, :count],
                    candidates[0, : counts[0] * lens],
                    dots[0],
                    dots[lens],
                    lanes,
                )
                _write_list(
                    candidates[lens, :count],
                    dots[lens],
                    mean_dots[v],
                    inverse,
                    lens,
                    end,
                    ids[v, lens, end],
                    out[v, lens, end],
                )


@kernel()
def rank(
    candidates: NDArray[np.int32],  # (n, 2, 2, depth) that hold the lists
    vectors: NDArray[np.float32],
    mean_dots: NDArray[np.float64],
    rows: NDArray[np.float32],
    inverse: NDArray[np.float64],
    ids: NDArray[np.uint32],  # (n, 2, 2, k) out
    out: NDArray[np.float32],  # (n, 2, 2, k) out
) -> None:
    """Make the lists of vectors whose candidates are known: score these exactly, and sort them."""
    dots = np.empty(candidates.shape[3])
    lanes = np.empty(LANES)
    for v in range(len(candidates)):
        for lens in range(2):
            for end in range(2):
                tokens = candidates[v, lens, end]
                for c in range(len(tokens)):
                    dots[c] = dot(vectors[v], rows[tokens[c]], lanes)
                _write_list(tokens, dots, mean_dots[v], inverse, lens, end, ids[v, lens, end], out[v, lens, end])
