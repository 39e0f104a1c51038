"""Small GGUF files written with the gguf library from small Hub checkpoints, the way llama.cpp's converter does it."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

from tests.support.tokenizers import tokenizer_json

Array = np.ndarray[Any, np.dtype[np.float32]]
LLAMA = {
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers.": "blk.",
}  # fmt: skip
GPT2 = {
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm", "lm_head": "output", "transformer.h.": "blk.",
}  # fmt: skip


def interleave(weight: Array, heads: int) -> Array:
    """llama.cpp's order of the rows of q and k: the two halves of each head, one row from each in turn."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(
    hub_folder: Path,
    path: Path,
    *,
    quantisation: gguf.GGMLQuantizationType | None = None,
    fields: dict[str, Any] | None = None,
    tensors: dict[str, Array | None] | None = None,
    pre: str | None = "gpt-2",
) -> Path:
    """The checkpoint as a GGUF file; `fields` and `tensors` add, replace or (with None) leave out."""
    config = json.loads((hub_folder / "config.json").read_text())
    architecture = config["model_type"]
    held = _tensors(hub_folder, config) | (tensors or {})
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in {**_sizes(config), **_tokenizer(pre), **(fields or {})}.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif value is not None:
            writer.add_array(key, value)
    for name, array in held.items():
        if array is None:
            continue
        if quantisation is None or array.ndim == 1:
            writer.add_tensor(name, np.ascontiguousarray(array))
        else:
            data = gguf.quantize(np.ascontiguousarray(array), quantisation)
            writer.add_tensor(name, data, raw_dtype=quantisation)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _sizes(config: dict[str, Any]) -> dict[str, Any]:
    if config["model_type"] == "gpt2":
        return {
            "gpt2.block_count": config["n_layer"],
            "gpt2.embedding_length": config["n_embd"],
            "gpt2.feed_forward_length": config["n_inner"] or 4 * config["n_embd"],
            "gpt2.context_length": config["n_positions"],
            "gpt2.attention.head_count": config["n_head"],
            "gpt2.attention.layer_norm_epsilon": config["layer_norm_epsilon"],
        }
    sizes = {
        "block_count": config["num_hidden_layers"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "context_length": config["max_position_embeddings"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.freq_base": 10000.0,
    }
    return {f"{config['model_type']}.{name}": size for name, size in sizes.items()}


def _tokenizer(pre: str | None) -> dict[str, Any]:
    content = json.loads(tokenizer_json())
    vocab = content["model"]["vocab"] | {token["content"]: token["id"] for token in content["added_tokens"]}
    tokens = sorted(vocab, key=vocab.__getitem__)
    special = {token["content"] for token in content["added_tokens"]}
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in special else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in content["model"]["merges"]],
        "tokenizer.ggml.eos_token_id": vocab["<|endoftext|>"],
    }


def _tensors(hub_folder: Path, config: dict[str, Any]) -> dict[str, Array | None]:
    renames = GPT2 if config["model_type"] == "gpt2" else LLAMA
    held: dict[str, Array | None] = {}
    for name, tensor in load_file(hub_folder / "model.safetensors").items():
        array = tensor.to(torch.float32).numpy()
        if config["model_type"] == "llama" and ".q_proj." in name:
            array = interleave(array, config["num_attention_heads"])
        elif config["model_type"] == "llama" and ".k_proj." in name:
            array = interleave(array, config["num_key_value_heads"])
        elif config["model_type"] == "gpt2" and ".h." in name and array.ndim == 2:
            array = array.T
        for old, new in renames.items():
            name = name.replace(old, new)
        held[name] = array
    return held
