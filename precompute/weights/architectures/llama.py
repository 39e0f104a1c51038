"""Llama and those built like it: rotary positions, RMSNorms, gated FF, heads that may share keys and values.
Biases (Qwen 2), norms of queries and keys (Qwen 3) and sliding windows (Mistral) are no matter of the vectors.
"""

from precompute.weights.architectures.base import Model


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
    after_attention = "post_attention_layernorm"


MODEL = Llama
