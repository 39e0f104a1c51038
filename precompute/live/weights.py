"""All weights of a model in memory on one device, in float32: the vectors of the lists, and what only a run needs.
The modules gpt2 and llama read the latter from a checkpoint.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from precompute.errors import BadWeights, UnsupportedArchitecture
from precompute.shape import Shape
from precompute.weights.architectures.base import Model

Activation = Callable[[Tensor], Tensor]
NormName = Literal["attention", "ff", "final"]

ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "swish": functional.silu,
}


@dataclass(frozen=True)
class RunParameters:
    """What a run needs besides the vectors."""

    n_positions: int
    activation: str
    rms: bool  # RMSNorm, which does not centre; else LayerNorm
    eps: float
    gains: dict[NormName, Tensor]  # (n_layers, d_model); final: (1, d_model)
    norm_biases: dict[NormName, Tensor]  # the same, empty where norms have none
    biases: dict[str, Tensor]  # by kind: (n_layers, count) of readers, (n_layers, d_model) of writers
    scales: tuple[float, ...]  # by layer: what attention scores are multiplied with
    positions: Tensor | None = None  # (n_positions, d_model), learned
    frequencies: Tensor | None = None  # (d_head / 2,), rotary


@dataclass(frozen=True)
class Weights:
    shape: Shape
    device: torch.device
    vectors: dict[str, Tensor]  # by kind: (n_layers, count, d_model)
    W_E: Tensor  # (d_vocab, d_model)
    W_U: Tensor  # (d_vocab, d_model); the same as W_E where tied
    run: RunParameters  # its tensors on the device

    @classmethod
    def load(cls, model: Model, run: RunParameters, device: torch.device) -> "Weights":
        s = model.shape
        vectors = {}
        for kind in s.kinds:
            vectors[kind] = torch.empty(s.n_layers, s.count(kind), s.d_model, device=device)
            for layer in range(s.n_layers):
                vectors[kind][layer] = model.vectors(layer, kind)
        W_E = model.W_E.to(device)
        return cls(s, device, vectors, W_E, W_E if s.tied else model.W_U.to(device), _moved(run, device))

    def norm(self, x: Tensor, name: NormName, layer: int = 0) -> Tensor:
        """A norm of the model over the last axis, which has d_model numbers; layer 0 for the final one."""
        run = self.run
        gain, size = run.gains[name][layer], (self.shape.d_model,)
        if run.rms:
            return functional.rms_norm(x, size, gain, run.eps)
        bias = run.norm_biases[name][layer] if run.norm_biases else None
        return functional.layer_norm(x, size, gain, bias, run.eps)

    def bias(self, kind: str, layer: int) -> Tensor | None:
        """The bias of a kind: (count,) if it reads, (d_model,) if it writes."""
        biases = self.run.biases.get(kind)
        return None if biases is None else biases[layer]

    def heads(self, kind: str, layer: int) -> Tensor:
        """(heads, d_head, d_model): as many as there are, grouped heads' w_k and w_v are not repeated."""
        return self.vectors[kind][layer].view(-1, self.shape.d_head, self.shape.d_model)

    def every_head(self, kind: str, layer: int) -> Tensor:
        """(n_heads, d_head, d_model): grouped heads' w_k and w_v repeated."""
        heads = self.heads(kind, layer)
        return heads if len(heads) == self.shape.n_heads else heads.repeat_interleave(self.groups, dim=0)

    @property
    def groups(self) -> int:
        """How many heads share their keys and values."""
        return self.shape.n_heads // self.shape.n_kv_heads

    @cached_property
    def activation(self) -> Activation:
        return ACTIVATIONS[self.run.activation]

    def neurons(self, x: Tensor, layer: int) -> Tensor:
        """(..., d_model), already normed -> coefficients (..., d_mlp), as they multiply the values."""
        coefficients = self.activation(functional.linear(x, self.vectors["ff_key"][layer], self.bias("ff_key", layer)))
        if self.shape.gated:
            coefficients *= functional.linear(x, self.vectors["ff_up"][layer], self.bias("ff_up", layer))
        return coefficients


def check_activation(name: object, where: str) -> str:
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise UnsupportedArchitecture(
            f"{where} has the activation {name!r}, which cannot be run. Known are {', '.join(ACTIVATIONS)}."
        )
    return name


def stacked(model: Model, names: list[str], size: int) -> Tensor:
    """One tensor of each layer, all of `size` numbers: (len(names), size)."""
    for name in names:
        shape = model.checkpoint.tensor_shape(model.prefix + name)
        if shape != (size,):
            raise BadWeights(
                f"{model.prefix + name} of {model.checkpoint.folder} has the shape {shape}, not ({size},). "
                "The files do not belong together: get the whole checkpoint again."
            )
    return torch.stack([model.tensor(name) for name in names])


def _moved(run: RunParameters, device: torch.device) -> RunParameters:
    return replace(
        run,
        gains={name: gain.to(device) for name, gain in run.gains.items()},
        norm_biases={name: bias.to(device) for name, bias in run.norm_biases.items()},
        biases={kind: bias.to(device) for kind, bias in run.biases.items()},
        positions=None if run.positions is None else run.positions.to(device),
        frequencies=None if run.frequencies is None else run.frequencies.to(device),
    )
