"""The lists of a model of GPT-2 small's size as Parquet files: how long it takes, and in how much memory."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.build import GIB, run_command
from benchmarks.figures import Figure
from benchmarks.models import SIZES
from benchmarks.random_index import gpt2_shape, write_random_index
from lexiscope.precompute.index.index import Index


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    folder = write_random_index(scratch, "random-small", gpt2_shape(*SIZES["small"]), tokenizer)
    lists = scratch / "lists"
    seconds, memory = run_command("export", folder.name, "--data", str(scratch), "-o", str(lists))
    yield Figure("export of GPT-2 small's size to Parquet", seconds, 60, unit="s")
    yield Figure("peak memory of that export", memory / GIB, 2.0, unit="GiB")
    size = sum(path.stat().st_size for path in lists.iterdir())
    yield Figure("the files against the index", size / Index.open(folder).n_bytes)
