"""How well the singular directions of a head read, beside its subheads: by the coherence of their lists.

A direction and a subhead have two sides, one that reads and one that writes (VO), or query and key (QK). Both sides may
be turned round together, so a list's top goes with the other's top, and bottom with bottom: the coherence of a
direction, or of a subhead, is the mean of its two sides' at one end, the better one. Lists that people cannot read, of
tokens that the model has hardly learned and cannot tell apart, are very coherent: a side counts as 0 unless its first
tokens are words, and its coherence is below SAME."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexiscope.app.lists.readable import SAME, Readable, readable
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.shard_reader import Shard
from lexiscope.precompute.index.tensor_file import Floats
from lexiscope.precompute.shape import DIRECTIONS, ENDS, FACTORS

BEST = 10  # of a head's directions, or subheads: their mean is how well it reads by them
FIRST = 6  # tokens of a list, by which it is one of words


@dataclass(frozen=True)
class PairCoherence:
    """Of all directions, or subheads, of one matrix of a head."""

    numbers: Floats  # (d_head,)
    ends: NDArray[np.intp]  # (d_head,) in ENDS

    @property
    def best(self) -> list[int]:
        """The best first, ties by the smaller number; those of which nothing can be read are left out."""
        order = np.argsort(-self.numbers, kind="stable")
        return [int(at) for at in order if self.numbers[at] > 0]

    @property
    def reads(self) -> float:
        """The mean of the BEST best, of all if there are fewer."""
        return float(np.sort(self.numbers)[-BEST:].mean(dtype=np.float64))


def direction_coherence(index: Index, shard: Shard, matrix: str, head: int, lens: str) -> PairCoherence | None:
    """None where the index does not store both sides."""
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
    return PairCoherence(np.max(at_ends, axis=0), np.argmax(at_ends, axis=0))  # of equal ones the top


def _coherences(shard: Shard, words: Readable, kind: str, numbers: NDArray[np.int64], lens: str, end: str) -> Floats:
    """(n,) of the lists of these vectors at one end; 0 where there is none, or nothing to read."""
    coherences = shard.all_coherences(kind, lens, end)[numbers]
    counts = np.flatnonzero((coherences > 0) & (coherences < SAME))
    counts = counts[words.are_lists_of_words(shard.first_ids(kind, numbers[counts], lens, FIRST, end))]
    found = np.zeros_like(coherences)
    found[counts] = coherences[counts]
    return found
