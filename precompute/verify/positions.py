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
    for head in heads.tolist():
        rotary = model.shape.positions == "rotary"
        shares, by_distance = (_by_distance if rotary else _by_position)(brute, model, layer, head)
        stored = file.array("positions.shares")[head], file.array("positions.by_distance")[head]
        for found, exact in zip(stored, (shares, by_distance), strict=True):
            if len(found) != len(exact) or not np.allclose(found, exact, 0, ERROR, equal_nan=True):
                return f"where head {head} looks by position"
    return None


def _by_distance(brute: BruteForce, model: Model, layer: int, head: int) -> tuple[Float64, Float64]:
    """Return shares (4,) and shares by distance of a head whose positions are rotary, with rotations as complex
    numbers."""
    stream = model.stream_of(model.W_E)
    q, k = (_states(brute, model, layer, kind, head, stream).mean(axis=0) for kind in ("w_q", "w_k"))
    cos, sin = (turns.numpy().astype(np.float64) for turns in model.rotation(layer, POSITIONS))
    half = cos.shape[1] // 2
    turns = (cos + 1j * sin)[:, :half]
    first, second = ((z[:half] + 1j * z[half : 2 * half]) for z in (q, k))
    turned = ((first * turns) @ np.conj(second * turns[0])).real  # (POSITIONS,)
    by_distance = _softmax(_capped(model, layer, turned + q[2 * half :] @ k[2 * half :]))
    return np.array([np.nan, by_distance[1], by_distance[0], np.nan]), by_distance


def _by_position(brute: BruteForce, model: Model, layer: int, head: int) -> tuple[Float64, Float64]:
    """Return shares (4,) and shares by distance of a head whose positions are learned."""
    positions, causal = model.W_pos[:POSITIONS], model.shape.causal
    n = len(positions)
    q, k = (_states(brute, model, layer, kind, head, positions) for kind in ("w_q", "w_k"))
    shares, by_distance, rows = np.zeros(4), np.zeros(n if causal else 2 * n - 1), range(FIRST_ROW, n - 1)
    for i in rows:
        seen = i + 1 if causal else n
        looks = _softmax(_capped(model, layer, k[:seen] @ q[i]))
        shares += [looks[0], looks[i - 1], looks[i], np.nan if causal else looks[i + 1]]
        for j, share in enumerate(looks):
            by_distance[i - j + (0 if causal else n - 1)] += share
    if not rows:
        return np.full(4, np.nan), by_distance
    return shares / len(rows), by_distance / len(rows)


def _states(brute: BruteForce, model: Model, layer: int, kind: str, head: int, stream: torch.Tensor) -> Float64:
    """Return a head's queries or keys (n, d_head) of a stream (n, d_model)."""
    first, d_head = model.shape.row(kind, head, 0), model.shape.d_head
    numbers, bias, norms = np.arange(first, first + d_head), model.bias(layer, kind), model.head_norms(layer, kind)
    with torch.no_grad():
        x = model.norm("attention", layer)(stream).numpy().astype(np.float64)
        z = x @ brute.vectors(layer, kind, numbers).T
        if bias is not None:
            z += bias[numbers].numpy()
        if norms:
            norm = norms[first // d_head if len(norms) > 1 else 0]
            z = norm(torch.from_numpy(z).float()).numpy().astype(np.float64)
    return np.asarray(z)


def _capped(model: Model, layer: int, scores: Float64) -> Float64:
    scaled = scores * model.scale(layer)
    cap = getattr(model.attention_of(layer), "attn_logit_softcapping", None)
    return scaled if cap is None else np.asarray(cap * np.tanh(scaled / cap))


def _softmax(scores: Float64) -> Float64:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())
