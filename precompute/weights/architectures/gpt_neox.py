"""GPT-NeoX (Pythia): q, k and v of each head side by side in one matrix, attention and FF beside each other."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from precompute.weights.architectures.base import Model

_FUSED = ("w_q", "w_k", "w_v")


class GPTNeoX(Model):
    model_types = {"gpt_neox": "GPT-NeoX"}
    rotary_share = 0.25
    prefixes = ("gpt_neox.", "")
    embedding = "embed_in"
    unembeddings = ("embed_out", "lm_head")
    block = "layers.{}"
    linears = {
        "ff_key": "mlp.dense_h_to_4h",
        "ff_value": "mlp.dense_4h_to_h",
        **dict.fromkeys(_FUSED, "attention.query_key_value"),
        "w_o": "attention.dense",
    }
    attention = "attention"
    norms = {"attention": "input_layernorm", "ff": "post_attention_layernorm", "final": "final_layer_norm"}

    def cut(self, kind: str, outputs: Tensor) -> Tensor:
        if kind not in _FUSED:
            return outputs
        by_head = outputs.view(self.shape.n_heads, len(_FUSED), self.shape.d_head, *outputs.shape[1:])
        return by_head[:, _FUSED.index(kind)].flatten(0, 1)

    def watch_middle(self, block: Any, see: Callable[[Tensor], None]) -> list[Any]:
        """FF and attention may read the same stream: what is between them is in no module."""
        streams: list[Tensor] = []
        return [
            block.register_forward_pre_hook(lambda _, args: streams.append(args[0])),
            block.attention.register_forward_hook(lambda _, __, output: see(streams.pop() + output[0])),
        ]


MODEL = GPTNeoX
