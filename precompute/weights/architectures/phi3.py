"""Phi-3 and Phi-4-mini: Llama's blocks with q, k and v in one matrix, gate and up in another."""

from lexiscope.precompute.weights.architectures.llama import Llama


class Phi3(Llama):
    model_types = {"phi3": "Phi-3"}
    linears = {
        "ff_key": "mlp.gate_up_proj",
        "ff_up": "mlp.gate_up_proj",
        "ff_value": "mlp.down_proj",
        "w_q": "self_attn.qkv_proj",
        "w_k": "self_attn.qkv_proj",
        "w_v": "self_attn.qkv_proj",
        "w_o": "self_attn.o_proj",
    }
    left_out = {}
    gguf = None


MODEL = Phi3
