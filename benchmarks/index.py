"""Opening an index, and reading one list from it, in milliseconds of Python."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, seconds
from lexiscope.precompute.index.index import Index


def figures(index_folder: Path, scratch: Path) -> Iterator[Figure]:
    """Read a copy whose pages are dropped from the cache before each reading."""
    copy = scratch / index_folder.name
    shutil.copytree(index_folder, copy)
    opened = Index.open(copy)
    yield Figure(f"Index.open, {len(opened.layers)} layers", 1000 * seconds(lambda: Index.open(copy), 5), 50, unit="ms")
    kind, layer = opened.shape.kinds[0], opened.layers[0]
    opened.shard(layer).vector(kind, 0, "dot")  # imports and caches of Python itself
    times = []
    for number in range(1, 21):
        drop_from_cache(copy)
        shard = Index.open(copy).shard(layer)
        times.append(seconds(lambda number=number, shard=shard: shard.vector(kind, number, "dot")))  # type: ignore[misc]
    yield Figure("one list from a cold file, median of 20", 1000 * sorted(times)[10], 1, unit="ms")
    shutil.rmtree(copy)


def drop_from_cache(folder: Path) -> None:
    """Ask the system to forget the files' pages, which not every file system does."""
    import os

    for path in folder.iterdir():
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
