"""Convert a model of llama2.c (one file of float32 numbers, and one of tokens) to a Llama checkpoint in Hub format."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from lexiscope.precompute.weights.gguf.tokenizer import write_tokenizer

Float32 = NDArray[np.float32]
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6  # kinds of tokens in GGUF


def convert_llama2c(model: bytes, tokenizer: bytes, folder: Path) -> None:
    """Write config.json, model.safetensors and tokenizer.json."""
    dim, hidden, n_layers, n_heads, n_kv_heads, vocab, positions = struct.unpack("<7i", model[:28])
    numbers: Float32 = np.frombuffer(model, "<f4", offset=28)
    kv_dim, at = dim * n_kv_heads // n_heads, 0

    def take(*shape: int) -> Float32:
        nonlocal at
        at += int(np.prod(shape))
        return numbers[at - int(np.prod(shape)) : at].reshape(shape)

    W_E = take(abs(vocab), dim)  # a negative size means that the unembedding is another matrix
    stacks = {  # the layers of each kind one after the other, in the order of the file
        "input_layernorm": take(n_layers, dim),
        "self_attn.q_proj": take(n_layers, dim, dim),
        "self_attn.k_proj": take(n_layers, kv_dim, dim),
        "self_attn.v_proj": take(n_layers, kv_dim, dim),
        "self_attn.o_proj": take(n_layers, dim, dim),
        "post_attention_layernorm": take(n_layers, dim),
        "mlp.gate_proj": take(n_layers, hidden, dim),
        "mlp.down_proj": take(n_layers, dim, hidden),
        "mlp.up_proj": take(n_layers, hidden, dim),
    }
    tensors = {"model.embed_tokens.weight": W_E, "model.norm.weight": take(dim)}
    take(2, positions, dim // n_heads // 2)  # cosines and sines of the rotary positions, which follow from the config
    if vocab < 0:
        tensors["lm_head.weight"] = take(-vocab, dim)
    if at != len(numbers):
        raise ValueError(f"the file holds {len(numbers)} numbers, its header says {at}")
    heads = {"self_attn.q_proj": n_heads, "self_attn.k_proj": n_kv_heads}
    for name, stack in stacks.items():
        for layer, W in enumerate(stack):
            tensors[f"model.layers.{layer}.{name}.weight"] = _halves(W, heads[name]) if name in heads else W
    weights = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "dtype": "float32",
        "hidden_size": dim, "intermediate_size": hidden, "num_hidden_layers": n_layers,
        "num_attention_heads": n_heads, "num_key_value_heads": n_kv_heads, "vocab_size": abs(vocab),
        "max_position_embeddings": positions, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": vocab > 0, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    _write_tokenizer(tokenizer, abs(vocab), folder)


def _halves(W: Float32, n_heads: int) -> Float32:
    """Reorder each head's rows of W (n_heads · d_head, d_model): the even ones, then the odd ones.

    Rotary positions turn dimensions 2i and 2i + 1 together in llama2.c, i and i + d_head / 2 in the Hub's format."""
    heads = W.reshape(n_heads, -1, 2, W.shape[1])  # (n_heads, d_head / 2, 2, d_model)
    return heads.swapaxes(1, 2).reshape(W.shape)


def _write_tokenizer(content: bytes, vocab: int, folder: Path) -> None:
    """Write SentencePiece's tokens with their scores, as GGUF files also have them."""
    tokens, scores, at = [], [], 4  # the first number is the length of the longest token
    for _ in range(vocab):
        score, length = struct.unpack_from("<fi", content, at)
        tokens.append(content[at + 8 : at + 8 + length])
        scores.append(score)
        at += 8 + length
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    texts += [token.decode().replace(" ", "▁") for token in tokens[len(texts) :]]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256]
    fields = {"model": "llama", "tokens": texts, "scores": scores, "bos_token_id": 1, "eos_token_id": 2}
    fields |= {"unknown_token_id": 0, "token_type": kinds + [_NORMAL] * (vocab - len(kinds))}
    write_tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()}, vocab, folder)
