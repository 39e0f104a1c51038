"""Find what the presets of pairs need to know of the vocabulary: which tokens have the same surface (" dog", "Dog"),
and which are whole words."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]

LARGE_GROUP = 256  # in a group of more tokens of one surface, pairs are searched; in a smaller one, all are scored


@dataclass(frozen=True)
class Masks:
    surface: Int32  # (d_vocab,) equal for tokens that do not differ after decoding, stripping and lower-casing
    words: NDArray[np.bool_]  # (d_vocab,) whole words
    same_from: Int32  # from-tokens of all pairs of one surface, except for the large groups
    same_to: Int32  # their to-tokens
    large: tuple[Int32, ...]  # large groups (rows that no token has, tokens of mere spaces), with rising ids

    @classmethod
    def of(cls, surface: Int32, words: NDArray[np.bool_]) -> "Masks":
        order = np.argsort(surface, kind="stable").astype(np.int32)
        starts = np.flatnonzero(np.diff(surface[order], prepend=-1))
        groups = np.split(order, starts[1:])
        small = [group for group in groups if len(group) <= LARGE_GROUP] or [order[:0]]
        same_from = np.concatenate([np.repeat(group, len(group)) for group in small])
        same_to = np.concatenate([np.tile(group, len(group)) for group in small])
        return cls(surface, words, same_from, same_to, tuple(group for group in groups if len(group) > LARGE_GROUP))
