"""One file of named, memory-mapped, little-endian arrays (FORMAT.md): written whole, opened with every claim checked.
What the arrays mean is for layout.py and shard_reader.py."""

import hashlib
import math
import mmap
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precompute.errors import NewerFormat
from precompute.files import canonical_json, damaged, strict_json, unreadable, write_beside
from precompute.rebuild_command import command_for

MAGIC = b"lexiscope shard\n"
VERSION = 1
ALIGNMENT = 64
DTYPES = {"uint8": "|u1", "uint16": "<u2", "uint32": "<u4", "int32": "<i4", "float32": "<f4"}
MAX_HEADER = 1 << 20
PREAMBLE = struct.Struct("<16sIIQ32s")  # magic, version, header length, file length, SHA-256 of the header: 64 bytes

_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
_MAX_DIMENSIONS = 8

About: TypeAlias = dict[str, str | int]


def write_container(path: Path, arrays: Mapping[str, NDArray[Any]], about: About) -> tuple[str, int]:
    """Write arrays, in the order of their names whatever the mapping's: the SHA-256 and the length of the file."""
    entries: dict[str, dict[str, Any]] = {}
    end = 0
    for name, array in sorted(arrays.items()):
        if array.dtype.name not in DTYPES or not _NAME.fullmatch(name) or array.ndim > _MAX_DIMENSIONS:
            raise TypeError(f"{name!r} of dtype {array.dtype} and {array.ndim} dimensions has no place in a container")
        offset = _aligned(end)
        entries[name] = {"dtype": array.dtype.name, "offset": offset, "shape": list(array.shape)}
        end = offset + array.nbytes
    header = canonical_json({"about": about, "arrays": entries})
    header += b" " * (_aligned(len(header)) - len(header))
    if len(header) > MAX_HEADER:
        raise TypeError(f"a header of {len(header)} bytes: a container describes at most {MAX_HEADER}")
    n_bytes = PREAMBLE.size + len(header) + end
    preamble = PREAMBLE.pack(MAGIC, VERSION, len(header), n_bytes, hashlib.sha256(header).digest())
    return write_beside(path, _pieces(preamble + header, arrays, entries))


@dataclass(frozen=True, eq=False)
class Container:
    path: Path
    about: Mapping[str, str | int]
    arrays: Mapping[str, NDArray[Any]]  # read-only views of the mapped file
    n_bytes: int

    @classmethod
    def open(cls, path: Path) -> Self:
        """Map a container; what is not exactly one is a ShardDamaged or a NewerFormat that names the file."""
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise damaged(path, "is not a regular file")
            with path.open("rb") as file:
                preamble = file.read(PREAMBLE.size)
                header_length = _check_preamble(path, preamble, status.st_size)
                header = file.read(header_length)
                about, entries = _parse_header(header, preamble)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            views = dict(_views(mapped, entries, start=PREAMBLE.size + header_length))
        except OSError as error:
            raise unreadable(path, error) from error
        except (ValueError, OverflowError) as error:
            raise damaged(path, f"is damaged: {error}") from None
        return cls(path, about, views, status.st_size)


def _check_preamble(path: Path, preamble: bytes, size: int) -> int:
    """The header's length, once the fixed part of the file holds."""
    if not preamble.startswith(MAGIC):
        raise damaged(path, "is not a Lexiscope shard" if len(preamble) >= len(MAGIC) else "is cut short")
    if len(preamble) < PREAMBLE.size:
        raise damaged(path, "is cut short")
    _, version, header_length, n_bytes, _ = PREAMBLE.unpack(preamble)
    if version > VERSION:
        raise NewerFormat(
            f"{path} has format version {version}; this Lexiscope reads versions up to {VERSION}. Upgrade lexiscope, "
            f"or delete the file and run `{command_for(path.parent)}` again"
        )
    if version < 1:
        raise damaged(path, f"is damaged: there is no format version {version}")
    if size != n_bytes:
        raise damaged(path, f"is {'cut short' if size < n_bytes else 'too long'}: {size} bytes instead of {n_bytes}")
    if header_length > min(MAX_HEADER, size - PREAMBLE.size) or header_length % ALIGNMENT:
        raise damaged(path, f"is damaged: it claims a header of {header_length} bytes")
    return int(header_length)


def _parse_header(header: bytes, preamble: bytes) -> tuple[About, dict[str, Any]]:
    if hashlib.sha256(header).digest() != preamble[-32:]:
        raise ValueError("its header does not have the checksum it claims")
    try:
        content = strict_json(header)
    except ValueError as error:
        raise ValueError(f"its header cannot be read, {error}") from None
    match content:
        case {"about": dict(about), "arrays": dict(entries), **rest} if not rest:
            if all(type(value) in (str, int) for value in about.values()):
                return about, entries
    raise ValueError("its header is not a description of arrays")


def _views(mapped: mmap.mmap, entries: dict[str, Any], start: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each array where the last one ended, the last one to the end of the file: no gaps, no overlaps, no leftovers."""
    end = 0
    for name, entry in entries.items():
        match entry:
            case {"dtype": str(dtype), "offset": int(offset), "shape": list(shape), **rest} if not rest:
                pass
            case _:
                raise ValueError(f"array {name!a} is not described by dtype, offset and shape")
        if not _NAME.fullmatch(name) or dtype not in DTYPES:
            raise ValueError(f"it holds an array {name!a} of type {dtype!a}")
        if len(shape) > _MAX_DIMENSIONS or any(type(size) is not int or size < 0 for size in shape):
            raise ValueError(f"array {name} has the shape {shape!a}")
        count = math.prod(shape)
        n_bytes = count * np.dtype(DTYPES[dtype]).itemsize
        if type(offset) is not int or offset != _aligned(end) or start + offset + n_bytes > len(mapped):
            raise ValueError(f"array {name} claims bytes that are not its own")
        end = offset + n_bytes
        view = np.frombuffer(mapped, DTYPES[dtype], count, start + offset) if count else np.empty(0, DTYPES[dtype])
        view = view.reshape(shape)
        view.flags.writeable = False
        yield name, view
    if start + end != len(mapped):
        raise ValueError("it goes on after its last array")


def _pieces(front: bytes, arrays: Mapping[str, NDArray[Any]], entries: dict[str, Any]) -> Iterator[bytes | memoryview]:
    yield front
    end = 0
    for name, entry in entries.items():
        yield bytes(entry["offset"] - end)
        array = np.asarray(arrays[name], DTYPES[entry["dtype"]], order="C")
        yield array.reshape(-1).view(np.uint8).data
        end = entry["offset"] + array.nbytes


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT
