"""The rows of W_E or W_U that patterns and messages are compared with, as they are or after a layer's norm.

Under the lens dot, scores are products with these rows; under the lens cosine, the mean row is subtracted first and
every row is set to length one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lexiscope.precompute.live.weights import LEAST_DIVISOR, Norm, Weights, mean_and_inverse_lengths
from lexiscope.precompute.live.wire.fields import Lens

ROWS_AT_ONCE = 1024  # rows from which something is computed at once, so that no second vocabulary is in memory
COSINE_ROWS = 40  # vectors whose products take as long as centring and measuring the rows after a norm

Products = Callable[[Tensor], Tensor]  # vectors (n, d_model) -> scores of every token (n, d_vocab)


@dataclass(frozen=True)
class TokenRows:
    """The rows of a vocabulary matrix. The rows after a norm are never stored: apart from gain and bias, they are the
    same rows with other scales."""

    W: Tensor  # (d_vocab, d_model)
    mean: Tensor  # (d_vocab,) what a LayerNorm takes away; 0 for RMSNorm
    square: Tensor  # (d_vocab,) mean square of what is left
    scale: float  # what the model multiplies embeddings with before the first layer

    @classmethod
    def of(cls, w: Weights, W: Tensor) -> "TokenRows":
        mean = W.mean(dim=1) if w.norm_numbers("attention").centres else torch.zeros(len(W), device=W.device)
        squares = [
            (rows - centre[:, None]).square().mean(dim=1)
            for rows, centre in zip(torch.split(W, ROWS_AT_ONCE), torch.split(mean, ROWS_AT_ONCE), strict=True)
        ]
        return cls(W, mean, torch.cat(squares), w.model.embedding_scale)

    def plain(self, lens: Lens) -> Products:
        """Return a function that multiplies vectors with the rows as they are."""

        def products(vectors: Tensor) -> Tensor:
            scores = vectors @ self.W.T
            if lens == "cosine":
                centre, inverse = self._centred
                scores.sub_((vectors @ centre)[:, None]).mul_(inverse)
            return scores

        return products

    def normed(self, norm: Norm, lens: Lens) -> Products:
        """Return a function that multiplies vectors with every row as it is after a norm of the stream."""
        factor = (self.square + norm.eps / self.scale**2).rsqrt()  # scaling before a norm only weakens its eps
        centre, inverse = self._centred_after(norm, factor) if lens == "cosine" else (None, None)

        def products(vectors: Tensor) -> Tensor:
            folded = vectors * norm.gain
            scores = folded @ self.W.T
            if norm.centres:
                scores.addr_(folded.sum(dim=1), self.mean, alpha=-1)
            scores *= factor
            if centre is not None and inverse is not None:  # the norm's bias is in every row, and in their mean
                scores.sub_((folded @ centre)[:, None]).mul_(inverse)
            elif norm.bias is not None:
                scores += (vectors @ norm.bias)[:, None]
            return scores

        return products

    @cached_property
    def _centred(self) -> tuple[Tensor, Tensor]:
        return mean_and_inverse_lengths(self.W)

    def _centred_after(self, norm: Norm, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean row and the inverse lengths of the rows after a norm that multiplies them with `factor`
        (d_vocab,); the mean is taken before gain and bias."""
        centre = torch.stack([rows.sum(dim=0) for rows in self._scaled(factor)]).sum(dim=0) / len(self.W)
        lengths = [torch.linalg.vector_norm((rows - centre) * norm.gain, dim=1) for rows in self._scaled(factor)]
        return centre, 1 / torch.cat(lengths).clamp(min=LEAST_DIVISOR)

    def _scaled(self, factor: Tensor) -> Iterator[Tensor]:
        for rows, mean, factors in zip(
            *(torch.split(each, ROWS_AT_ONCE) for each in (self.W, self.mean, factor)), strict=True
        ):
            yield (rows - mean[:, None]) * factors[:, None]


Vocabularies = tuple[TokenRows, TokenRows]  # the rows of W_E, and those of W_U
