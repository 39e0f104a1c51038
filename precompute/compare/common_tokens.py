"""Find the tokens that two vocabularies share: by their ids if equal ids mean equal tokens, else by their text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.errors import BuildError

LEAST_COMMON_TOKENS = 1000  # common tokens, below which correlations say little


@dataclass(frozen=True)
class CommonTokens:
    a: NDArray[np.int64]  # (tokens,) ids in A of the tokens that both models have
    b: NDArray[np.int64]  # (tokens,) ids of the same tokens in B
    matched: Literal["ids", "text"]

    def __len__(self) -> int:
        return len(self.a)

    @property
    def how(self) -> str:
        return "their ids mean the same" if self.matched == "ids" else "matched by their text, since ids differ"


def common_tokens(a: Sequence[bytes], b: Sequence[bytes]) -> CommonTokens:
    """Pair the tokens of two vocabularies, each given as the bytes that its tokens write. A row with an empty text has
    no token and is left out.

    If one vocabulary is the beginning of the other, tokens with equal ids are paired. Otherwise each text that both
    have is paired once, by the smallest id that has it in either vocabulary.
    """
    a, b = _without_unused_end(a), _without_unused_end(b)
    n = min(len(a), len(b))
    if list(a[:n]) == list(b[:n]):
        ids = np.array([token for token in range(n) if a[token]], np.int64)
        return CommonTokens(ids, ids, "ids")
    in_a, in_b = _first_ids(a), _first_ids(b)
    shared = [text for text in in_a if text in in_b]
    ids_a, ids_b = (np.array([ids[text] for text in shared], np.int64) for ids in (in_a, in_b))
    return CommonTokens(ids_a, ids_b, "text")


def check_enough(common: CommonTokens, a: str, b: str, least: int) -> None:
    """Raise BuildError if two models share too few tokens to be compared."""
    if len(common) < least:
        raise BuildError(
            f"{a} and {b} have {len(common)} tokens in common ({common.how}), and a comparison needs at least {least}: "
            "choose two models whose vocabularies overlap more, such as two of one family"
        )


def _without_unused_end(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Return the tokens without the unused rows at the end, which only pad an embedding."""
    end = len(texts)
    while end and not texts[end - 1]:
        end -= 1
    return texts[:end]


def _first_ids(texts: Sequence[bytes]) -> dict[bytes, int]:
    ids: dict[bytes, int] = {}
    for token, text in enumerate(texts):
        if text:
            ids.setdefault(text, token)
    return ids
