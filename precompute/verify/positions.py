"""Check where the heads of a layer look by position alone, by brute force: query by query and position by position, in
float64 and by the definitions of docs/format.md."""

import numpy as np
import torch

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.verify.brute_force import BruteForce, Float64, Ids
from lexiscope.precompute.weights.architectures.base import Model

POSITIONS, FIRST_ROW = 65, 2  # as docs/format.md defines them
ERROR = 1e-4  # allowed error of a share: norms and products are in float32


def positions_error(index: Index, layer: int, brute: BruteForce, heads: Ids) -> str | None:
    """Say what is wrong with where these heads look by position; return None if nothing is."""
    file = index.part("heads", layer)
    assert isinstance(brute.model, Model)
    model = brute.model.skeleton
    model.fill_attention(layer, torch.device("cpu"))
    look = _by_distance if model.shape.positions == "rotary" else _by_position
    for head in heads.tolist():
        stored = file.array("positions.shares")[head], file.array("positions.by_distance")[head]
        for found, exact in zip(stored, look(model, layer, head), strict=True):
            if len(found) != len(exact) or not np.allclose(found, exact, 0, ERROR, equal_nan=True):
                return f"where head {head} looks by position"
    return None


def _by_distance(model: Model, layer: int, head: int) -> tuple[Float64, Float64]:
    """Return shares (4,), and shares by distance, of a head with rotary positions; rotations are complex numbers."""
    read = model.norm("attention", layer)(model.stream_of(model.W_E)).double().mean(dim=0).float()
    q, k = (_states(model, layer, kind, head, read[None])[0] for kind in ("w_q", "w_k"))
    cos, sin = (turns.numpy().astype(np.float64) for turns in model.rotation(layer, POSITIONS))
    half = cos.shape[1] // 2
    turns = (cos + 1j * sin)[:, :half]
    first, second = (z[:half] + 1j * z[half : 2 * half] for z in (q, k))
    scores = ((first * turns) @ np.conj(second * turns[0])).real + q[2 * half :] @ k[2 * half :]
    by_distance = _softmax(model, layer, scores)
    return np.array([np.nan, by_distance[1], by_distance[0], np.nan]), by_distance


def _by_position(model: Model, layer: int, head: int) -> tuple[Float64, Float64]:
    """Return shares (4,), and shares by distance, of a head with learned positions."""
    read, causal = model.norm("attention", layer)(model.W_pos[:POSITIONS]), model.shape.causal
    q, k = (_states(model, layer, kind, head, read) for kind in ("w_q", "w_k"))
    n, shares = len(q), np.zeros(4)
    by_distance, rows = np.zeros(n if causal else 2 * n - 1), range(FIRST_ROW, n - 1)
    for i in rows:
        looks = _softmax(model, layer, k[: i + 1 if causal else n] @ q[i])
        shares += [looks[0], looks[i - 1], looks[i], np.nan if causal else looks[i + 1]]
        for j, share in enumerate(looks):
            by_distance[i - j + (0 if causal else n - 1)] += share
    if not rows:
        return np.full(4, np.nan), by_distance
    return shares / len(rows), by_distance / len(rows)


def _states(model: Model, layer: int, kind: str, head: int, read: torch.Tensor) -> Float64:
    """Return a head's queries or keys (n, d_head) of what its attention reads, (n, d_model)."""
    return np.asarray(model.head_states(layer, kind, read)[head].detach().numpy(), np.float64)


def _softmax(model: Model, layer: int, products: Float64) -> Float64:
    scores = model.capped(layer, torch.from_numpy(products * model.scale(layer))).numpy()
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())
