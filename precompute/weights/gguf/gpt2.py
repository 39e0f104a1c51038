"""GPT-2 in GGUF: its names, and linear layers the other way round than in the Hub's format."""

from typing import Any, ClassVar

import torch

from precompute.weights.gguf.layout import Layout


class GPT2Layout(Layout):
    architecture = "gpt2"
    top: ClassVar = {
        "token_embd.weight": "transformer.wte.weight",
        "position_embd.weight": "transformer.wpe.weight",
        "output_norm.weight": "transformer.ln_f.weight",
        "output_norm.bias": "transformer.ln_f.bias",
        "output.weight": "lm_head.weight",
    }
    block_prefix = "transformer.h."
    block: ClassVar = {
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
        """The Hub stores GPT-2's linear layers (in, out)."""
        linear = name.startswith("blk.") and values.ndim == 2
        return values.T if linear else values
