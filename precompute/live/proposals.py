"""Find the vectors or tokens that may be among the n largest. Products in float32 give the candidates, float64 decides
among them, so that neither the device nor other asks in the same batch change an answer.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Float32, Float64
from lexiscope.precompute.project.rounding import TINY, gamma
from lexiscope.precompute.project.vector_kernel import GROUP, LOWEST


def error_of_products(d_model: int) -> tuple[float, float]:
    """Return two numbers, share and least, that bound rounding: a float32 product of v and q is off by at most share *
    (|v| + least) * (|q| + least)."""
    return gamma(d_model + 16), (d_model * TINY) ** 0.5


def proposals(scores: Tensor, error: Tensor, factor: float, n: int) -> Tensor:
    """Return, in rising order, the positions of all scores (N,) that may be among the n largest if each is off by up to
    error * factor.

    The n-th largest of any set of lower bounds is a lower bound of the n-th largest score: this is used first for
    groups of scores, then for the scores of the groups that are left.
    """
    n = min(n, len(scores))
    if scores.device.type == "cpu":
        candidates = np.empty(len(scores), np.int64)
        count = _propose(scores.numpy(), error.numpy(), np.float32(factor), n, candidates)
        return torch.from_numpy(candidates[:count].copy())
    error = error * factor
    return torch.nonzero(scores + error >= (scores - error).topk(n).values[-1])[:, 0]


@kernel()
def _propose(scores: Float32, error: Float32, factor: np.float32, n: int, candidates: NDArray[np.int64]) -> int:
    """Do as `proposals` does, but write the positions into `candidates`, and return how many there are."""
    groups = len(scores) // GROUP
    floor = LOWEST
    if n <= groups:
        lower = np.empty(groups, np.float32)
        for g in range(groups):
            most = LOWEST
            for i in range(g * GROUP, g * GROUP + GROUP):
                most = max(most, scores[i] - error[i] * factor)
            lower[g] = most
        floor = np.partition(lower, groups - n)[groups - n]
    count = 0
    for i in range(len(scores)):
        if scores[i] + error[i] * factor >= floor:
            candidates[count] = i
            count += 1
    best = np.empty(count, np.float32)
    for c in range(count):
        best[c] = scores[candidates[c]] - error[candidates[c]] * factor
    floor = np.partition(best, count - n)[count - n]
    kept = 0
    for c in range(count):
        if scores[candidates[c]] + error[candidates[c]] * factor >= floor:
            candidates[kept] = candidates[c]
            kept += 1
    return kept


def exact_products(matrices: Sequence[Tensor], rows: Tensor, queries: Float64) -> Float64:
    """Return the products (n, m), in float64, of n rows with queries (m, d_model). The rows belong to several float32
    matrices, (count, d_model) each; `rows` (n,) holds their numbers, counted through all matrices, in rising order."""
    numbers, count = rows.cpu().numpy(), len(matrices[0])
    ends = np.searchsorted(numbers, np.arange(1, len(matrices) + 1) * count)
    some = [
        _rows(matrix, own - at * count)
        for at, (matrix, own) in enumerate(zip(matrices, np.split(numbers, ends[:-1]), strict=True))
        if len(own)
    ]
    return np.asarray(np.einsum("nd,md->nm", np.concatenate(some).astype(np.float64), queries))


def _rows(matrix: Tensor, rows: NDArray[np.int64]) -> Float32:
    # so few rows are faster without torch, whose threads wait for each other
    if matrix.device.type == "cpu":
        return np.asarray(matrix.numpy()[rows])
    return np.asarray(matrix[torch.from_numpy(rows).to(matrix.device)].cpu().numpy())
