"""Llama-style models: rotary positions, SwiGLU, heads that may share keys and values, tied or untied embeddings.
Linear layers are stored (out, in): a row is what an output reads, a column what an input writes.
"""

import torch

from precompute.shape import Shape
from precompute.weights.architectures.base import Config, Model

_TENSORS = {
    "ff_key": "mlp.gate_proj.weight",
    "ff_up": "mlp.up_proj.weight",
    "ff_value": "mlp.down_proj.weight",
    "w_q": "self_attn.q_proj.weight",
    "w_k": "self_attn.k_proj.weight",
    "w_v": "self_attn.v_proj.weight",
    "w_o": "self_attn.o_proj.weight",
}
_WRITES = ("ff_value", "w_o")


class Llama(Model):
    model_types = ("llama",)
    classes = ("LlamaForCausalLM", "LlamaModel")
    prefixes = ("model.", "")
    embedding = "embed_tokens.weight"

    def read_shape(self, config: Config) -> Shape:
        d_model, n_heads = config.size("hidden_size"), config.size("num_attention_heads")
        n_kv_heads = config.size("num_key_value_heads", default=n_heads)
        config.share(n_heads, n_kv_heads, "num_attention_heads over num_key_value_heads")
        has_head_dim = config.values.get("head_dim") is not None
        return Shape(
            architecture="llama",
            n_layers=config.size("num_hidden_layers"),
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            d_model=d_model,
            d_head=config.size("head_dim")
            if has_head_dim
            else config.share(d_model, n_heads, "hidden_size over num_attention_heads"),
            d_mlp=config.size("intermediate_size"),
            d_vocab=config.size("vocab_size"),
            gated=True,
            tied=config.flag("tie_word_embeddings", default=False),
            positions="rotary",
        )

    def layer_tensors(self, layer: int) -> dict[str, tuple[int, ...]]:
        rows = {kind: (self.shape.count(kind), self.shape.d_model) for kind in _TENSORS}
        return {
            f"layers.{layer}.{name}": rows[kind][::-1] if kind in _WRITES else rows[kind]
            for kind, name in _TENSORS.items()
        }

    def read(self, layer: int, kind: str) -> torch.Tensor:
        weight = self.tensor(f"layers.{layer}.{_TENSORS[kind]}")
        return weight.T if kind in _WRITES else weight


MODEL = Llama
