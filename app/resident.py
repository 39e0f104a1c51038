"""Mapped files count as a process's memory once they were read, though the system could take them back at any time:
lets go of them before they are many. Which files are mapped is for live_index.py."""

import mmap
from collections.abc import Iterable
from pathlib import Path

from precompute.shard_reader import Shard

LIMIT = 48 << 20  # bytes of mapped files that may stay
USES = 128  # of layers between two looks: a use maps less than a megabyte

_STATM = Path("/proc/self/statm")


def shared_bytes() -> int:
    """How much of this process's memory is files; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[2]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0


def let_go(shards: Iterable[Shard]) -> None:
    """Their pages stay in the system's cache: reading them again costs a fault, not a disk access."""
    for shard in shards:
        mapped = _map_of(shard)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


def _map_of(shard: Shard) -> mmap.mmap | None:
    below: object = shard.array("ff_key.ids")
    while below is not None and not isinstance(below, mmap.mmap):
        below = below.obj if isinstance(below, memoryview) else getattr(below, "base", None)
    return below
