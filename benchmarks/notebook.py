"""A hundred thousand list entries of an index of GPT-2 small's size into a frame: how long it takes."""

from collections.abc import Iterator
from pathlib import Path

import lexiscope
from benchmarks.figures import Figure, seconds
from benchmarks.models import SIZES
from benchmarks.random_index import gpt2_shape, write_random_index

ENTRIES = 100_000
LAYERS, K = (10, 11), 9  # of 3,072 neurons with two ends each: 110,592 entries
REPEATS = 7


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    """Take the shortest of some runs, in which libraries are loaded and files are in memory."""
    folder = write_random_index(scratch, "random-small", gpt2_shape(*SIZES["small"]), tokenizer, layers=len(LAYERS))
    model = lexiscope.open(folder)
    neurons = model.neurons(LAYERS, kinds=["ff_value"], lens="cosine", k=K)
    pairs = model.pairs("vo", LAYERS, lens="both")
    for what, lists in (("neurons", neurons), ("pairs", pairs)):
        for library, make in (("pandas", lists.to_pandas), ("polars", lists.to_polars)):
            entries = len(make())
            milliseconds = 1000 * seconds(make, REPEATS)
            assert entries >= ENTRIES
            yield Figure(f"{entries:,} entries of {what} into a frame of {library}", milliseconds, 100, unit="ms")
