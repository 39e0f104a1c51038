"""Read small parts of the arrays of all layers at once: the slices of a token, and single entries. Also cut one part
out of each of several lists that are ordered by rank, then by keys that must be read first, such as a score: only
entries at the ranks of that part are read."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import Array, TensorFile
from lexiscope.precompute.shape import ENDS

FEW = 256  # entries that are read one by one, because sorting them by layers would take longer


class DamagedLayer(Exception):
    """Raised if the file of this layer holds an impossible value."""

    def __init__(self, layer: int) -> None:
        super().__init__(layer)
        self.layer = layer


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """The layers that are searched, and the sizes of their arrays."""

    shards: Mapping[int, Shard]
    stored: Stored


@dataclass(frozen=True, slots=True, eq=False)
class TokenSlices:
    """The places at which the lists of all layers name a token, as slices of arrays: those of the top lists of every
    layer, then those of the bottom lists."""

    bounds: list[tuple[TensorFile, int, int]]  # (slices,): first and last entry
    layer: Array
    end: Array
    count: Array

    def read(self, name: str, width: int = 1) -> Array:
        """Return the entries of an array in all slices of the token, one slice after the other; `width` is the number
        of values in each entry."""
        dtype = self.bounds[0][0].tensors[name].dtype if self.bounds else np.dtype(np.uint8)
        data = [file.read(name, width * first, width * last) for file, first, last in self.bounds]
        return np.frombuffer(b"".join(data), dtype)

    def numbers(self) -> Array:
        """Return for every entry of the token the number of the slice that holds it."""
        return np.repeat(np.arange(len(self.count), dtype=np.uint16), self.count)


def token_slices(layers: Layers, token: int, lens: int, lists: str) -> TokenSlices:
    """Return the token's slices of the arrays called `inverted` or `paired`; raise DamagedLayer if one is outside of
    its array."""
    files = [shard.file for shard in layers.shards.values()]
    starts = [(lens * len(ENDS) + end) * (layers.stored.shape.d_vocab + 1) + token for end in range(len(ENDS))]
    data = b"".join([file.read(f"{lists}.offsets", at, at + 2) for at in starts for file in files])
    first, last = np.frombuffer(data, np.uint32).astype(np.int64).reshape(-1, 2).T
    n_entries = np.array([file.tensors[f"{lists}.rank"].size for file in files] * len(ENDS), np.int64)
    layer = np.array([*layers.shards] * len(ENDS), np.int32)
    end = np.repeat(np.arange(len(ENDS), dtype=np.uint8), len(files))
    check((first <= last) & (last <= n_entries), layer)
    bounds = zip(files * len(ENDS), first.tolist(), last.tolist(), strict=True)
    return TokenSlices([*bounds], layer, end, last - first)


def read_entries(
    layers: Layers, names: Sequence[str], which: Array, layer: Array, starts: Array, width: int = 1
) -> Array:
    """Read `width` entries from each of `starts` on, counted as in the file; for each of them, `which` is the number of
    the array in `names`, and `layer` the layer.

    The arrays are of one type; the result is (n,) for a width of 1, else (n, width).
    """
    files = {number: shard.file for number, shard in layers.shards.items()}
    dtype = next((file.tensors[names[0]].dtype for file in files.values()), np.dtype(np.uint8))
    rows = np.empty((len(starts), width), dtype)
    if len(starts) <= FEW:
        wanted = zip(which.tolist(), layer.tolist(), starts.tolist(), strict=True)
        data = b"".join([files[at].read(names[array], first, first + width) for array, at, first in wanted])
        rows[:] = np.frombuffer(data, dtype).reshape(-1, width)
    else:
        group = layer.astype(np.int64) * len(names) + which
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order], prepend=-1))
        for chosen in np.split(order, bounds[1:]):
            at, array = divmod(int(group[chosen[0]]), len(names))
            rows[chosen] = files[at].rows(names[array], starts[chosen], width)
    return rows[:, 0] if width == 1 else rows


def check(right: Array, layer: Array) -> None:
    """Raise DamagedLayer unless all flags in `right` are True; the error names the layer of the first entry that is not
    right."""
    for wrong in np.flatnonzero(~right)[:1]:
        raise DamagedLayer(int(layer[wrong]))


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
        """Return the wanted part of each list, as positions in `chosen`; entries of equal rank are ordered by the first
        key, then by the second, and so on."""
        order = np.lexsort((*keys[::-1], self._rank, self._list))
        starts = np.searchsorted(self._list[order], np.arange(len(self.totals) + 1)).tolist()
        parts = [slice(max(0, self._start - before), max(0, self._stop - before)) for before in self._before]
        return [order[first:last][part] for first, last, part in zip(starts[:-1], starts[1:], parts, strict=True)]


def rank_parts(lists: Array, rank: Array, n_ranks: int, wanted: list[bool], part: slice) -> RankedParts:
    """Choose the same part of several lists, given the list and the rank of every entry; nothing is chosen from lists
    that are not `wanted`."""
    start, stop, _ = part.indices(sys.maxsize)
    counts = np.bincount(lists * np.intp(n_ranks) + rank, minlength=len(wanted) * n_ranks)
    up_to = counts.reshape(len(wanted), n_ranks).cumsum(axis=1)  # entries of a list up to a rank
    first, last = (up_to <= start).sum(axis=1), (up_to < stop).sum(axis=1)
    last[~np.array(wanted)] = -1
    chosen = np.flatnonzero((rank >= first[lists]) & (rank <= last[lists]))
    before = np.where(first, up_to[np.arange(len(wanted)), first - 1], 0).tolist()
    return RankedParts(up_to[:, -1].tolist(), chosen, lists[chosen], rank[chosen], start, stop, before)
