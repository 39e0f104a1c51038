"""A part of several lists at once, each ordered by rank and then by what must be looked up first, such as a score.
Only entries that may be in that part are looked up: those of the ranks that it touches."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from precompute.index.shard_reader import Array

Window = Callable[[int], slice]  # the part, once it is known how long the longest list is


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    totals: list[int]  # (lists,)
    chosen: Array  # the entries to look up
    _list: Array  # (chosen,) the list that each is in
    _rank: Array
    _part: slice
    _before: list[int]  # (lists,) how many entries of the list come before the chosen ones

    def sections(self, *keys: Array) -> list[Array]:
        """What is shown of each list, as positions in `chosen`; equal ranks are ordered by the first key, then the
        second, and so on."""
        order = np.lexsort((*keys[::-1], self._rank, self._list))
        starts = np.searchsorted(self._list[order], np.arange(len(self.totals) + 1)).tolist()
        parts = [slice(self._part.start - before, self._part.stop - before) for before in self._before]
        return [order[first:last][part] for first, last, part in zip(starts[:-1], starts[1:], parts, strict=True)]


def ranked(lists: Array, rank: Array, n_ranks: int, wanted: list[bool], window: Window) -> Ranked:
    """From the list and the rank of every entry; of lists that are not `wanted`, nothing is chosen."""
    counts = np.bincount(lists * np.intp(n_ranks) + rank, minlength=len(wanted) * n_ranks)
    up_to = counts.reshape(len(wanted), n_ranks).cumsum(axis=1)
    totals = up_to[:, -1].tolist()
    part = window(max(total for total, is_wanted in zip(totals, wanted, strict=True) if is_wanted))
    first, last = (up_to <= part.start).sum(axis=1), (up_to < part.stop).sum(axis=1)
    last[~np.array(wanted)] = -1
    chosen = np.flatnonzero((rank >= first[lists]) & (rank <= last[lists]))
    before = np.where(first, up_to[np.arange(len(wanted)), first - 1], 0).tolist()
    return Ranked(totals, chosen, lists[chosen], rank[chosen], part, before)
