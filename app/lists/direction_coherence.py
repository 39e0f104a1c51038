"""Measure how readable the singular directions of a head are, compared with its subheads (channels), by the coherence
of their lists: how similar the first tokens of a list are.

A direction and a subhead have two sides, one that reads and one that writes (VO), or query and key (QK). The signs of
both sides may be flipped together, so a list's top belongs with the other's top, and bottom with bottom: the coherence
of a direction, or of a subhead, is the mean over its two sides at one end, the better one. Lists of tokens that the
model has hardly learned and cannot tell apart are not readable, but very coherent: a side counts as 0 unless its first
tokens are words and its coherence is below INDISTINCT.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexiscope.app.lists.readable import INDISTINCT, Readable, readable
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.tensor_file import Floats
from lexiscope.precompute.shape import DIRECTIONS, ENDS, FACTORS

BEST = 10  # a head is as readable as the mean of so many most coherent directions or subheads
JUDGED_TOKENS = 6  # so many first tokens decide whether a list is one of words


@dataclass(frozen=True)
class PairCoherence:
    """The coherence (how similar the tokens of a list are) of all directions, or of all subheads, of one matrix of a
    head."""

    numbers: Floats  # (d_head,)
    ends: NDArray[np.intp]  # (d_head,) the better end of each, as an index into ENDS

    @property
    def best(self) -> list[int]:
        """Return the numbers of the readable directions or subheads, those with the most similar tokens (largest
        coherence) first, those of equal coherence in the order of their numbers."""
        order = np.argsort(-self.numbers, kind="stable")
        return [int(at) for at in order if self.numbers[at] > 0]

    @property
    def reads(self) -> float:
        """Return the mean coherence (similarity of a list's tokens) of the ten (BEST) most coherent directions or
        subheads, or of all if there are fewer."""
        return float(np.sort(self.numbers)[-BEST:].mean(dtype=np.float64))


def direction_coherence(index: Index, shard: Shard, matrix: str, head: int, lens: str) -> PairCoherence | None:
    """Measure the coherence (similarity of a list's tokens) of a head's singular directions or subheads; return None if
    the index does not store both sides."""
    return _pair_coherence(index, shard, DIRECTIONS[matrix], head, lens)


def subhead_coherence(index: Index, shard: Shard, matrix: str, head: int, lens: str) -> PairCoherence | None:
    return _pair_coherence(index, shard, FACTORS[matrix], head, lens)


def _pair_coherence(index: Index, shard: Shard, kinds: tuple[str, str], head: int, lens: str) -> PairCoherence | None:
    if not {*kinds} <= {*index.stored.kinds}:
        return None
    shape, words = index.shape, readable(index)
    rows = [(kind, shape.row(kind, head, 0) + np.arange(shape.d_head)) for kind in kinds]
    at_ends = [
        np.mean([_coherences(shard, words, kind, numbers, lens, end) for kind, numbers in rows], axis=0) for end in ENDS
    ]  # (d_head,) each
    # argmax takes the top if both ends are equal
    return PairCoherence(np.max(at_ends, axis=0), np.argmax(at_ends, axis=0))


def _coherences(shard: Shard, words: Readable, kind: str, numbers: NDArray[np.int64], lens: str, end: str) -> Floats:
    """Return the coherence (similarity of a list's tokens) of these vectors' top or bottom lists, (n,); 0 where there
    is no list, or its tokens are no words."""
    coherences = shard.all_coherences(kind, lens, end)[numbers]
    counts = np.flatnonzero((coherences > 0) & (coherences < INDISTINCT))
    counts = counts[words.are_lists_of_words(shard.first_ids(kind, numbers[counts], lens, JUDGED_TOKENS, end))]
    found = np.zeros_like(coherences)
    found[counts] = coherences[counts]
    return found
