"""Cut one text into the tokens of two models, such that they correspond to each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.live.texts import encode, tokenizer_of
from lexiscope.precompute.weights.architectures.base import Model


@dataclass(frozen=True)
class Cut:
    """One text as the tokens `a` of model A and `b` of model B: token n of a[kept] corresponds to token n of
    b[lent:]."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    kept: slice  # the tokens of A that are kept: all but special ones without counterpart in B
    lent: int  # how many special tokens at the beginning of B's have no counterpart in A
    first: int  # the first of B's tokens that belongs to the text and is not special
    count: int  # how many of B's tokens belong to the text


class Cutter:
    """A cutter of texts for two models: it cuts a text into the tokens of A and those of B, and refuses texts that the
    two cut differently."""

    def __init__(self, a: Model, b: Model, length: int) -> None:
        """Prepare to cut texts, each after `length` tokens, special ones included."""
        self._a, self._b, self.length, self.lends = tokenizer_of(a), tokenizer_of(b), length, b.causal
        self._a_bytes, self._b_bytes = (
            token_bytes(model.checkpoint.tokenizer_file(), model.shape.d_vocab) for model in (a, b)
        )

    def cut(self, text: str) -> Cut | None:
        """Cut a text into the tokens of both models. Return None unless both cut it into the same pieces, apart from a
        space before the first one. Special tokens of B need a counterpart in A, except those before the text in a
        decoder, whose states cannot depend on the text."""
        a_before, a_text, a_after = encode(self._a, text)
        b_before, b_text, b_after = encode(self._b, text)
        lent = max(0, len(b_before) - len(a_before))
        if (lent and not self.lends) or len(a_after) < len(b_after):
            return None
        room = self.length - max(len(a_before) + len(a_after), len(b_before) + len(b_after))
        a_text, b_text = a_text[:room], b_text[:room]
        if room < 1 or not b_text or not self._alike(a_text, b_text):
            return None
        start, stop = len(a_before) + lent - len(b_before), len(a_before) + len(a_text) + len(b_after)
        return Cut(
            (*a_before, *a_text, *a_after), (*b_before, *b_text, *b_after), slice(start, stop), lent, len(b_before),
            len(b_text),
        )  # fmt: skip

    def _alike(self, a_text: Sequence[int], b_text: Sequence[int]) -> bool:
        if len(a_text) != len(b_text) or max(a_text) >= len(self._a_bytes) or max(b_text) >= len(self._b_bytes):
            return False
        a = [self._a_bytes[token] for token in a_text]
        b = [self._b_bytes[token] for token in b_text]
        return a[0].lstrip(b" ") == b[0].lstrip(b" ") and a[1:] == b[1:]
