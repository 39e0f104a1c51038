"""Small parts of the arrays of all layers at once: one read for each and one array of them all.
What they mean is for places.py and pair_slots.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from precompute.index.shard_reader import Array, Shard
from precompute.shape import ENDS, Shape

FEW = 256  # entries that are read one by one: to sort them by layers first takes longer

Shards = Mapping[int, Shard]


class BrokenLayer(Exception):
    """A value of this layer cannot be right."""

    def __init__(self, layer: int) -> None:
        super().__init__(layer)
        self.layer = layer


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Where the inverted lists of a token stand: those of the top of every layer, then those of the bottom."""

    bounds: list[tuple[Shard, int, int]]  # (slices,)
    layer: Array
    end: Array
    count: Array

    def read(self, name: str, width: int = 1) -> Array:
        """What an array of rows of this width holds there, slice after slice."""
        dtype = self.bounds[0][0].array(name).dtype if self.bounds else np.dtype(np.uint8)
        parts = [shard.part(name, width * first, width * last) for shard, first, last in self.bounds]
        return np.frombuffer(b"".join(parts), dtype)

    def numbers(self) -> Array:
        """For every entry that is read, its slice."""
        return np.repeat(np.arange(len(self.count), dtype=np.uint16), self.count)


def slices(shards: Shards, shape: Shape, token: int, lens: int, lists: str) -> Slices:
    """Of the lists called `inverted` or `paired`; BrokenLayer where they would be outside of their array."""
    starts = [(lens * len(ENDS) + end) * (shape.d_vocab + 1) + token for end in range(len(ENDS))]
    offsets = f"{lists}.offsets"
    data = b"".join([shard.part(offsets, start, start + 2) for start in starts for shard in shards.values()])
    bounds = np.frombuffer(data, np.uint32).astype(np.int64).reshape(-1, 2)
    n_entries = np.array([len(shard.array(f"{lists}.rank")) for shard in shards.values()] * len(ENDS), np.int64)
    layer = np.array([*shards] * len(ENDS), np.int32)
    end = np.repeat(np.arange(len(ENDS), dtype=np.uint8), len(shards))
    first, last = bounds.T
    for wrong in np.flatnonzero((first > last) | (last > n_entries))[:1]:
        raise BrokenLayer(int(layer[wrong]))
    held = [shards[at] for at in layer.tolist()]
    return Slices([*zip(held, first.tolist(), last.tolist(), strict=True)], layer, end, last - first)


def entries_at(
    shards: Shards, names: Sequence[str], which: Array, layer: Array, numbers: Array, width: int = 1
) -> Array:
    """Single rows of `width` entries, each of one of these arrays in one layer, numbered as they lie in the file.

    The arrays are of one type; (n,) for a width of 1, else (n, width)."""
    dtype = next((shard.array(names[0]).dtype for shard in shards.values()), np.dtype(np.uint8))
    found = np.empty((len(numbers), width), dtype)
    if len(numbers) <= FEW:
        places = zip(which.tolist(), layer.tolist(), (numbers * width).tolist(), strict=True)
        data = b"".join([shards[at].part(names[array], first, first + width) for array, at, first in places])
        found[:] = np.frombuffer(data, dtype).reshape(-1, width)
    else:
        order = np.argsort(layer, kind="stable")
        starts = np.flatnonzero(np.diff(layer[order], prepend=-1))
        for chosen in np.split(order, starts[1:]):
            shard = shards[int(layer[chosen[0]])]
            found[chosen] = shard.rows(names, which[chosen], numbers[chosen], width)
    return found[:, 0] if width == 1 else found
