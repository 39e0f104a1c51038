"""The model's run in plain torch, for several prompts at once: a watcher sees what it needs on the way.

Prompts are padded on the right. No position looks at a later one, so padding reaches no position of the text.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from precompute.live.weights import Weights
from precompute.live.wire import HeadOff, NeuronSet

Interventions = Sequence[NeuronSet | HeadOff]


class Watcher:
    """Sees a run; a subclass keeps what it needs. B prompts of T tokens, padding included."""

    def layer(self, layer: int) -> None:
        """Called before each layer; what it raises ends the run."""

    def stream(self, layer: int, after: str, x: Tensor) -> None:
        """x (B, T, d_model), after the embedding (layer 0), a layer's attention or its ff."""

    def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor) -> None:
        """x (B, T, d_model) normed input, weights (B, n_heads, T, T), z (B, n_heads, T, d_head) mixed values."""

    def ff(self, layer: int, coefficients: Tensor) -> None:
        """(B, T, d_mlp)"""


def forward(w: Weights, tokens: Tensor, interventions: Sequence[Interventions], watcher: Watcher) -> Tensor:
    """tokens (B, T) -> the stream after the last layer (B, T, d_model), before the final norm.

    `interventions` are one sequence for each prompt.
    """
    B, T = tokens.shape
    x = w.W_E[tokens]
    if w.run.positions is not None:
        x = x + w.run.positions[:T]
    rotation = rotations(w, torch.arange(T, device=w.device))
    later = torch.ones(T, T, dtype=torch.bool, device=w.device).triu(1)
    watcher.stream(0, "embedding", x)
    for layer in range(w.shape.n_layers):
        watcher.layer(layer)
        x = x + _attention(w, layer, x, rotation, later, interventions, watcher)
        watcher.stream(layer, "attention", x)
        coefficients = w.neurons(w.norm(x, "ff", layer), layer)  # (B, T, d_mlp)
        for b, of_prompt in enumerate(interventions):
            for change in of_prompt:
                if isinstance(change, NeuronSet) and change.layer == layer:
                    coefficients[b, :, change.neuron] = change.value
        watcher.ff(layer, coefficients)
        x = x + write(coefficients, w.vectors["ff_value"][layer], w.bias("ff_value", layer))
        watcher.stream(layer, "ff", x)
    return x.view(B, T, w.shape.d_model)


def _attention(
    w: Weights,
    layer: int,
    stream: Tensor,
    rotation: tuple[Tensor, Tensor] | None,
    later: Tensor,
    interventions: Sequence[Interventions],
    watcher: Watcher,
) -> Tensor:
    s, (B, T, _) = w.shape, stream.shape
    x = w.norm(stream, "attention", layer)

    def heads(kind: str) -> Tensor:
        flat = functional.linear(x, w.vectors[kind][layer], w.bias(kind, layer))
        return flat.view(B, T, -1, s.d_head).transpose(1, 2)  # (B, heads, T, d_head)

    q, k, v = heads("w_q"), heads("w_k"), heads("w_v")
    if rotation is not None:
        q, k = rotated(q, rotation), rotated(k, rotation)
    # heads that share keys follow each other: their queries together are one product with the shared keys
    q = (q * w.run.scales[layer]).reshape(B, s.n_kv_heads, w.groups * T, s.d_head)
    scores = (q @ k.transpose(2, 3)).view(B, s.n_heads, T, T).masked_fill_(later, -torch.inf)
    weights = scores.softmax(dim=-1)
    z = (weights.view(B, s.n_kv_heads, w.groups * T, T) @ v).view(B, s.n_heads, T, s.d_head)
    for b, of_prompt in enumerate(interventions):
        for change in of_prompt:
            if isinstance(change, HeadOff) and change.layer == layer:
                z[b, change.head] = 0
    watcher.attention(layer, x, weights, z)
    return write(z.transpose(1, 2).reshape(B, T, -1), w.vectors["w_o"][layer], w.bias("w_o", layer))


def write(coefficients: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """coefficients (..., n) times values (n, d_model)."""
    product = coefficients @ values
    return product if bias is None else product + bias


def rotations(w: Weights, positions: Tensor) -> tuple[Tensor, Tensor] | None:
    """Cosines and sines (len(positions), d_head) of rotary positions; None where positions are learned."""
    if w.run.frequencies is None:
        return None
    angles = positions[:, None].float() * w.run.frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotated(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """x (..., T, d_head): the first half of the subheads turns with the second."""
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
