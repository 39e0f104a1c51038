"""Tell from weights alone where heads look by position, with content left out, as shares of attention.

Learned positions: the vectors of the first positions go alone through the norm that a layer's attention reads, W_Q and
W_K with biases and norms, scale, soft cap, and a softmax over the positions that each sees. Rotary positions: the mean
of what the norm makes of all tokens' embeddings is query and key at each distance; the softmax is over distances.
"""

from concurrent.futures import Executor

import torch
from torch import Tensor

from lexiscope.precompute.project.embedding import Float32
from lexiscope.precompute.shape import FACTORS
from lexiscope.precompute.weights.architectures.base import Model, rotated

POSITIONS = 65  # positions 0 to 64, or distances 0 to 64; all positions where there are fewer
FIRST_ROW = 2  # the first position whose own, the one before and position 0 are three
TOKENS_AT_ONCE = 4096  # tokens that go through a norm at once


def position_arrays(model: Model, layer: int, W_E: Tensor, pool: Executor) -> dict[str, Float32]:
    """Return the arrays of positions that FORMAT.md lists for a layer's heads. W_E (d_vocab, d_model) is on the device
    that is to compute them."""
    filled = model.skeleton
    filled.fill_attention(layer, W_E.device)
    with torch.no_grad():
        if model.shape.positions == "rotary":
            by_distance = torch.softmax(_scores_by_distance(filled, layer, W_E, pool), dim=1)
            nowhere = torch.full((len(by_distance),), torch.nan)
            shares = torch.stack([nowhere, by_distance[:, 1], by_distance[:, 0], nowhere], dim=1)
        else:
            looks = _attention_of_positions(filled, layer, W_E.device)
            shares, by_distance = _mean_shares(looks), _mean_by_distance(looks, model.shape.causal)
            if model.shape.causal:
                shares[:, -1] = torch.nan
    return {"positions.shares": shares.float().numpy(), "positions.by_distance": by_distance.float().numpy()}


def _scores_by_distance(model: Model, layer: int, W_E: Tensor, pool: Executor) -> Tensor:
    """Return the scores (n_heads, POSITIONS) of the mean token with itself by the distance, in float64."""
    norm = model.norm("attention", layer)

    def sum_of(rows: Tensor) -> Tensor:
        return norm(model.stream_of(rows)).sum(dim=0).cpu().double()  # type: ignore[no-any-return]

    total = torch.stack([*pool.map(sum_of, torch.split(W_E, TOKENS_AT_ONCE))]).sum(dim=0)
    mean = (total / len(W_E)).to(W_E)[None]
    q, k = (model.head_states(layer, kind, mean).cpu().double() for kind in FACTORS["qk"])  # (n_heads, 1, d_head) each
    cos, sin = (turns.double() for turns in model.rotation(layer, POSITIONS))
    turned = rotated(q.expand(-1, POSITIONS, -1), (cos, sin))  # (n_heads, POSITIONS, d_head)
    return model.capped(layer, (turned * rotated(k, (cos[:1], sin[:1]))).sum(dim=2) * model.scale(layer))


def _attention_of_positions(model: Model, layer: int, device: torch.device) -> Tensor:
    """Return the attention (n_heads, N, N) of the first N learned positions on each other, in float64."""
    x = model.norm("attention", layer)(model.W_pos[:POSITIONS].to(device))
    q, k = (model.head_states(layer, kind, x).cpu().double() for kind in FACTORS["qk"])  # (n_heads, N, d_head)
    scores = model.capped(layer, q @ k.transpose(1, 2) * model.scale(layer))
    if model.shape.causal:
        scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1).bool(), -torch.inf)
    return torch.softmax(scores, dim=2)


def _mean_shares(looks: Tensor) -> Tensor:
    """Return the mean shares (n_heads, 4) of position 0, the one before, the own and the next, over the positions for
    which these are four; NaN without such positions."""
    i = torch.arange(FIRST_ROW, looks.shape[1] - 1)
    return torch.stack([looks[:, i, at].mean(dim=1) for at in (torch.zeros_like(i), i - 1, i, i + 1)], dim=1)


def _mean_by_distance(looks: Tensor, causal: bool) -> Tensor:
    """Return the mean share by distance, how far back it is, over the same positions: (n_heads, distances). A position
    counts as 0 at a distance where there is none, so that shares add up to 1."""
    n = looks.shape[1]
    counted = looks[:, FIRST_ROW : n - 1]
    distances = range(0 if causal else 1 - n, n)
    sums = [counted.diagonal(FIRST_ROW - distance, 1, 2).sum(dim=1) for distance in distances]
    return torch.stack(sums, dim=1) / max(counted.shape[1], 1)
