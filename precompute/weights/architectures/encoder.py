"""What encoders have in common: every position sees all others, and a norm comes after each part of a layer, not before
it.

The norm whose output a layer's attention reads belongs to the layer before or, for the first layer, to the embedding.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.family import NormName, Part


class Encoder(Model):
    embedding_norm: ClassVar[str]
    position_embedding = "embeddings.position_embeddings"
    output_norm: ClassVar[str]  # the last module of a block
    mlm_head: ClassVar[str]  # the linear module of the MLM head, where the checkpoint has one
    mlm_norm: ClassVar[str]  # the norm of the MLM head, behind that module and an activation
    tied_by_default = True
    positions = "learned"
    causal = False
    left_out_writing = ("the norms that follow attention and FF", "what a head that predicts tokens adds to W_U")
    unused = ("pooler.",)

    @property
    def predicts(self) -> bool:
        return f"{self.mlm_head}.weight" in self.checkpoint.files

    @property
    def net_class(self) -> str:
        return "AutoModelForMaskedLM" if self.predicts else "AutoModel"

    def norm_in_front(self, layer: int) -> tuple[Tensor, bool]:  # noqa: ARG002
        """Return a gain of 1: neurons read the stream as it is behind the norm, and add to it there."""
        return torch.ones(self.shape.d_model), False

    def norm(self, name: NormName, layer: int) -> Any:
        if name == "ff":
            return super().norm(name, layer)
        before = self.shape.n_layers - 1 if name == "final" else layer - 1
        if before < 0:
            return self.body_of(self.net).get_submodule(self.embedding_norm)
        return self.module_of(before, self.output_norm)

    def watch_middle(self, block: Any, see: Callable[[Tensor], None]) -> list[Any]:
        norm = block.get_submodule(self.norms["ff"])
        return [norm.register_forward_hook(lambda _, __, output: see(output))]

    def stream_of(self, e: Tensor) -> Tensor:
        stream: Tensor = self.norm("attention", 0)(e)
        return stream

    def add_ff(self, stream: Tensor, ff: Callable[[Tensor], Tensor], layer: int) -> Tensor:
        read = self.norm("ff", layer)(stream)
        after: Tensor = self.norm("attention", layer + 1)(read + ff(read))
        return after

    def norm_of_sum(self, layer: int, part: Part) -> Any:
        return self.norm("ff", layer) if part == "attention" else self.norm("attention", layer + 1)

    def transform(self) -> tuple[Any, Callable[[Tensor], Tensor], Any] | None:
        if not self.predicts:
            return None
        return self.net.get_submodule(self.mlm_head), self.activation(), self.net.get_submodule(self.mlm_norm)

    def before_unembedding(self, stream: Tensor) -> Tensor:
        return stream
