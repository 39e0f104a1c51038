"""A difference of two models in memory: tuned - base, read from both checkpoints. Nothing of it can run."""

import torch
from torch import Tensor

from precompute.live.parameters import Factors, LoadedParameters
from precompute.shape import DIRECTION_KINDS, FACTORS
from precompute.weights.difference import Difference

HEAD_KINDS = tuple(dict.fromkeys(kind for kinds in FACTORS.values() for kind in kinds))


class LoadedDifference(LoadedParameters):
    """Vectors are differences. A head's matrix is that of one model less that of the other, not what the differences of
    its factors give: so the factors of both are held, too."""

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
            {(kind, layer): model.vectors(layer, kind).to(device) for layer in layers for kind in HEAD_KINDS}
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
        return self._difference.lacks_directions(layer, kind)

    def factors(self, matrix: str, layer: int) -> list[Factors]:
        left, right = FACTORS[matrix]
        return [
            (sign, self.split_heads(of_model[left, layer]), self.split_heads(of_model[right, layer]))
            for sign, of_model in zip((1.0, -1.0), self._of_heads, strict=True)
        ]
