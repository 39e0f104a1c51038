"""Llama and families built like it: rotary positions, RMSNorms, gated FF, heads that may share keys and values. Biases
(Qwen 2), norms of queries and keys (Qwen 3) and sliding windows (Mistral) do not concern the vectors."""

import math
from typing import Any, ClassVar

import gguf
import numpy as np
import torch

from lexiscope.precompute.errors import BadWeights, UnsupportedArchitecture
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.gguf_layout import Layout

# The same in every Llama from 3.1 to 3.3.
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


class LlamaGguf(Layout):
    """How GGUF files hold Llama and similar families: rows of q and k are interleaved in files of Llama (and Mistral),
    but not in those of Qwen."""

    architectures = ("llama", "qwen2", "qwen3")
    top = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    }
    block_prefix = "model.layers."
    block = {
        "attn_norm.weight": "input_layernorm.weight",
        "ffn_norm.weight": "post_attention_layernorm.weight",
        **{
            f"attn_{short}.{suffix}": f"self_attn.{short[0]}_proj.{suffix}"
            for short in ("q", "k", "v", "output")
            for suffix in ("weight", "bias")
        },
        "attn_q_norm.weight": "self_attn.q_norm.weight",
        "attn_k_norm.weight": "self_attn.k_norm.weight",
        "ffn_gate.weight": "mlp.gate_proj.weight",
        "ffn_up.weight": "mlp.up_proj.weight",
        "ffn_down.weight": "mlp.down_proj.weight",
    }
    optional = frozenset({
        "output.weight", "attn_q_norm.weight", "attn_k_norm.weight",
        *(f"attn_{short}.bias" for short in ("q", "k", "v", "output")),
    })  # fmt: skip

    def config(self, tensors: dict[str, Any]) -> dict[str, Any]:
        d_vocab, d_model = self.matrix(tensors["token_embd.weight"])
        config: dict[str, Any] = {
            "architectures": [f"{self.architecture.capitalize()}ForCausalLM"],
            "model_type": self.architecture,
            "hidden_act": "silu",
            "vocab_size": d_vocab,
            "hidden_size": self.size("embedding_length", d_model),
            "intermediate_size": self.size("feed_forward_length"),
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "head_dim": self.size(
                "attention.key_length", self.matrix(tensors["blk.0.attn_q.weight"])[0] // self.n_heads
            ),
            "max_position_embeddings": self.size("context_length", 2048),
            "rms_norm_eps": self.number("attention.layer_norm_rms_epsilon", 1e-5),
            "rope_theta": self.number("rope.freq_base", 10000.0),
            "attention_bias": "blk.0.attn_q.bias" in tensors,
            "tie_word_embeddings": "output.weight" not in tensors,
            "torch_dtype": "float32",
            **self.tokens(),
        }
        config["rope_scaling"] = _rope_scaling(self, tensors, config["rope_theta"])
        return config

    def arrange(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Undo the interleaving of rows of q and k: GGUF puts the two channels that rotary positions turn together
        beside each other."""
        kind = name.split(".")[-2]
        if self.architecture != "llama" or kind not in ("attn_q", "attn_k"):
            return values
        heads = self.n_heads if kind == "attn_q" else self.n_kv_heads
        if values.shape[0] % (2 * heads):
            raise BadWeights(f"{name} of {self.path} has {values.shape[0]} rows, which {heads} heads cannot share.")
        rest = values.shape[1:]
        paired = values.reshape(heads, -1, 2, *rest)  # (heads, d_head/2, 2, d_model)
        return paired.transpose(1, 2).reshape(values.shape)  # (heads · 2 · d_head/2, d_model)


def _rope_scaling(layout: Layout, tensors: dict[str, Any], theta: float) -> dict[str, Any] | None:
    """Return what config.json says of scaled rotary positions; None if they are not scaled. A GGUF file holds a factor
    for each frequency, config.json the rule that gives these factors."""
    scaling = layout.field("rope.scaling.type", "none")
    if "rope_freqs.weight" in tensors and tensors["rope_freqs.weight"].n_elements:
        tensor = tensors["rope_freqs.weight"]
        factors = np.asarray(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        guess = {"rope_type": "llama3", "factor": round(float(factors.max()), 4), **_LLAMA3}
        if np.allclose(factors, _llama3_factors(guess, theta, 2 * len(factors)), rtol=1e-4):
            return guess
    elif scaling in ("none", ""):
        return None
    elif scaling == "linear":
        return {"rope_type": "linear", "factor": layout.number("rope.scaling.factor", 1.0)}
    raise UnsupportedArchitecture(
        f"{layout.path} scales its rotary positions in a way ({scaling}) that the Hub's Llama config does not have. "
        "Use the same model in the Hub's format (safetensors)."
    )


def _llama3_factors(scaling: dict[str, Any], theta: float, d_head: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the factor by which each rotary frequency is slowed down: 1 for fast ones, `factor` for slow ones."""
    wavelength = 2 * math.pi * theta ** (np.arange(0, d_head, 2) / d_head)
    low, high, context = (scaling[key] for key in _LLAMA3)
    smooth = np.clip((context / wavelength - low) / (high - low), 0, 1)
    factors: np.ndarray[Any, np.dtype[np.float64]] = 1 / ((1 - smooth) / scaling["factor"] + smooth)
    return factors


class Llama(Model):
    model_types = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen 2", "qwen3": "Qwen 3"}
    default_d_head = {"qwen3": 128}
    left_out = {"qwen3": ("the norms of queries and keys",)}
    prefixes = ("model.", "")
    embedding = "embed_tokens"
    block = "layers.{}"
    linears = {
        "ff_key": "mlp.gate_proj",
        "ff_up": "mlp.up_proj",
        "ff_value": "mlp.down_proj",
        "w_q": "self_attn.q_proj",
        "w_k": "self_attn.k_proj",
        "w_v": "self_attn.v_proj",
        "w_o": "self_attn.o_proj",
    }
    attention = "self_attn"
    norms = {"attention": "input_layernorm", "ff": "post_attention_layernorm", "final": "norm"}
    centres = False
    gguf: ClassVar[type[Layout] | None] = LlamaGguf


MODEL = Llama
