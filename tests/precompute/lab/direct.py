"""Small models' vectors, and lists of them by sorting all scores in plain numpy: no code of the lab."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint

Array = NDArray[np.float64]
FAMILIES = ("gpt2", "llama", "gpt2-untied", "bert")  # plain; gated with grouped heads; W_U is not W_E; an encoder
READS = ("ff_key", "w_q", "w_k", "w_v")


@dataclass(frozen=True)
class Direct:
    folder: Path

    @cached_property
    def model(self) -> Model:
        return describe(Checkpoint.open(self.folder))

    @property
    def n_layers(self) -> int:
        return self.model.shape.n_layers

    @cached_property
    def W_E(self) -> Array:
        return np.asarray(self.model.W_E.double().numpy())

    @cached_property
    def W_U(self) -> Array:
        return np.asarray(self.model.W_U.double().numpy())

    def vectors(self, layer: int, kind: str) -> Array:
        """(n, d_model); w_k and w_v of grouped heads are repeated, so that each subhead has its own."""
        vectors, s = self.model.vectors(layer, kind).double().numpy(), self.model.shape
        if kind in ("w_k", "w_v"):
            of_heads = vectors.reshape(s.n_kv_heads, s.d_head, s.d_model)
            vectors = of_heads.repeat(s.n_heads // s.n_kv_heads, axis=0).reshape(-1, s.d_model)
        return np.asarray(vectors)

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
