"""Read and write one safetensors file of an index: written whole, checked when it is opened, read slice by slice with
pread.

Nothing is mapped into memory: a file that is cut short under a reader raises an error, and does not end the process."""

import errno
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.errors import NewerFormat, ShardDamaged
from lexiscope.precompute.files import damaged, open_descriptor, stamp_of, strict_json, unreadable, write_beside
from lexiscope.precompute.rebuild_command import rebuild_command_for

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float32]
Described: TypeAlias = Mapping[str, tuple[str, Sequence[int]]]  # array -> safetensors' name of its type, and its shape

FORMAT: Final = 3  # the format of indexes, which each of their files names
# The types that are written, by numpy's names.
DTYPES = {"float32": "F32", "uint32": "U32", "uint16": "U16", "uint8": "U8"}
MAX_HEADER = 1 << 20  # bytes
AS_LONG_AS = 4096  # so many bytes in a row take as long to read as a single entry

_HEADER_LENGTH = struct.Struct("<Q")  # the length of the header: the first 8 bytes of a file
# All types of safetensors, in the order in which arrays lie in a file; numpy sees the narrow floats as bytes.
_NUMPY = {
    name: np.dtype(numpy_type)
    for name, numpy_type in {
        "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4", "BF16": "V2", "F16": "<f2",
        "U16": "<u2", "I16": "<i2", "F8_E4M3": "V1", "F8_E5M2": "V1", "I8": "i1", "U8": "u1", "BOOL": "?",
    }.items()
}  # fmt: skip
_ORDER = {name: number for number, name in enumerate(_NUMPY)}
_MOST_ENTRIES = 1 << 48  # entries


