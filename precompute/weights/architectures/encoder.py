"""What encoders have in common: every position sees all others, and norms come after what they norm.

The norm whose output a layer's attention reads belongs to the layer before, that of the first layer to the embedding.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor

from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.family import NormName, Part


class Encoder(Model):
    embedding_norm: ClassVar[str]
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

    def norm(self, net: Any, name: NormName, layer: int) -> Any:
        if name == "ff":
            return super().norm(net, name, layer)
        before = self.shape.n_layers - 1 if name == "final" else layer - 1
        module = self.module(before, self.output_norm) if before >= 0 else self.embedding_norm
        return self.body_of(net).get_submodule(module)

    def watch_middle(self, block: Any, see: Callable[[Tensor], None]) -> list[Any]:
        norm = block.get_submodule(self.norms["ff"])
        return [norm.register_forward_hook(lambda _, __, output: see(output))]

    def stream_of(self, net: Any, e: Tensor) -> Tensor:
        stream: Tensor = self.norm(net, "attention", 0)(e)
        return stream

    def add_ff(self, net: Any, stream: Tensor, ff: Callable[[Tensor], Tensor], layer: int) -> Tensor:
        read = self.norm(net, "ff", layer)(stream)
        after: Tensor = self.norm(net, "attention", layer + 1)(read + ff(read))
        return after

    def norm_of_sum(self, net: Any, layer: int, part: Part) -> Any:
        return self.norm(net, "ff", layer) if part == "attention" else self.norm(net, "attention", layer + 1)

    def transform(self, net: Any) -> tuple[Any, Callable[[Tensor], Tensor], Any] | None:
        if not self.predicts:
            return None
        return net.get_submodule(self.mlm_head), self.activation(net), net.get_submodule(self.mlm_norm)

    def before_unembedding(self, net: Any, stream: Tensor) -> Tensor:  # noqa: ARG002
        return stream
