"""GPT-2 and its fine-tunes: LayerNorms, learned positions, q, k and v in one matrix. Its linear layers (Conv1D) are
stored as (in, out), transposed compared with all other families."""

from typing import Any

import torch

from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.gguf_layout import Layout


class GPT2Gguf(Layout):
    """How GGUF files hold GPT-2: their linear layers are transposed compared with the Hub's."""

    architectures = ("gpt2",)
    top = {
        "token_embd.weight": "transformer.wte.weight",
        "position_embd.weight": "transformer.wpe.weight",
        "output_norm.weight": "transformer.ln_f.weight",
        "output_norm.bias": "transformer.ln_f.bias",
        "output.weight": "lm_head.weight",
    }
    block_prefix = "transformer.h."
    block = {
        f"{short}.{suffix}": f"{name}.{suffix}"
        for short, name in {
            "attn_norm": "ln_1",
            "attn_qkv": "attn.c_attn",
            "attn_output": "attn.c_proj",
            "ffn_norm": "ln_2",
            "ffn_up": "mlp.c_fc",
            "ffn_down": "mlp.c_proj",
        }.items()
        for suffix in ("weight", "bias")
    }
    optional = frozenset({"output.weight"})

    def config(self, tensors: dict[str, Any]) -> dict[str, Any]:
        d_vocab, d_model = self.matrix(tensors["token_embd.weight"])
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": d_vocab,
            "n_embd": self.size("embedding_length", d_model),
            "n_inner": self.size("feed_forward_length", 4 * d_model),
            "n_layer": self.n_layers,
            "n_head": self.n_heads,
            "n_positions": self.matrix(tensors["position_embd.weight"])[0],
            "layer_norm_epsilon": self.number("attention.layer_norm_epsilon", 1e-5),
            "tie_word_embeddings": "output.weight" not in tensors,
            "torch_dtype": "float32",
            **self.tokens(),
        }

    def arrange(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Transpose linear layers: the Hub stores GPT-2's as (in, out)."""
        linear = name.startswith("blk.") and values.ndim == 2
        return values.T if linear else values


class GPT2(Model):
    model_types = {"gpt2": "GPT-2"}
    config_names = {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "n_inner",
    }
    mlp_factor = 4
    tied_by_default = True
    positions = "learned"
    prefixes = ("transformer.", "")
    embedding = "wte"
    position_embedding = "wpe"
    block = "h.{}"
    linears = {
        "ff_key": "mlp.c_fc",
        "ff_value": "mlp.c_proj",
        "w_q": "attn.c_attn",
        "w_k": "attn.c_attn",
        "w_v": "attn.c_attn",
        "w_o": "attn.c_proj",
    }
    stored_in_out = True
    attention = "attn"
    norms = {"attention": "ln_1", "ff": "ln_2", "final": "ln_f"}
    after_attention = "ln_2"
    activation_field = "activation_function"
    gguf = GPT2Gguf


MODEL = GPT2
