"""Who may be among the n largest: float32 products propose, float64 decides, so that company and device do not matter.
The bounds are those of precompute/rounding.py.
"""

import numpy as np
import torch
from torch import Tensor

from precompute.embedding import Float64
from precompute.rounding import TINY, gamma

GROUP = 64


def error_of_products(d_model: int) -> tuple[float, float]:
    """A float32 product of v and q is off by at most share * (|v| + least) * (|q| + least)."""
    return gamma(d_model + 16), (d_model * TINY) ** 0.5


def proposals(scores: Tensor, error: Tensor, n: int) -> Tensor:
    """Numbers, rising, of all that may be among the n largest when each of scores (N,) is off by up to error (N,).

    The n-th largest of any set of lower bounds is one of the n-th largest score: first over groups, then over those
    found by it.
    """
    n = min(n, len(scores))
    lower, groups = scores - error, len(scores) // GROUP
    if n > groups // 2:
        return torch.nonzero(scores + error >= lower.topk(n).values[-1])[:, 0]
    floor = lower[: groups * GROUP].view(groups, GROUP).amax(dim=1).topk(n).values[-1]
    found = torch.nonzero(scores + error >= floor)[:, 0]
    floor = lower[found].topk(n).values[-1]
    return found[scores[found] + error[found] >= floor]


def exact_products(rows: Tensor, queries: Float64) -> Float64:
    """rows (n, d_model) float32 times queries (m, d_model): (n, m) in float64, each row by itself."""
    return np.asarray(np.einsum("nd,md->nm", rows.cpu().numpy().astype(np.float64), queries))
