"""Small models' vectors and lists in plain numpy, from the files that `transformers` wrote: no code of the project."""

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float64]
FAMILIES = ("gpt2", "llama", "gpt2-untied", "bert")  # plain; gated with grouped heads; W_U is not W_E; an encoder
READS = ("ff_key", "w_q", "w_k", "w_v")

_LLAMA = {"ff_key": "mlp.gate_proj", "ff_value": "mlp.down_proj"}
_LLAMA |= {f"w_{letter}": f"self_attn.{letter}_proj" for letter in "qkvo"}
_BERT = {"ff_key": "intermediate.dense", "ff_value": "output.dense", "w_o": "attention.output.dense"}
_BERT |= {"w_q": "attention.self.query", "w_k": "attention.self.key", "w_v": "attention.self.value"}
_GPT2 = {"ff_key": "mlp.c_fc", "ff_value": "mlp.c_proj", "w_o": "attn.c_proj"}


@dataclass(frozen=True)
class Direct:
    folder: Path

    @cached_property
    def config(self) -> dict[str, int]:
        return dict(json.loads((self.folder / "config.json").read_text()))

    @cached_property
    def tensors(self) -> dict[str, Array]:
        return {
            name: values.astype(np.float64) for name, values in load_file(self.folder / "model.safetensors").items()
        }

    @property
    def family(self) -> str:
        return str(self.config["model_type"])

    @property
    def n_layers(self) -> int:
        return self.config["n_layer" if self.family == "gpt2" else "num_hidden_layers"]

    @property
    def n_heads(self) -> int:
        return self.config["n_head" if self.family == "gpt2" else "num_attention_heads"]

    @property
    def W_E(self) -> Array:
        names = {"gpt2": "transformer.wte", "llama": "model.embed_tokens", "bert": "bert.embeddings.word_embeddings"}
        return self.tensors[f"{names[self.family]}.weight"]

    @property
    def W_U(self) -> Array:
        return self.tensors.get("lm_head.weight", self.W_E)

    def vectors(self, layer: int, kind: str) -> Array:
        """(n, d_model); w_k and w_v of grouped heads are repeated, so that each subhead has its own."""
        if self.family == "gpt2":
            block = f"transformer.h.{layer}"
            if kind in ("w_q", "w_k", "w_v"):
                return np.split(self.tensors[f"{block}.attn.c_attn.weight"].T, 3)["qkv".index(kind[-1])]
            weight = self.tensors[f"{block}.{_GPT2[kind]}.weight"]  # (in, out)
            return weight.T if kind == "ff_key" else weight
        block, names = ("model.layers", _LLAMA) if self.family == "llama" else ("bert.encoder.layer", _BERT)
        weight = self.tensors[f"{block}.{layer}.{names[kind]}.weight"]  # (out, in)
        vectors = weight if kind in READS else weight.T
        if kind in ("w_k", "w_v") and self.family == "llama":
            shared = self.n_heads // self.config["num_key_value_heads"]
            d_head = len(vectors) * shared // self.n_heads
            vectors = vectors.reshape(-1, d_head, vectors.shape[1]).repeat(shared, axis=0).reshape(-1, vectors.shape[1])
        return vectors

    def scores(self, vectors: Array, reads: bool, lens: str) -> Array:
        """(n, d_vocab)"""
        W = self.W_E if reads else self.W_U
        if lens == "cosine":
            W = W - W.mean(axis=0)
            W = W / np.linalg.norm(W, axis=1, keepdims=True)
        return np.asarray((vectors @ W.T).astype(np.float32), np.float64)

    def tokens(self, vectors: Array, reads: bool, lens: str, k: int, end: str = "top") -> list[set[int]]:
        """The first k tokens of each vector."""
        scores = self.scores(vectors, reads, lens)
        order = np.argsort(-scores if end == "top" else scores, axis=1, kind="stable")[:, :k]
        return [set(row) for row in order.tolist()]


@cache
def direct(folder: Path) -> Direct:
    return Direct(folder)
