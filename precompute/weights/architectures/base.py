"""A checkpoint and, once `transformers` has it in memory, the modules of its net: what every family's MODEL is.

The names that a family gives are in family.py, what follows from them for the weights is in stored_model.py, and for a
run it is here: `net` is the model of `transformers`.
"""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.architectures.family import NormName, Part
from lexiscope.precompute.weights.architectures.stored_model import StoredModel


class Model(StoredModel):
    """One checkpoint seen through the names of the field."""

    def in_memory(self, net: Any) -> Self:
        """Return the same model with the tensors of `net` instead of those of the checkpoint's files."""
        W_E = net.get_input_embeddings().weight
        W_U = W_E if self.shape.tied else net.get_output_embeddings().weight
        return self.with_tensors(self.body_of(net).get_parameter, W_E, W_U)

    def body_of(self, net: Any) -> Any:
        """Return the module that has the blocks."""
        return net.base_model.get_submodule(self.body)

    def norm(self, net: Any, name: NormName, layer: int) -> Any:
        """Return the module of a norm; of an encoder the one whose output is read there."""
        module = self.norms[name]
        return self.body_of(net).get_submodule(module if name == "final" else self.module(layer, module))

    def watch_middle(self, block: Any, see: Callable[[Tensor], None]) -> list[Any]:
        """Put hooks on a block that show the stream between its attention and its FF; return what removes them."""
        if self.after_attention is not None:
            return [block.get_submodule(self.after_attention).register_forward_pre_hook(lambda _, args: see(args[0]))]
        streams: list[Tensor] = []
        return [
            block.register_forward_pre_hook(lambda _, args: streams.append(args[0])),
            block.get_submodule(self.attention).register_forward_hook(
                lambda _, __, output: see(streams.pop() + output[0])
            ),
        ]

    def bias(self, net: Any, layer: int, kind: str) -> Tensor | None:
        """Return the bias of a kind, where it has one: (count,) if it reads, (d_model,) if it writes."""
        bias: Tensor | None = self.body_of(net).get_submodule(self.module(layer, self.linears[kind])).bias
        return bias if bias is None or SIDES[kind] == "writes" else self.cut(kind, bias)

    def activation(self, net: Any) -> Callable[[Tensor], Tensor]:
        from transformers.activations import ACT2FN

        activation: Callable[[Tensor], Tensor] = ACT2FN[getattr(net.config, self.activation_field)]
        return activation

    def scale(self, net: Any, layer: int) -> float:
        """Return what attention scores are multiplied with."""
        return float(self.attention_of(net, layer).scaling)

    def attention_of(self, net: Any, layer: int) -> Any:
        """Return the attention module, which may have a soft cap."""
        return self.body_of(net).get_submodule(self.module(layer, self.attention))

    def head_norms(self, net: Any, layer: int, kind: str) -> list[Any]:
        """Return the norms of queries (w_q) or keys (w_k) over d_head: none, one for all heads, or one for each."""
        norm = getattr(self.attention_of(net, layer), {"w_q": "q_norm", "w_k": "k_norm"}[kind], None)
        return [] if norm is None else [norm]

    def embedding_scale(self, net: Any) -> float:
        """Return what embeddings are multiplied with on their way into the first layer."""
        return float(getattr(net.get_input_embeddings(), "scalar_embed_scale", 1.0))

    def stream_of(self, net: Any, e: Tensor) -> Tensor:
        """Return embeddings e (n, d_model) as the first layer meets them, but for their positions."""
        return e * self.embedding_scale(net)

    def add_ff(self, net: Any, stream: Tensor, ff: Callable[[Tensor], Tensor], layer: int) -> Tensor:
        """Return the stream (n, d_model) after a layer's FF, norms included; `ff` is what its neurons make of a normed
        stream."""
        return stream + ff(self.norm(net, "ff", layer)(stream))

    def norm_of_written(self, net: Any, layer: int, part: Part) -> Any | None:  # noqa: ARG002
        """Return the norm that what attention or FF writes goes through by itself before it is added to the stream."""
        return None

    def norm_of_sum(self, net: Any, layer: int, part: Part) -> Any | None:  # noqa: ARG002
        """Return the norm that the stream goes through once what attention or FF writes is added to it."""
        return None

    def transform(self, net: Any) -> tuple[Any, Callable[[Tensor], Tensor], Any] | None:  # noqa: ARG002
        """Return what stands between the last layer's stream and W_U instead of a final norm: a linear module, an
        activation and a norm."""
        return None

    def before_unembedding(self, net: Any, stream: Tensor) -> Tensor:
        """Send a stream (..., d_model), as it is after a layer, through the final norm."""
        normed: Tensor = self.norm(net, "final", 0)(stream)
        return normed

    def logits(self, net: Any, stream: Tensor) -> Tensor:
        """Return what a stream (n, d_model) says of the next token, (n, d_vocab), by the model's own last steps."""
        logits: Tensor = net.get_output_embeddings()(self.before_unembedding(net, stream))
        cap = getattr(net.config, "final_logit_softcapping", None)
        return logits if cap is None else cap * torch.tanh(logits / cap)

    @property
    def net_class(self) -> str:
        """Return the class of `transformers` that runs the checkpoint."""
        return "AutoModelForCausalLM"

    def n_positions(self, net: Any) -> int:
        """Return how many tokens a prompt may have."""
        return int(net.config.max_position_embeddings)
