"""Compute moments, which tell how the scores of a vector are distributed over all tokens.

For each vector and lens these are the mean, the standard deviation, the skew and the excess kurtosis of its scores, and
how many standard deviations the largest and the smallest score are away from the mean. They are summed in float64 from
the float32 products that lists are made from. Of vectors that write, there is also the variance of their cosines with
the rows of the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Embedding, Float64, mean_and_covariance
from lexiscope.precompute.shape import ENDS, LENSES

AT_ONCE = 1 << 20  # scores that are in float64 at once, on a device
CONSTANT = 1e-6  # share of the size of the factors: a smaller standard deviation is only rounding
LEAST_DEVIATION = 1e-37  # a standard deviation that float32 can hardly hold


@dataclass(frozen=True)
class Moments:
    """The moments of n vectors, as arrays. Skew, kurtosis and z are NaN where all scores are equal, as those of a
    vector of zeros are."""

    moments: NDArray[np.float32]  # (n, lenses, 4): mean, sd, skew, kurtosis
    z: NDArray[np.float32]  # (n, lenses, ends): (score - mean) / sd of the first token of either list

    @classmethod
    def of_zeros(cls, n: int, n_lenses: int) -> "Moments":
        """Return arrays for n vectors that hold the moments of vectors of zeros until others are written."""
        moments = np.zeros((n, n_lenses, 4), np.float32)
        moments[..., 2:] = np.nan
        return cls(moments, np.full((n, n_lenses, len(ENDS)), np.nan, np.float32))


class MomentsOfProducts:
    """Compute moments (mean, standard deviation, ...) of scores with one vocabulary under some lenses, on the device
    that has the products."""

    def __init__(self, embedding: Embedding, lenses: Sequence[str]) -> None:
        self._lenses = [LENSES.index(lens) for lens in lenses]
        self._embedding = embedding
        self._mean, self._inverse_norm = embedding.mean, embedding.inverse_norm  # (d_model,), (d_vocab,)
        sizes = embedding.norm, embedding.norm * embedding.inverse_norm
        self._size = np.array([np.sqrt(np.mean(size**2)) for size in sizes])  # (lenses,)

    def write(self, V: torch.Tensor, product: torch.Tensor, into: Moments, rows: NDArray[np.intp] | slice) -> None:
        """Write the moments of the vectors V (n, d_model), whose products with the vocabulary are (n, d_vocab), into
        these rows of `into`."""
        vectors = V.cpu().numpy().astype(np.float64)
        shift = vectors @ self._mean  # (n,) by how much scores under `dot` are larger than those of centred embeddings
        sums = np.empty((len(V), len(LENSES), 6))
        if product.device.type == "cpu":
            _sum_powers(product.numpy(), shift, self._inverse_norm, sums)
        else:
            _sum_on_device(product, shift, self._inverse_norm, sums)
        constant = CONSTANT * self._size * np.linalg.norm(vectors, axis=1)[:, None] + LEAST_DEVIATION  # (n, lenses)
        moments, z = _moments(sums, product.shape[1], constant)
        moments[:, 0, 0] += shift
        into.moments[rows], into.z[rows] = moments[:, self._lenses], z[:, self._lenses]

    def variance_of_cosines(self, V: torch.Tensor) -> Float64:
        """Return the variance over tokens of the cosine of each vector of V (n, d_model) with the rows of the
        vocabulary, as they are, not centred, (n,): NaN for a vector of zeros. The cosine with a row of zeros is 0."""
        vectors = V.cpu().numpy().astype(np.float64)
        square = np.einsum("nd,nd->n", vectors, vectors)
        variance = np.einsum("nd,nd->n", vectors @ self.covariance_of_directions, vectors)
        of_cosines: Float64 = np.divide(variance, square, out=np.full(len(V), np.nan), where=square > 0)
        return np.maximum(of_cosines, 0)

    @cached_property
    def covariance_of_directions(self) -> Float64:
        """Return the covariance (d_model, d_model) of the rows of the vocabulary, each set to length one."""
        rows, norm = self._embedding.rows, self._embedding.norm
        inverse = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
        return mean_and_covariance(lambda block: rows[block].astype(np.float64) * inverse[block, None], len(rows))[1]


def _moments(sums: Float64, n_tokens: int, constant: Float64) -> tuple[Float64, Float64]:
    """Return mean, standard deviation, skew and kurtosis, (n, lenses, 4), and z of the largest and the smallest score,
    (n, lenses, 2), from `sums` (n, lenses, 6): the sums of the powers 1 to 4 of scores, and these two scores."""
    first, second, third, fourth = np.moveaxis(sums[..., :4] / n_tokens, -1, 0)  # (n, lenses) each
    variance = second - first**2
    sd = np.sqrt(np.maximum(variance, 0))
    sd[sd <= constant] = 0
    spread = np.where(sd > 0, sd, np.nan)
    skew = (third - 3 * first * second + 2 * first**3) / spread**3
    kurtosis = (fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4) / spread**4 - 3
    return np.stack([first, sd, skew, kurtosis], axis=-1), (sums[..., 4:] - first[..., None]) / spread[..., None]


@kernel(fastmath={"reassoc", "contract", "nsz", "nnan"})
def _sum_powers(product: NDArray[np.float32], shift: Float64, inverse_norm: Float64, sums: NDArray[np.float64]) -> None:
    """Set `sums` to the sums of the powers 1 to 4 of centred scores and of cosines, and to their largest and smallest,
    in one pass over the product (n, d_vocab)."""
    for v in range(product.shape[0]):
        row = product[v]
        a = b = c = d = e = f = g = h = 0.0
        top = cosine_top = -np.inf
        bottom = cosine_bottom = np.inf
        for t in range(np.uint64(len(row))):  # unsigned: no check for counting from the end, so it is vectorised
            score = np.float64(row[t]) - shift[v]
            square = score * score
            a += score
            b += square
            c += square * score
            d += square * square
            top = max(top, score)
            bottom = min(bottom, score)
            cosine = score * inverse_norm[t]
            square = cosine * cosine
            e += cosine
            f += square
            g += square * cosine
            h += square * square
            cosine_top = max(cosine_top, cosine)
            cosine_bottom = min(cosine_bottom, cosine)
        sums[v, 0] = (a, b, c, d, top, bottom)
        sums[v, 1] = (e, f, g, h, cosine_top, cosine_bottom)


def _sum_on_device(product: torch.Tensor, shift: Float64, inverse_norm: Float64, sums: Float64) -> None:
    """Set `sums` as _sum_powers does, but by torch on the device that has the product, for some vectors at a time."""
    shifts, inverse = (torch.from_numpy(numbers).to(product.device) for numbers in (shift, inverse_norm))
    step = max(1, AT_ONCE // product.shape[1])
    for start in range(0, len(product), step):
        rows = slice(start, start + step)
        centred = product[rows].double() - shifts[rows][:, None]
        for lens, scores in enumerate((centred, centred * inverse)):
            squares = scores * scores
            powers = [part.sum(dim=1) for part in (scores, squares, squares * scores, squares * squares)]
            ends = [scores.amax(dim=1), scores.amin(dim=1)]
            sums[rows, lens] = torch.stack([*powers, *ends], dim=1).cpu().numpy()
