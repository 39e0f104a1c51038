"""An array in a file, of which only what is asked for is read: no file of an index stays mapped in the server.
A map would end the process when its file is cut short, and whole folios of it count as memory once a byte was read."""

import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from precompute.errors import ShardDamaged
from precompute.files import damaged, unreadable
from precompute.index.container import Container
from precompute.index.shard_reader import Array, Shard

AS_LONG_AS = 4096  # bytes in a row that take as long to read as one entry by itself
KEPT = (".norm", ".coherence", ".similarity", ".count")  # a number or two for each vector: read once


class OpenFile:
    """A file that stays open as long as somebody reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = -1
        try:
            self.descriptor = os.open(path, os.O_RDONLY)
            status = os.fstat(self.descriptor)
        except OSError as error:
            raise unreadable(path, error) from error
        self.stamp = (status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)

    def read(self, n_bytes: int, offset: int) -> bytes:
        try:
            data = os.pread(self.descriptor, n_bytes, offset)
        except OSError as error:
            raise unreadable(self.path, error) from error
        if len(data) != n_bytes:
            raise self._cut_short()
        return data

    def read_many(self, n_bytes: int, offsets: list[int]) -> bytes:
        """As many bytes at each of these places, joined."""
        pread, descriptor = os.pread, self.descriptor
        try:
            data = b"".join([pread(descriptor, n_bytes, offset) for offset in offsets])
        except OSError as error:
            raise unreadable(self.path, error) from error
        if len(data) != n_bytes * len(offsets):
            raise self._cut_short()
        return data

    def _cut_short(self) -> ShardDamaged:
        return damaged(self.path, "was cut short while it was served")

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class FileArray:
    """As much of an array as shards and views use: whole numbers, then one slice or arrays of numbers."""

    def __init__(
        self, file: OpenFile, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], keep: bool = False
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.file = file
        self.offset = offset
        self._steps = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
        self._keep = keep
        self._kept: Array | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self._read(self.offset, self.shape), dtype)

    def __getitem__(self, key: Any) -> Any:
        if self._keep:
            if self._kept is None:
                self._kept = np.asarray(self)
            return self._kept[key]
        if type(key) is not tuple:
            key = (key,)
        offset, axis = self.offset, 0
        for part, size, step in zip(key, self.shape, self._steps, strict=False):
            if type(part) is not int:
                break
            if not 0 <= part < size:
                raise IndexError(f"{part} on an axis of {size}")
            offset += part * step
            axis += 1
        if axis == len(key):
            data = self.file.read(self._steps[axis - 1], offset)
            return np.frombuffer(data, self.dtype).reshape(self.shape[axis:])
        if axis + 1 == len(key) and isinstance(key[axis], slice):
            first, last, step = key[axis].indices(self.shape[axis])
            if step == 1:
                offset += first * self._steps[axis]
                return self._read(offset, (max(0, last - first), *self.shape[axis + 1 :]))
        if isinstance(key[axis], slice):
            return np.asarray(self)[key]
        return self._gathered(key)

    def _gathered(self, key: tuple[Any, ...]) -> Array:
        """At arrays of numbers on the first axes, which go together; slices of what is left come last."""
        axes = sum(not isinstance(part, slice) for part in key)
        offsets: Any = self.offset
        for part, size, step in zip(key[:axes], self.shape, self._steps, strict=False):
            numbers = np.asarray(part, np.int64)
            if numbers.size and numbers.view(np.uint64).max() >= size:  # below zero is far above, seen so
                raise IndexError(f"{numbers.min()} to {numbers.max()} on an axis of {size}")
            offsets = offsets + numbers * step
        data = self.file.read_many(self._steps[axes - 1], offsets.ravel().tolist())
        found = np.frombuffer(data, self.dtype).reshape(*offsets.shape, *self.shape[axes:])
        return found[(..., *key[axes:])] if axes < len(key) else found

    def _read(self, offset: int, shape: tuple[int, ...]) -> Any:
        count = math.prod(shape)
        if not count:
            return np.empty(shape, self.dtype)
        return np.frombuffer(self.file.read(count * self.dtype.itemsize, offset), self.dtype).reshape(shape)


class FileShard(Shard):
    """A layer that is read from its file, with all the checks of one that is mapped."""

    def __init__(self, shard: Shard) -> None:
        super().__init__(shard._container, shard._shape, shard.layer)
        self._container, self.stamp = unmapped(shard._container)
        arrays: Any = self._container.arrays
        self.descriptor: int = arrays["ff_key.ids"].file.descriptor
        self._where: dict[str, tuple[OpenFile, int, int]] = {
            name: (array.file, array.offset, array.dtype.itemsize) for name, array in arrays.items()
        }

    def part(self, name: str, first: int, last: int) -> bytes:
        file, offset, size = self._where[name]
        return file.read((last - first) * size, offset + first * size)

    def records(self, names: Sequence[str], numbers: Sequence[int], shape: tuple[int, ...]) -> Array:
        array: Any = self._container.arrays[names[0]]
        size = math.prod(shape) * array.dtype.itemsize
        offsets = [self._where[name][1] + at * size for name, at in zip(names, numbers, strict=True)]
        return np.frombuffer(array.file.read_many(size, offsets), array.dtype).reshape(-1, *shape)

    def rows(self, names: Sequence[str], which: Array, numbers: Array, width: int) -> Array:
        arrays: Any = [self._container.arrays[name] for name in names]
        dtype = arrays[0].dtype
        if len(numbers) * AS_LONG_AS >= sum(math.prod(array.shape) for array in arrays) * dtype.itemsize:
            return super().rows(names, which, numbers, width)
        size = width * dtype.itemsize
        offsets = np.array([array.offset for array in arrays])[which] + numbers * np.int64(size)
        return np.frombuffer(arrays[0].file.read_many(size, offsets.tolist()), dtype).reshape(-1, width)


def unmapped(container: Container) -> tuple[Container, tuple[int, int, int, int]]:
    """The same container without its map, and size, inode and times of the file that is read in its place."""
    file = OpenFile(container.path)
    arrays: Any = {
        name: FileArray(file, _offset(array), array.dtype, array.shape, name.endswith(KEPT))
        for name, array in container.arrays.items()
    }
    return replace(container, arrays=arrays), file.stamp


def _offset(array: Array) -> int:
    """Where a mapped array begins in its file."""
    below: object = array
    while below is not None and not isinstance(below, mmap.mmap):
        below = below.obj if isinstance(below, memoryview) else getattr(below, "base", None)
    if below is None:  # it has no bytes
        return 0
    return int(array.__array_interface__["data"][0] - np.frombuffer(below, np.uint8).__array_interface__["data"][0])
