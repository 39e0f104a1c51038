"""What every architecture offers: W_E, W_U, the vectors of each kind and the factors of each head, by layer.
Reads tensors when asked and keeps none but the embeddings.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import torch

from precompute.errors import BadWeights, NotFound
from precompute.shape import FACTORS, Shape
from precompute.weights.checkpoint import Checkpoint


class Model(ABC):
    """One checkpoint seen through the names of its field. All tensors are float32 on the CPU."""

    model_types: ClassVar[tuple[str, ...]]  # config.json: "model_type"
    classes: ClassVar[tuple[str, ...]]  # config.json: "architectures", where model_type is missing
    prefixes: ClassVar[tuple[str, ...]]  # what may stand before the names of tensors
    embedding: ClassVar[str]  # the name of W_E after the prefix
    unembedding: ClassVar[str] = "lm_head.weight"

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.prefix = self._find_prefix()
        self.shape = self.read_shape(Config(checkpoint))
        self._check()

    @abstractmethod
    def read_shape(self, config: "Config") -> Shape:
        """The model's dimensions."""

    @abstractmethod
    def layer_tensors(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Names (after the prefix) and shapes of the tensors that `read` uses."""

    @abstractmethod
    def read(self, layer: int, kind: str) -> torch.Tensor:
        """The vectors of a kind as rows: (shape.count(kind), d_model)."""

    def vectors(self, layer: int, kind: str) -> torch.Tensor:
        """One row per vector, (shape.count(kind), d_model), contiguous; grouped heads' w_k and w_v are not repeated."""
        if not 0 <= layer < self.shape.n_layers:
            raise NotFound(
                f"Layer {layer} of {self.checkpoint.name} does not exist: 0 to {self.shape.n_layers - 1} do."
            )
        if kind not in self.shape.kinds:
            raise NotFound(
                f"{self.checkpoint.name} has no vectors of kind {kind!r}, only {', '.join(self.shape.kinds)}."
            )
        return self.read(layer, kind).contiguous()

    def factors(self, layer: int, matrix: str) -> tuple[torch.Tensor, torch.Tensor]:
        """A head's interaction matrix is left[h] @ right[h]: W_V W_O for "vo", W_Q W_Kᵀ for "qk".

        (n_heads, d_model, d_head) and (n_heads, d_head, d_model); grouped heads' W_K and W_V are repeated.
        """
        if matrix not in FACTORS:
            raise NotFound(f"There is no head matrix {matrix!r}, only {' and '.join(FACTORS)}.")
        left, right = FACTORS[matrix]
        return self._heads(layer, left).transpose(1, 2), self._heads(layer, right)

    @cached_property
    def W_E(self) -> torch.Tensor:
        return self.tensor(self.embedding)  # (d_vocab, d_model)

    @cached_property
    def W_U(self) -> torch.Tensor:
        return self.W_E if self.shape.tied else self.checkpoint.tensor(self.unembedding)  # (d_vocab, d_model)

    def tensor(self, name: str) -> torch.Tensor:
        return self.checkpoint.tensor(self.prefix + name)

    def _heads(self, layer: int, kind: str) -> torch.Tensor:
        s = self.shape
        vectors = self.vectors(layer, kind).view(-1, s.d_head, s.d_model)
        rows = [s.row(kind, head, 0) // s.d_head for head in range(s.n_heads)]
        return vectors if len(vectors) == s.n_heads else vectors[rows]  # (n_heads, d_head, d_model)

    def _find_prefix(self) -> str:
        for prefix in self.prefixes:
            if prefix + self.embedding in self.checkpoint.files:
                return prefix
        known = " or ".join(prefix + self.embedding for prefix in self.prefixes)
        raise BadWeights(f"{self.checkpoint.folder} has no embedding: its files hold no tensor {known}.")

    def _expected(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        embedding = (self.shape.d_vocab, self.shape.d_model)
        yield self.prefix + self.embedding, embedding
        if not self.shape.tied:
            yield self.unembedding, embedding
        for layer in range(self.shape.n_layers):
            for name, shape in self.layer_tensors(layer).items():
                yield self.prefix + name, shape

    def _check(self) -> None:
        """Every tensor that a build will read is there and fits config.json: said now rather than an hour later."""
        for name, expected in self._expected():
            shape = self.checkpoint.tensor_shape(name)
            if shape != expected:
                raise BadWeights(
                    f"{name} of {self.checkpoint.folder} has the shape {shape}, but by its config.json it must be "
                    f"{expected}. The files do not belong together: get the whole checkpoint again."
                )


class Config:
    """The sizes that config.json gives, checked; a field may have several names."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.values = checkpoint.config
        self.path = checkpoint.folder / "config.json"

    def size(self, *names: str, default: int | None = None) -> int:
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if type(value) is not int or value < 1:
                raise self.wrong(f"{name} is {value!r}, not a whole number above zero")
            return value
        if default is None:
            raise self.wrong(f"{names[0]} is missing")
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        value: Any = self.values.get(name)
        if value is not None and type(value) is not bool:
            raise self.wrong(f"{name} is {value!r}, neither true nor false")
        return default if value is None else value

    def share(self, whole: int, parts: int, what: str) -> int:
        if whole % parts:
            raise self.wrong(f"{what}: {whole} cannot be divided by {parts}")
        return whole // parts

    def wrong(self, what: str) -> BadWeights:
        return BadWeights(f"{self.path} does not describe a model: {what}. Get the checkpoint's config.json again.")
