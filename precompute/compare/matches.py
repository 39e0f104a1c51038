"""Keep the best matches of every vector so far, in the order in which they are stored: by |r|, ties by layer and
index."""

import numpy as np

from lexiscope.precompute.compare.block_kernel import Int64
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Float32, Float64


class Matches:
    """The best matches of n vectors among the `n_others` vectors of the other model, which are numbered through all its
    layers."""

    def __init__(self, n: int, n_others: int, most: int) -> None:
        self.most = min(most, n_others)
        self.r = np.zeros((n, self.most), np.float32)
        self.others = np.full(self.r.shape, -1, np.int64)  # -1: nothing there yet

    def floors(self, rows: Int64) -> Float32:
        """Return the |r| that a new match must reach to be among the best of these rows; it is negative where there is
        room for any match."""
        return np.where(self.others[rows, -1] < 0, np.float32(-1), np.abs(self.r[rows, -1]))

    def add(self, rows: Int64, others: Int64, r: Float64) -> None:
        """Add pairs with their exact correlations r; none of these pairs may have been added before."""
        _insert(self.r, self.others, rows, others, r.astype(np.float32))

    def arrays(self, side: str, count: int) -> dict[str, Array]:
        """Return the matches as arrays for the file; `count` is the number of vectors in a layer of the other model."""
        self._fill_with_zeros()
        return {
            f"{side}.layer": (self.others // count).astype(np.uint16),
            f"{side}.index": (self.others % count).astype(np.uint32),
            f"{side}.r": self.r,
        }

    def _fill_with_zeros(self) -> None:
        """Complete the matches of vectors with too few correlations other than 0, by the first other vectors whose r is
        0."""
        for row in np.flatnonzero(self.r[:, -1] == 0):
            alike = {int(other) for other, r in zip(self.others[row], self.r[row], strict=True) if r}
            rest = [other for other in range(2 * self.most) if other not in alike]
            self.others[row, len(alike) :] = rest[: self.most - len(alike)]
            self.r[row, len(alike) :] = 0


@kernel()
def _insert(best: Float32, best_others: Int64, rows: Int64, others: Int64, r: Float32) -> None:
    last = best.shape[1] - 1
    for n in range(len(rows)):
        row, other, size = rows[n], others[n], abs(r[n])
        at = last
        if best_others[row, at] >= 0 and (
            size < abs(best[row, at]) or (size == abs(best[row, at]) and other > best_others[row, at])
        ):
            continue
        while at > 0 and (
            best_others[row, at - 1] < 0
            or size > abs(best[row, at - 1])
            or (size == abs(best[row, at - 1]) and other < best_others[row, at - 1])
        ):
            best[row, at] = best[row, at - 1]
            best_others[row, at] = best_others[row, at - 1]
            at -= 1
        best[row, at] = r[n]
        best_others[row, at] = other


@kernel(fastmath={"reassoc", "contract"})  # sums are reordered to fill registers, always in the same way
def exact_r(A: Float64, B: Float64, pairs: Int64) -> Float64:
    """Return A[i] · B[j] for each of the pairs (n, 2), cut off below -1 and above 1."""
    out = np.empty(len(pairs))
    for n in range(len(pairs)):
        x, y = A[pairs[n, 0]], B[pairs[n, 1]]
        total = 0.0
        for k in range(np.uint64(len(x))):
            total += x[k] * y[k]
        out[n] = min(1.0, max(-1.0, total))
    return out
