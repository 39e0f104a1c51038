"""Read the vectors of words that go through heads, and of no others: what heads make of them is compared with
vocabularies as they are.

- raw: a word is its row of W_E, the mean of its pieces' rows, or of several words.
- first: rows are those of the vocabulary after the first block (see the module readings).
- norm: the vector x of `raw` goes through the norm in front of each layer's attention. As in the reading `norm`, this
  is norm(x) times the norm's divisor, and under the lens cosine the norm's bias is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lexiscope.precompute.live.weights import Norm
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.live.words import Vocabulary
from lexiscope.precompute.project.embedding import Float64


@dataclass(frozen=True)
class Source:
    vocabulary: Vocabulary  # whose rows are words
    lens: Lens
    norm: Callable[[int], Norm] | None = None  # returns the norm of a layer that vectors go through

    def seen(self, e: Float64, name: str) -> Float64:
        """Return the vector e (d_model,) of a word under the lens: under cosine it is centred and set to length one.
        Raise BadRequest, which mentions `name`, if it has no direction."""
        return e if self.lens == "dot" else self.vocabulary.direction(e, name)

    def into(self, layer: int, x: Float64) -> Float64:
        """Return vectors x (n, d_model) as the heads of a layer are given them."""
        if self.norm is None:
            return x
        norm = self.norm(layer)
        bias = norm.exact_bias if self.lens == "dot" else None
        return norm.scaled(x) if bias is None else norm.scaled(x) + norm.divisors(x)[:, None] * bias
