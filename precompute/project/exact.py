"""Compute exact scores: in float64, in a fixed order, rounded once to float32. Searches only propose candidates; the
scores computed here decide.

The scores of pairs are made here (`pair_scores`), those of vectors in vector_kernel.py from the `dot` of this module;
under the cosine lens these are (dot - dot with the mean row) / norm. A score depends on its vector and tokens alone, so
lists do not depend on device, block size or number of threads, equal embeddings get equal scores, and a brute-force
computation in float64 gives the same lists, except that another order of sums may change the last bit of a score.
"""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Embedding, Float32, Float64, Int32

LANES = 32  # running sums of a dot product: enough to fill any processor's vector registers


@kernel()
def dot(x: Float32, y: Float32, lanes: Float64) -> float:
    """Return x · y in float64; `lanes` (LANES,) is memory for the running sums. Products of two float32 numbers are
    exact in float64, and they are always added in the same order."""
    lanes[:] = 0.0
    whole = len(x) // LANES * LANES
    for start in range(0, whole, LANES):
        x_lanes = x[start : start + LANES]
        y_lanes = y[start : start + LANES]
        for lane in range(LANES):
            lanes[lane] += np.float64(x_lanes[lane]) * np.float64(y_lanes[lane])
    total = 0.0
    for lane in range(LANES):
        total += lanes[lane]
    for i in range(whole, len(x)):
        total += np.float64(x[i]) * np.float64(y[i])
    return total


@kernel()
def _rows_times(rows: Float64, W: Float64) -> Float64:
    """Multiply rows (n, d_model) with W (d_model, d_head), each row by itself, so that equal rows give equal
    products."""
    out = np.zeros((len(rows), W.shape[1]))
    for r in range(len(rows)):
        for i in range(W.shape[0]):
            for j in range(W.shape[1]):
                out[r, j] += rows[r, i] * W[i, j]
    return out


@kernel()
def _row_dots(A: Float64, B: Float64, i: NDArray[np.int64], j: NDArray[np.int64]) -> Float64:
    """Return A[i[n]] · B[j[n]] for each n."""
    out = np.empty(len(i))
    for n in range(len(i)):
        s = 0.0
        for x in range(A.shape[1]):
            s += A[i[n], x] * B[j[n], x]
        out[n] = s
    return out


def pair_scores(
    source: Embedding,
    target: Embedding,
    W_left: Float32 | Float64,
    W_right: Float32 | Float64,
    lens: str,
    i: Int32,
    j: Int32,
) -> Float32:
    """Return the score of each pair of tokens (i[n], j[n]): e_i W_left · e_j W_right, where e_i and e_j are their
    embeddings, and W_left and W_right are (d_model, d_head)."""
    from_tokens, i_row = np.unique(i, return_inverse=True)
    to_tokens, j_row = np.unique(j, return_inverse=True)
    A = _rows_times(_lensed_rows(source, from_tokens, lens), W_left.astype(np.float64))
    B = _rows_times(_lensed_rows(target, to_tokens, lens), W_right.astype(np.float64))
    scores: Float64 = _row_dots(A, B, i_row, j_row)
    if lens == "cosine":
        scores *= source.inverse_norm[i] * target.inverse_norm[j]
    return np.asarray(scores.astype(np.float32) + np.float32(0))  # + 0 turns -0 into 0


def _lensed_rows(embedding: Embedding, tokens: Int32, lens: str) -> Float64:
    """Return the embeddings of these tokens in float64, (len(tokens), d_model); under the cosine lens they are centred,
    but not yet set to length one."""
    rows = embedding.rows[tokens].astype(np.float64)
    return rows - embedding.mean if lens == "cosine" else rows
