"""Hold the parameters of a model, or of a difference of two models, in memory, for all asks that run no part of a
model."""

from abc import ABC, abstractmethod

import torch
from tokenizers import Tokenizer
from torch import Tensor

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.shape import DIRECTION_KINDS, FACTORS, Shape
from lexiscope.precompute.weights.difference import Difference

Factors = tuple[float, Tensor, Tensor]  # a sign; left, right (heads, d_head, d_model), not repeated for shared ones

FACTOR_KINDS = tuple(dict.fromkeys(kind for kinds in FACTORS.values() for kind in kinds))


class LoadedParameters(ABC):
    """The parameters in memory: float32 tensors on the device."""

    shape: Shape
    device: torch.device
    W_E: Tensor  # (d_vocab, d_model)
    W_U: Tensor  # the same tensor where tied
    n_positions: int  # most positions of a prompt
    padding: int  # the token that fills up the shorter prompts of a batch
    is_difference = False  # whether these are a difference of two models

    @abstractmethod
    def vectors(self, kind: str, layer: int) -> Tensor:
        """Return the vectors of a kind in a layer, (count, d_model)."""

    @abstractmethod
    def lacks(self, kind: str, layer: int) -> bool:
        """Return True if these vectors would have to be computed first, as directions are when they are first asked
        for."""

    def bos(self, tokenizer: Tokenizer) -> int | None:  # noqa: ARG002
        """Return the token that stands first in every text of the model; None if the files name none."""
        return None

    def every_layer(self, kind: str) -> list[Tensor]:
        return [self.vectors(kind, layer) for layer in range(self.shape.n_layers)]

    def heads(self, kind: str, layer: int) -> Tensor:
        """Return the vectors of a kind by head, (heads, d_head, d_model): as many heads as are stored, which means that
        w_k and w_v of grouped heads are not repeated."""
        return self.split_heads(self.vectors(kind, layer))

    def split_heads(self, vectors: Tensor) -> Tensor:
        """Split vectors (count, d_model) by head into (heads, d_head, d_model)."""
        return vectors.reshape(-1, self.shape.d_head, self.shape.d_model)

    def factors(self, matrix: str, layer: int) -> list[Factors]:
        """Return terms (sign, left, right) whose sum is the matrix of each head h: sign * left[h]ᵀ right[h]."""
        left, right = FACTORS[matrix]
        return [(1.0, self.heads(left, layer), self.heads(right, layer))]


class LoadedDifference(LoadedParameters):
    """A difference of two models: tuned - base, read from both checkpoints. No part of it can run.

    Vectors are differences. A head's matrix is the matrix of one model less that of the other, which does not follow
    from the differences of their factors: so the factors of both are kept, too.
    """

    n_positions, padding = 0, 0
    is_difference = True

    def __init__(self, difference: Difference, device: torch.device) -> None:
        tuned, base = difference.tuned, difference.base
        self._difference = difference
        self.shape, self.device = difference.shape, device
        self.W_E = base.W_E.to(device)
        self.W_U = self.W_E if base.shape.tied else base.W_U.to(device)
        layers = range(self.shape.n_layers)
        self._of_heads = [
            {(kind, layer): model.vectors(layer, kind).to(device) for layer in layers for kind in FACTOR_KINDS}
            for model in (tuned, base)
        ]
        self._vectors = {
            (kind, layer): tuned.vectors(layer, kind).to(device) - base.vectors(layer, kind).to(device)
            for layer in layers
            for kind in self.shape.weight_kinds
        }

    def vectors(self, kind: str, layer: int) -> Tensor:
        if kind in DIRECTION_KINDS:
            return self._difference.vectors(layer, kind).to(self.device)
        return self._vectors[kind, layer]

    def lacks(self, kind: str, layer: int) -> bool:
        return self._difference.directions.lacks(layer, kind)

    def factors(self, matrix: str, layer: int) -> list[Factors]:
        left, right = FACTORS[matrix]
        return [
            (sign, self.split_heads(of_model[left, layer]), self.split_heads(of_model[right, layer]))
            for sign, of_model in zip((1.0, -1.0), self._of_heads, strict=True)
        ]


def check_number(what: str, number: int | None, count: int) -> None:
    """Raise NotFound if a layer, head, neuron, ... was asked for by a number that is not below `count`."""
    if number is not None and not 0 <= number < count:
        raise NotFound(f"{what} {number} does not exist here: 0 to {count - 1} do")