def write_tensors(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> tuple[str, int]:
    """Write a file whose bytes depend on the arguments alone, and return its SHA-256 and its length."""
    for name, array in arrays.items():
        if array.dtype.name not in DTYPES:
            raise TypeError(f"{name} is of type {array.dtype}: a file of an index has {', '.join(DTYPES)}")
    header = _header(_described_arrays(arrays), metadata)
    if len(header) > MAX_HEADER:
        raise TypeError(f"a header of {len(header)} bytes: it has at most {MAX_HEADER}")
    return write_beside(path, _pieces(header, arrays))


@dataclass(frozen=True, slots=True)
class Tensor:
    """The place of an array in its file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int  # where its first byte stands in the file
    size: int  # number of entries


class TensorFile:
    """An open file. Opening it raises ShardDamaged or NewerFormat if it is not a file that `write_tensors` makes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        try:
            self._descriptor = open_descriptor(path)
        except OSError as error:
            if error.errno in (errno.EISDIR, errno.EINVAL):
                raise damaged(path, "is not a regular file") from None
            raise unreadable(path, error) from error
        self.stamp = stamp_of(self._descriptor)
        self.n_bytes = os.fstat(self._descriptor).st_size
        self.metadata, self.tensors = self._parse(self._read_header())

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def is_changed(self) -> bool:
        """Return True if the file was written to, replaced or removed since it was opened; this takes one stat."""
        return stamp_of(self._descriptor) != self.stamp

    def read(self, name: str, first: int, last: int) -> bytes:
        """Read entries `first` to `last` of an array, counted as if it had one axis."""
        tensor = self.tensors[name]
        size = tensor.dtype.itemsize
        return self._pread((last - first) * size, tensor.offset + first * size)

    def run(self, name: str, first: int, last: int) -> Array:
        """Read rows `first` to before `last` of an array along its first axis."""
        tensor = self.tensors[name]
        row = math.prod(tensor.shape[1:])
        data = self.read(name, first * row, last * row)
        return np.frombuffer(data, tensor.dtype).reshape(last - first, *tensor.shape[1:])

    def array(self, name: str) -> Array:
        """Read a whole array."""
        tensor = self.tensors[name]
        return np.frombuffer(self.read(name, 0, tensor.size), tensor.dtype).reshape(tensor.shape)

    def block(self, name: str, *at: int) -> Array:
        """Read the part of an array at this position of its first axes."""
        tensor = self.tensors[name]
        first = 0
        for number, length in zip(at, tensor.shape, strict=False):
            first = first * length + number
        shape = tensor.shape[len(at) :]
        size = math.prod(shape)
        return np.frombuffer(self.read(name, first * size, (first + 1) * size), tensor.dtype).reshape(shape)

    def rows(self, name: str, starts: Array, width: int) -> Array:
        """Read `width` entries from each of `starts` on, (n, width); `starts` count through all axes and are not
        checked."""
        tensor = self.tensors[name]
        size = tensor.dtype.itemsize
        first, last = (int(starts.min()), int(starts.max()) + width) if len(starts) else (0, 0)
        if len(starts) * AS_LONG_AS >= (last - first) * size:  # they lie close together
            flat = np.frombuffer(self.read(name, first, last), tensor.dtype)
            rows: Array = flat[(starts - first)[:, None] + np.arange(width)]
            return rows
        pread, descriptor, n_bytes = os.pread, self._descriptor, width * size
        try:
            data = b"".join([pread(descriptor, n_bytes, at) for at in (tensor.offset + starts * size).tolist()])
        except OSError as error:
            raise unreadable(self.path, error) from error
        if len(data) != n_bytes * len(starts):
            raise self._cut_short()
        return np.frombuffer(data, tensor.dtype).reshape(len(starts), width)

    def _pread(self, n_bytes: int, offset: int) -> bytes:
        try:
            data = os.pread(self._descriptor, n_bytes, offset)
            while len(data) < n_bytes:  # one read returns at most 2 GB
                if not (more := os.pread(self._descriptor, n_bytes - len(data), offset + len(data))):
                    raise self._cut_short()
                data += more
        except OSError as error:
            raise unreadable(self.path, error) from error
        return data

    def _cut_short(self) -> ShardDamaged:
        return damaged(self.path, "was cut short while it was read")

    def _read_header(self) -> bytes:
        if self.n_bytes < _HEADER_LENGTH.size:
            raise damaged(self.path, "is cut short")
        (length,) = _HEADER_LENGTH.unpack(self._pread(_HEADER_LENGTH.size, 0))
        if length > MAX_HEADER:
            raise damaged(self.path, f"is damaged: it claims a header of {length} bytes")
        if _HEADER_LENGTH.size + length > self.n_bytes:
            raise damaged(self.path, "is cut short")
        return self._pread(length, _HEADER_LENGTH.size)

    def _parse(self, header: bytes) -> tuple[Mapping[str, str], Mapping[str, Tensor]]:
        """Parse a header, which must equal, byte for byte, the one that is written for the arrays it describes: then
        nothing overlaps, nothing is left out, and no name is there twice."""
        try:
            content = strict_json(header)
            metadata = _metadata(content)
            self._check_format(metadata.get("format", ""))
            described = _described(content)
        except ValueError as error:
            raise damaged(self.path, f"is damaged: its header cannot be read, {error}") from None
        if header != _header(described, metadata):
            raise damaged(self.path, "is damaged: its header is not one that Lexiscope writes")
        tensors: dict[str, Tensor] = {}
        end = _HEADER_LENGTH.size + len(header)
        for name in _in_order(described):
            dtype, shape = described[name]
            tensors[name] = Tensor(_NUMPY[dtype], tuple(shape), end, math.prod(shape))
            end += tensors[name].size * _NUMPY[dtype].itemsize
        if end != self.n_bytes:
            what = "cut short" if self.n_bytes < end else "too long"
            raise damaged(self.path, f"is {what}: {self.n_bytes} bytes instead of {end}")
        return metadata, tensors

    def _check_format(self, version: str) -> None:
        if version.isdecimal() and len(version) < 10 and int(version) > FORMAT:
            raise NewerFormat(
                f"{self.path} has format {version}; this Lexiscope reads format {FORMAT}. Upgrade lexiscope, or delete "
                f"the file and run `{rebuild_command_for(self.path.parent)}` again"
            )


def _metadata(content: Any) -> dict[str, str]:
    """Take the metadata out of the parsed content of a header; raise ValueError if it has none."""
    metadata = content.pop("__metadata__", None) if isinstance(content, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("it is not a description of arrays")
    return metadata


def _described(content: dict[str, Any]) -> dict[str, tuple[str, list[int]]]:
    """Return the arrays that a header describes; raise ValueError if it describes something else."""
    described: dict[str, tuple[str, list[int]]] = {}
    for name, entry in content.items():
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": list()} if dtype in _NUMPY:
                described[name] = dtype, shape
            case _:
                raise ValueError(f"it does not describe the array {name[:40]!a} by a known type, shape and offsets")
        if len(shape) > 8 or any(type(length) is not int or length < 0 for length in shape):
            raise ValueError(f"array {name[:40]!a} has no shape")
        if math.prod(max(1, length) for length in shape) > _MOST_ENTRIES:
            raise ValueError(f"array {name[:40]!a} is too large")
    return described


def _header(described: Described, metadata: Mapping[str, str]) -> bytes:
    """Return the header of a file with these arrays; equal arrays and metadata always give equal bytes."""
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    for name in _in_order(described):
        dtype, shape = described[name]
        start, end = end, end + math.prod(shape) * _NUMPY[dtype].itemsize
        entries[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode("ascii")
    return text + b" " * (-len(text) % 8)


def _in_order(described: Described) -> list[str]:
    """Return the names of arrays in the order of the safetensors library: by type, wide types first, so that all arrays
    are aligned; then by name."""
    return sorted(described, key=lambda name: (_ORDER[described[name][0]], name))


def _described_arrays(arrays: Mapping[str, Array]) -> Described:
    return {name: (DTYPES[array.dtype.name], array.shape) for name, array in arrays.items()}


def _pieces(header: bytes, arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    yield _HEADER_LENGTH.pack(len(header))
    yield header
    for name in _in_order(_described_arrays(arrays)):
        little_endian = np.asarray(arrays[name], _NUMPY[DTYPES[arrays[name].dtype.name]], order="C")
        yield little_endian.reshape(-1).view(np.uint8).data
