"""Gemma 2 and 3: as Gemma 1, but what attention and FF write goes through a norm, too. Gemma 2 caps its scores; Gemma 3
has norms of queries and keys."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from lexiscope.precompute.weights.architectures.family import Part
from lexiscope.precompute.weights.architectures.gemma import Gemma

_WRITTEN: dict[Part, str] = {"attention": "post_attention_layernorm", "ff": "post_feedforward_layernorm"}


class Gemma2(Gemma):
    model_types = {"gemma2": "Gemma 2", "gemma3_text": "Gemma 3"}
    default_d_head = {"gemma2": 256, "gemma3_text": 256}
    left_out = {"gemma2": ("the soft cap of attention scores",), "gemma3_text": ("the norms of queries and keys",)}
    left_out_writing = ("the norm of what attention and FF write",)
    norms = {"attention": "input_layernorm", "ff": "pre_feedforward_layernorm", "final": "norm"}
    after_attention = "pre_feedforward_layernorm"
    activation_field = "hidden_activation"

    def add_ff(self, stream: Tensor, ff: Callable[[Tensor], Tensor], layer: int) -> Tensor:
        written: Tensor = self.norm_of_written(layer, "ff")(ff(self.norm("ff", layer)(stream)))
        return stream + written

    def norm_of_written(self, layer: int, part: Part) -> Any:
        return self.module_of(layer, _WRITTEN[part])


MODEL = Gemma2
