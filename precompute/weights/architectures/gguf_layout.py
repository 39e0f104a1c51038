"""Translate the names, the order and the description of a model's tensors from GGUF into the Hub's format.
A family that exists as GGUF files has a subclass of Layout in its own module of precompute/weights/architectures/.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from lexiscope.precompute.errors import BadWeights


class Layout(ABC):
    architectures: ClassVar[tuple[str, ...]]  # general.architecture of the files
    top: ClassVar[dict[str, str]]  # GGUF name -> Hub name
    block: ClassVar[dict[str, str]]  # the same for the tensors of layer {n}, after "blk.{n}."
    block_prefix: ClassVar[str]
    optional: ClassVar[frozenset[str]]  # tensors that a model may lack

    def __init__(self, fields: dict[str, Any], path: Path) -> None:
        self.fields = fields
        self.path = path
        self.architecture: str = fields["general.architecture"]
        self.n_layers = self.size("block_count")
        self.n_heads = self.size("attention.head_count")
        self.n_kv_heads = self.size("attention.head_count_kv", default=self.n_heads)

    @abstractmethod
    def config(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Return the content of config.json for this file."""

    @abstractmethod
    def arrange(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Rearrange a tensor from the order that GGUF has into the Hub's order."""

    def hub_name(self, name: str) -> str | None:
        match = re.fullmatch(r"blk\.(0|[1-9]\d*)\.(.+)", name)
        if not match:
            return self.top.get(name)
        layer, tensor = match.groups()
        known = int(layer) < self.n_layers and tensor in self.block
        return f"{self.block_prefix}{layer}.{self.block[tensor]}" if known else None

    def ignored(self, name: str) -> bool:
        return name == "rope_freqs.weight"

    def needed(self) -> Iterator[str]:
        """Yield the names of tensors that must be there, one at a time, because the number of layers is only what the
        file claims."""
        yield from (name for name in self.top if name not in self.optional)
        for layer in range(self.n_layers):
            yield from (f"blk.{layer}.{name}" for name in self.block if name not in self.optional)

    def matrix(self, tensor: Any) -> tuple[int, int]:
        """Return the rows and columns of a matrix; GGUF counts dimensions from the innermost one."""
        sizes = [int(size) for size in reversed(tensor.shape)]
        if len(sizes) != 2:
            raise BadWeights(f"{tensor.name} of {self.path} has {len(sizes)} dimensions, not two. Download it again.")
        return sizes[0], sizes[1]

    def field(self, name: str, default: Any = None) -> Any:
        return self.fields.get(f"{self.architecture}.{name}", default)

    def size(self, name: str, default: int | None = None) -> int:
        value = self.field(name, default)
        if type(value) is not int or not 1 <= value < 2**32:
            raise BadWeights(f"{self.path} gives {self.architecture}.{name} as {value!r}, not as one whole number.")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.field(name, default)
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise BadWeights(f"{self.path} gives {self.architecture}.{name} as {value!r}, not as a positive number.")
        return float(str(np.float32(value)))  # the value was stored as float32: return 1e-05, not 9.999999747378752e-06

    def tokens(self) -> dict[str, Any]:
        return {key: self.fields.get(f"tokenizer.ggml.{key}") for key in ("bos_token_id", "eos_token_id")}
