"""Read a block of correlations r once, on the CPU: sum up |r|, and find the pairs that may be matches.

Rows and columns are divided into stretches, and the largest |r| of every stretch is kept. The k-th largest of these
maxima is a floor for the k best of that row or column, and only stretches that reach it are read again.
"""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import FASTMATH, kernel
from lexiscope.precompute.project.embedding import Float32
from lexiscope.precompute.project.vector_kernel import kth_largest

Int64 = NDArray[np.int64]

STRETCHES = 32  # stretches into which a row or column is divided, at least, if it is that long
LONGEST_STRETCH = 64  # most columns of a stretch


@kernel()
def _stretch(n: int, longest: int) -> int:
    """Return how many neighbouring entries make a stretch of a row or column of n entries."""
    length = max(1, min(longest, n // STRETCHES))
    return length - length % 16 if length > 16 else length


@kernel(fastmath=FASTMATH)
def _extremes(product: Float32, width: int, height: int, row_extremes: Float32, column_extremes: Float32) -> float:
    """Return the sum of |r|, and set the extremes to the largest |r| in each stretch: of `width` columns in a row, and
    of `height` rows in a column."""
    total = 0.0
    n_columns = product.shape[1]
    for i in range(product.shape[0]):
        row, downwards = product[i], column_extremes[i // height]
        for g in range(row_extremes.shape[1]):
            start = np.uint64(g * width)  # unsigned: no check for counting from the end, so the loop can be vectorised
            stop = np.uint64(min(g * width + width, n_columns))
            part = largest = np.float32(0)
            for j in range(start, stop):
                size = abs(row[j])
                part += size
                largest = max(largest, size)
                downwards[j] = max(downwards[j], size)
            row_extremes[i, g] = largest
            total += np.float64(part)
    return total


@kernel()
def _appended(pairs: Int64, count: int, i: int, j: int) -> Int64:
    """Return `pairs` (capacity, 2), of which `count` are in use, with the pair (i, j) added: the same array, or a
    larger copy if there is no room."""
    if count == len(pairs):
        larger = np.empty((2 * count, 2), np.int64)
        larger[:count] = pairs
        pairs = larger
    pairs[count, 0] = i
    pairs[count, 1] = j
    return pairs


@kernel()
def _of_rows(product: Float32, extremes: Float32, width: int, floors: Float32, error: np.float32, most: int) -> Int64:
    """Return the pairs (row, column) whose |r| may be among the `most` largest of their row."""
    pairs, count = np.empty((max(16, 2 * len(product)), 2), np.int64), 0
    for i in range(len(product)):
        floor = floors[i]
        reaching = 0
        for g in range(extremes.shape[1]):
            reaching += extremes[i, g] + error >= floor
        if reaching == 0:
            continue
        if reaching > most:
            floor = max(floor, kth_largest(extremes[i].copy(), most) - error)
        for g in range(extremes.shape[1]):
            if extremes[i, g] + error >= floor:
                for j in range(g * width, min(g * width + width, product.shape[1])):
                    if abs(product[i, j]) + error >= floor:
                        pairs = _appended(pairs, count, i, j)
                        count += 1
    return pairs[:count]


@kernel()
def _of_columns(
    product: Float32, extremes: Float32, height: int, floors: Float32, error: np.float32, most: int
) -> Int64:
    """Return the pairs (row, column) whose |r| may be among the `most` largest of their column."""
    n_rows, n_columns = product.shape
    reaching = np.zeros(n_columns, np.int32)
    for g in range(len(extremes)):
        for j in range(n_columns):
            reaching[j] += extremes[g, j] + error >= floors[j]
    floors = floors.copy()
    for j in range(n_columns):
        if reaching[j] > most:
            floors[j] = max(floors[j], kth_largest(extremes[:, j].copy(), most) - error)
    pairs, count = np.empty((max(16, 2 * n_columns), 2), np.int64), 0
    for g in range(len(extremes)):
        for j in range(n_columns):
            if extremes[g, j] + error >= floors[j]:
                for i in range(g * height, min(g * height + height, n_rows)):
                    if abs(product[i, j]) + error >= floors[j]:
                        pairs = _appended(pairs, count, i, j)
                        count += 1
    return pairs[:count]


@kernel()
def scan(
    product: Float32,
    row_floors: Float32,
    column_floors: Float32,
    error: np.float32,
    most_of_row: int,
    most_of_column: int,
) -> tuple[float, Int64, Int64]:
    """Return the sum of |r| in a block of correlations r, and two lists of pairs (n, 2): those that may be among the
    best matches of their row, and of their column.

    Only pairs whose exact |r| may reach the floor of the row or column are returned; a product may be off by `error`.
    """
    n_rows, n_columns = product.shape
    width, height = _stretch(n_columns, LONGEST_STRETCH), _stretch(n_rows, n_rows)
    row_extremes = np.empty((n_rows, -(-n_columns // width)), np.float32)
    column_extremes = np.zeros((-(-n_rows // height), n_columns), np.float32)
    total = _extremes(product, width, height, row_extremes, column_extremes)
    rows = _of_rows(product, row_extremes, width, row_floors, error, most_of_row)
    columns = _of_columns(product, column_extremes, height, column_floors, error, most_of_column)
    return total, rows, columns
