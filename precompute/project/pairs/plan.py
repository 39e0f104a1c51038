"""Choose the cheapest way to search a chunk of rows, by estimating from a sample of pairs what each way would cost.

This choice changes only the time: every way finds the same pairs. Constants are nanoseconds for each pair, roughly as
measured on one thread of one machine, so that the cost of a way is the mean over all pairs of the chunk; only ratios
matter. To measure them again, give Search a `choose_way` that always returns the same way, and time it on the heads of
benchmarks/pairs.py.
"""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.pairs.coarse import USUAL_LOSS_SHARE, relative_cost
from lexiscope.precompute.project.pairs.coordinates import float_product
from lexiscope.precompute.project.pairs.scan import ROWS_PER_BLOCK, strips_within_reach
from lexiscope.precompute.project.pairs.strips import PREFIXES, STRIP, Columns, Rows

# Ways to search a chunk: any other number says how many leading coordinates are multiplied before `sift`.
SCAN, COARSE = 0, -1

TILE_ROWS, TILE_COLUMNS = 512, 16 * STRIP  # rows and columns of one product

# Cost of a scan in ns: of a pair within reach (8 coordinates), of one that is tested again (16), of one that is scored.
SCAN_8, SCAN_16, SCAN_FINISH = 0.4, 1.2, 45.0
DRAWN_ALONG = 4.0  # pairs that are tested again for each one whose bound reaches a floor, because they share its strip
# Cost of a product in ns per pair within reach: of each coordinate, of the rest; of sifting; of a pair that is scored.
MULTIPLY, PRODUCT, SIFT, SIFT_FINISH = 0.024, 0.15, 0.2, 50.0
# Cost of a coarse product, ns: of a strip's extremes, by pair within reach; of a pair in a strip that is opened.
EXTREMES, SCORE_OPENED = 0.1, 12.0
MAKE_COARSE = 600.0  # ns per column: rounding the coordinates of a row and of a column to bytes
CHUNKS_SERVED = 8  # chunks of this length among which the cost of rounding to bytes is divided

SMALL_CHUNK = 1 << 20  # pairs: below this a plan costs more than it saves
SAMPLE_ROWS, SAMPLE_COLUMNS = 24, 512  # rows and columns whose pairs tell which share of all pairs a bound leaves
SAMPLE_BLOCKS = 6  # blocks of rows that tell which share of columns is within reach


def cheapest_way(
    rows: Rows, columns: Columns, start: int, stop: int, top: float, bottom: float, coarse_is_made: bool
) -> int:
    """Return the cheapest way to search rows start to stop, if scores must be >= top or <= bottom: SCAN, COARSE, or the
    number of leading coordinates to multiply before `sift`."""
    d = int(rows.coords.shape[1])
    if (stop - start) * len(columns.tokens) < SMALL_CHUNK:
        return d
    i = np.unique(np.linspace(start, stop - 1, SAMPLE_ROWS).astype(int))
    j = np.unique(np.linspace(0, len(columns.tokens) - 1, SAMPLE_COLUMNS).astype(int))
    shifts = rows.shift[i, None] + columns.shift.reshape(-1)[j]  # (i, j)
    shell = np.searchsorted(columns.starts, j, side="right") - 1
    error = rows.error[i] @ columns.error[shell].T

    def share_left(prefix: int, rest: NDArray[np.float32]) -> float:
        """Return the share of the sampled pairs whose scores may still be >= top or <= bottom after the first
        `prefix` coordinates are multiplied; the others add at most `rest` (sampled rows, sampled columns)."""
        score = shifts + float_product(rows.coords[i, :prefix], columns.coords[j, :prefix])
        return float(((score + rest + error >= top) | (score - rest - error <= bottom)).mean())

    coarse = relative_cost(d)
    prefixes = PREFIXES if coarse >= 1 else PREFIXES[:2]  # where bytes are fast, no longer prefix is faster
    scanned, reached = (
        _share_within_reach(rows, columns, start, stop, together, top, bottom)
        for together in (ROWS_PER_BLOCK, TILE_ROWS)
    )
    rests = columns.rest.reshape(len(PREFIXES), -1)[:, j]
    left = [share_left(prefix, rows.rest[i, level, None] * rests[level]) for level, prefix in enumerate(prefixes)]
    full_product = PRODUCT + d * MULTIPLY
    costs: dict[int, float] = {
        SCAN: scanned * SCAN_8 + min(scanned, left[0] * DRAWN_ALONG) * SCAN_16 + left[1] * SCAN_FINISH,
        d: reached * (SIFT + full_product),
    }
    if coarse < 1:
        opened = share_left(d, 2 * USUAL_LOSS_SHARE * rows.norm[i, None] * columns.largest_norm[shell]) * STRIP
        making = 0 if coarse_is_made else MAKE_COARSE / min(CHUNKS_SERVED * (stop - start), len(rows.tokens) - start)
        costs[COARSE] = reached * (EXTREMES + coarse * full_product) + min(1.0, opened) * SCORE_OPENED + making
    for prefix, share in zip(prefixes, left, strict=True):
        if prefix < d:
            costs[prefix] = reached * (SIFT + PRODUCT + prefix * MULTIPLY) + share * SIFT_FINISH
    return min(costs, key=costs.__getitem__)


def _share_within_reach(
    rows: Rows, columns: Columns, start: int, stop: int, together: int, top: float, bottom: float
) -> float:
    """Return the share of columns that bounds leave for a block of `together` rows, averaged over a few blocks."""
    starts = np.unique(np.linspace(start, max(start, stop - together), SAMPLE_BLOCKS).astype(int)).tolist()
    ranges = [strips_within_reach(rows, columns, i0, min(i0 + together, stop), top, bottom) for i0 in starts]
    return sum(float(np.diff(strips).sum()) for strips in ranges) / len(starts) / len(columns.shift)
