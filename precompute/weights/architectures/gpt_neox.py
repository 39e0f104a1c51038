"""GPT-NeoX (Pythia): q, k and v of each head are side by side in one matrix; attention and FF are computed in
parallel."""

from typing import ClassVar

from torch import Tensor

from lexiscope.precompute.weights.architectures.base import Model

_FUSED = {"w_q": slice(None, -2), "w_k": slice(-2, -1), "w_v": slice(-1, None)}  # places in a group of heads


class GPTNeoX(Model):
    model_types = {"gpt_neox": "GPT-NeoX"}
    rotary_share = 0.25
    prefixes = ("gpt_neox.", "")
    embedding = "embed_in"
    unembeddings: ClassVar[tuple[str, ...]] = ("embed_out", "lm_head")
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
        """Cut out one kind of vectors. In other families of this layout, several query heads come before the key and
        the value that they share; here every head has its own."""
        if kind not in _FUSED:
            return outputs
        n_heads, n_groups = self.shape.n_heads, self.shape.n_kv_heads
        groups = outputs.view(n_groups, n_heads // n_groups + 2, self.shape.d_head, *outputs.shape[1:])
        return groups[:, _FUSED[kind]].flatten(0, 2)


MODEL = GPTNeoX
