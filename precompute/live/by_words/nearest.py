"""Keep a copy of the vocabulary's directions in bytes, to find the tokens nearest to a vector by reading a quarter of
the memory. The copy only tells which tokens may be near; the caller computes exact scores. It is used for a single
query on a CPU, where reading memory is slow."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Embedding, Float32, Float64
from lexiscope.precompute.project.rounding import UNIT, gamma


@dataclass(frozen=True)
class CoarseVocabulary:
    """The directions ê_t = (e_t - mean) / |e_t - mean| of all tokens' embeddings e_t, rounded to multiples of `step`,
    and the errors of this copy."""

    steps: NDArray[np.int8]  # (d_vocab, d_model)
    step: Float32  # (d_vocab,)
    off: Float32  # (d_vocab,) |ê_t - copy|, rounded up

    @classmethod
    def of(cls, embedding: Embedding) -> "CoarseVocabulary":
        d_vocab, d_model = embedding.rows.shape
        copy = cls(np.empty((d_vocab, d_model), np.int8), np.empty(d_vocab, np.float32), np.empty(d_vocab, np.float32))
        # The rounding errors of the product with q, and of the directions, which grow where a row is near to the mean.
        mean_norm = float(np.linalg.norm(embedding.mean))
        rounding = gamma(d_model + 16) + 8 * UNIT * (embedding.norm + mean_norm) * embedding.inverse_norm
        for start in range(0, d_vocab, 4096):
            rows = slice(start, start + 4096)
            centred = embedding.rows[rows] - embedding.mean.astype(np.float32)
            directions = centred * embedding.inverse_norm[rows, None].astype(np.float32)
            step = np.maximum(np.abs(directions).max(axis=1), np.float32(1e-30)) / 127
            steps = np.rint(directions / step[:, None])
            copy.steps[rows], copy.step[rows] = steps, step
            copy.off[rows] = np.linalg.norm(directions - steps * step[:, None], axis=1) * 1.001 + rounding[rows]
        return copy

    def cosines(self, q: Float64) -> tuple[torch.Tensor, torch.Tensor]:
        """Return for q (d_model,) the approximate cosine ê_t · q / |q| of every token, and how far each may be off,
        (d_vocab,) each."""
        cosines = np.empty(len(self.step), np.float32)
        _products(self.steps, self.step, (q / np.linalg.norm(q)).astype(np.float32), cosines)
        return torch.from_numpy(cosines), torch.from_numpy(self.off)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _products(steps: NDArray[np.int8], step: Float32, q: Float32, out: Float32) -> None:
    for t in range(len(steps)):
        total = np.float32(0)
        row = steps[t]
        for i in range(len(q)):
            total += np.float32(row[i]) * q[i]
        out[t] = total * step[t]
