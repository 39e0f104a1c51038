"""The parameters of a model, or of a difference of two, in memory: all that questions need for which nothing runs."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from precompute.shape import FACTORS, Shape

Factors = tuple[float, Tensor, Tensor]  # a sign; left and right (heads, d_head, d_model), grouped heads not repeated


class LoadedParameters(ABC):
    """Tensors are float32, on the device."""

    shape: Shape
    device: torch.device
    W_E: Tensor  # (d_vocab, d_model)
    W_U: Tensor  # the same tensor where tied
    n_positions: int  # that a prompt may have
    padding: int  # the token that fills up the shorter prompts of a batch
    is_difference = False  # of two models

    @abstractmethod
    def vectors(self, kind: str, layer: int) -> Tensor:
        """(count, d_model)"""

    def lacks(self, kind: str, layer: int) -> bool:  # noqa: ARG002
        """Whether vectors would have to be made first: directions are made when they are first asked for."""
        return False

    def every_layer(self, kind: str) -> "list[Tensor]":
        return [self.vectors(kind, layer) for layer in range(self.shape.n_layers)]

    def heads(self, kind: str, layer: int) -> Tensor:
        """(heads, d_head, d_model): as many as there are, grouped heads' w_k and w_v are not repeated."""
        return self.split_heads(self.vectors(kind, layer))

    def split_heads(self, vectors: Tensor) -> Tensor:
        """(count, d_model) -> (heads, d_head, d_model)"""
        return vectors.reshape(-1, self.shape.d_head, self.shape.d_model)

    def factors(self, matrix: str, layer: int) -> list[Factors]:
        """What a head's matrix is the sum of: sign * left[h]ᵀ right[h]."""
        left, right = FACTORS[matrix]
        return [(1.0, self.heads(left, layer), self.heads(right, layer))]
