"""Cut one part out of each of several lists that are ordered by rank, then by keys that must be read first, such as a
score. Only the entries that may be in that part are read: those of the ranks that it touches."""

import sys
from dataclasses import dataclass

import numpy as np

from lexiscope.precompute.index.tensor_file import Array


@dataclass(frozen=True, slots=True, eq=False)
class RankedParts:
    totals: list[int]  # (lists,)
    chosen: Array  # the entries to read
    _list: Array  # (chosen,) the list of each entry
    _rank: Array
    _start: int
    _stop: int
    _before: list[int]  # (lists,) how many entries of the list come before the chosen ones

    def sections(self, *keys: Array) -> list[Array]:
        """Return the part of each list, as positions in `chosen`; equal ranks are ordered by the first key, then the
        second, and so on."""
        order = np.lexsort((*keys[::-1], self._rank, self._list))
        starts = np.searchsorted(self._list[order], np.arange(len(self.totals) + 1)).tolist()
        parts = [slice(max(0, self._start - before), max(0, self._stop - before)) for before in self._before]
        return [order[first:last][part] for first, last, part in zip(starts[:-1], starts[1:], parts, strict=True)]


def rank_parts(lists: Array, rank: Array, n_ranks: int, wanted: list[bool], part: slice) -> RankedParts:
    """Choose parts of lists, from the list and the rank of every entry; nothing is chosen of lists that are not
    `wanted`."""
    start, stop, _ = part.indices(sys.maxsize)
    counts = np.bincount(lists * np.intp(n_ranks) + rank, minlength=len(wanted) * n_ranks)
    up_to = counts.reshape(len(wanted), n_ranks).cumsum(axis=1)  # entries of a list up to a rank
    first, last = (up_to <= start).sum(axis=1), (up_to < stop).sum(axis=1)
    last[~np.array(wanted)] = -1
    chosen = np.flatnonzero((rank >= first[lists]) & (rank <= last[lists]))
    before = np.where(first, up_to[np.arange(len(wanted)), first - 1], 0).tolist()
    return RankedParts(up_to[:, -1].tolist(), chosen, lists[chosen], rank[chosen], start, stop, before)
