"""Compute what heads make of states of a run: what a state looks for, which queries would find it, and its message.

For a state h these are three products with a head's matrices, each a vector (d_model,) that is compared with tokens: h
W_Q W_Kᵀ (kind w_q: its query, compared with what keys are made of), h W_K W_Qᵀ (kind w_k: its key, compared with what
queries are made of) and h W_V W_O (the message). With biases and positions, they are exactly what the model computes.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.weights.architectures.base import Rotation, rotated

OTHER_SIDE = {"w_q": "w_k", "w_k": "w_q"}


def sought(w: Weights, layer: int, kind: str, x: Tensor, heads: Sequence[int]) -> Tensor:
    """Return x W_Q W_Kᵀ (kind w_q) or x W_K W_Qᵀ (kind w_k) of these heads, (heads, n, d_model), for states x (n,
    d_model) after the layer's norm."""
    mine, others = (w.every_head(each, layer)[heads] for each in (kind, OTHER_SIDE[kind]))
    return x @ mine.transpose(1, 2) @ others


def exactly_sought(
    w: Weights, layer: int, kind: str, x: Tensor, heads: Sequence[int], here: Tensor, there: Tensor,
    rotation: Rotation | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return vectors (heads, n, d_model) and constants (heads, n) for states x (n, d_model) at positions `here` (n,).

    For a state x' at position `there` (heads, n), vector · x' + constant is the attention score of a query of x with a
    key of x' (kind w_q), or of a key of x with a query of x' (kind w_k). The score is without a soft cap, and without
    the divisor of a norm that x' goes through in the head.
    """
    other = OTHER_SIDE[kind]
    z = w.head_states(kind, layer, x)[heads]  # (heads, n, d_head)
    if rotation is not None:  # rotate to the own position, and back by the rotation of the other position
        cos, sin = rotation
        z = rotated(rotated(z, (cos[here], sin[here])), (cos[there], -sin[there]))
    z = z * w.model.scale(layer)
    norm = w.head_norm(other, layer)
    if norm is not None:
        z = z * (norm.gain if len(norm.gain) == 1 else norm.gain[heads])[:, None]
        z = z - z.mean(dim=2, keepdim=True) if norm.centres else z
    vectors = z @ w.every_head(other, layer)[heads]
    bias = w.every_bias(other, layer)
    constants = torch.zeros(vectors.shape[:2], device=w.device) if bias is None else (z * bias[heads][:, None]).sum(2)
    return vectors, constants


def divisors(w: Weights, layer: int, kind: str, heads: Sequence[int]) -> Tensor | None:
    """Return the scale by which a norm of queries (w_q) or keys (w_k) changes the query or key of every token's
    embedding, without the norm's gain: (heads, d_vocab); None if there is no such norm."""
    norm = w.head_norm(kind, layer)
    if norm is None:
        return None
    parts = []
    for e in torch.split(w.W_E, 4096):
        read = w.norm(w.model.stream_of(e), "attention", layer)
        z = functional.linear(read, w.vectors(kind, layer), w.bias(kind, layer)).view(len(e), -1, w.shape.d_head)
        z = z - z.mean(dim=2, keepdim=True) if norm.centres else z
        parts.append((z.square().mean(dim=2) + norm.eps).rsqrt())
    every = torch.cat(parts).T
    return every.repeat_interleave(w.shape.n_heads // len(every), dim=0)[heads]


def messages(w: Weights, layer: int, x: Tensor, heads: Sequence[int], *, biased: bool) -> Tensor:
    """Return the messages x W_V W_O of these heads, (heads, n, d_model), for states x (n, d_model) after the layer's
    norm; with `biased`, the bias of W_V is added."""
    values = x @ w.every_head("w_v", layer)[heads].transpose(1, 2)  # (heads, n, d_head)
    bias = w.every_bias("w_v", layer) if biased else None
    if bias is not None:
        values = values + bias[heads][:, None]
    return values @ w.heads("w_o", layer)[heads]


def added(w: Weights, layer: int, mixed: Tensor) -> Iterator[Tensor]:
    """Yield what each head adds to the stream, (n, d_model), with its mixed values (n_heads, n, d_head): through a norm
    of what attention writes, where the model has one, at the scale that it has for all heads together."""
    norm = w.norm_of_written(layer, "attention")
    each = (z @ W_O for z, W_O in zip(mixed, w.heads("w_o", layer), strict=True))
    if norm is None:
        yield from each
    else:
        scale = norm.scale(w.written(layer, "attention", mixed.transpose(0, 1).flatten(1)))
        yield from (norm.gained(x) * scale for x in each)
