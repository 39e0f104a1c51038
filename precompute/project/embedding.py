"""Hold a vocabulary matrix, W_E or W_U, with its mean row and the norms of its rows in float64, which both lenses need:
scores are dot products with its rows, or cosines with its centred rows.

These numbers are always computed on the CPU, so that an index does not depend on the device that built it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.errors import BadWeights

Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

# A token has no direction if the norm of its centred row is below this share of the norms it comes from, which is
# rounding noise, or if this norm has no inverse in float32.
ROUNDING_SHARE = 1e-9
SMALLEST_NORM = 1e-37
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Embedding:
    rows: Float32  # (d_vocab, d_model), on the CPU
    on_device: torch.Tensor  # the same, where the products run
    mean: Float64  # (d_model,)
    norm: Float64  # (d_vocab,) |e_t|
    centred_norm: Float64  # (d_vocab,) |e_t - mean|; 0 where e_t is the mean

    @classmethod
    def of(cls, W: torch.Tensor, device: torch.device) -> "Embedding":
        """Compute the mean row and the norms of W (d_vocab, d_model), which is float32."""
        rows = np.ascontiguousarray(W.cpu().numpy())
        if not np.isfinite([rows.min(initial=0), rows.max(initial=0)]).all():  # min and max are NaN if there is one
            raise BadWeights("the embedding holds values that are not finite: no list can be made from it")
        mean = rows.mean(axis=0, dtype=np.float64)
        norm, centred_norm = np.empty(len(rows)), np.empty(len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS].astype(np.float64)
            norm[start : start + BLOCK_ROWS] = np.linalg.norm(block, axis=1)
            centred_norm[start : start + BLOCK_ROWS] = np.linalg.norm(block - mean, axis=1)
        centred_norm[centred_norm <= ROUNDING_SHARE * (norm + np.linalg.norm(mean)) + SMALLEST_NORM] = 0.0
        return cls(rows, W.to(device), mean, norm, centred_norm)

    def only(self, tokens: NDArray[np.intp]) -> "Embedding":
        """Return the rows of some tokens; the mean row is still that of all."""
        chosen = torch.from_numpy(tokens).to(self.on_device.device)
        return Embedding(
            self.rows[tokens], self.on_device[chosen], self.mean, self.norm[tokens], self.centred_norm[tokens]
        )

    @property
    def inverse_norm(self) -> Float64:
        """Return 1 / |e_t - mean| for each row e_t, (d_vocab,), and 0 for a token without a direction: all its cosine
        scores are 0."""
        return np.divide(1.0, self.centred_norm, out=np.zeros_like(self.centred_norm), where=self.centred_norm > 0)

    def directions(self, tokens: slice | torch.Tensor = slice(None)) -> torch.Tensor:
        """Return the rows of some tokens, or of all, centred and set to length one: (tokens, d_model), float32."""
        mean = torch.from_numpy(self.mean).float().to(self.on_device.device)
        inverse = torch.from_numpy(self.inverse_norm).float().to(self.on_device.device)
        return (self.on_device[tokens] - mean).mul_(inverse[tokens][:, None])


def mean_and_covariance(read: Callable[[slice], Float64], n: int) -> tuple[Float64, Float64]:
    """Return the mean (d_model,) and the covariance (d_model, d_model) of n rows, which are read in blocks."""
    total, products = np.zeros(()), np.zeros(())
    for start in range(0, n, BLOCK_ROWS):
        rows = read(slice(start, start + BLOCK_ROWS))
        total = total + rows.sum(axis=0)
        products = products + rows.T @ rows
    mean = total / n
    return mean, products / n - np.outer(mean, mean)


def inverse_gram(rows: Float32, tick: Callable[[], None] = lambda: None) -> Float64:
    """Return the pseudo-inverse (d_model, d_model) of rowsᵀ rows in float64. A vector times it, and then times each
    row, is the vector times the pseudo-inverse E⁺ of E = rowsᵀ. `tick` is called between blocks of rows.

    What is so short that it can be rounding counts as 0, so that rows which do not span the space have an inverse, too.
    """
    d_model = rows.shape[1]
    gram = np.zeros((d_model, d_model))
    for start in range(0, len(rows), BLOCK_ROWS):
        tick()
        block = rows[start : start + BLOCK_ROWS].astype(np.float64)
        gram += block.T @ block
    return np.asarray(np.linalg.pinv(gram, rcond=d_model * np.finfo(np.float64).eps, hermitian=True))
