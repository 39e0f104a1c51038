"""A build by `--ray local` on this machine against a plain one, both as commands in processes of their own: start of
Ray and of its worker processes, and the way of weights and lists through its object store, are in the figure."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.build import run_command
from benchmarks.figures import Figure
from benchmarks.models import random_gpt2

LAYERS = 3
ROUNDS = 2


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    """Layers of GPT-2 small's size without pairs, and the nearest tokens; one after the other, in turns."""
    checkpoint = random_gpt2(scratch / "ray-small", "small", LAYERS, tokenizer)
    here, on_ray, peaks = [], [], []
    for at in range(ROUNDS):
        words = ("precompute", str(checkpoint.folder), "--pairs", "0", "--data")
        seconds, _ = run_command(*words, str(scratch / f"here-{at}"))
        here.append(seconds)
        seconds, peak = run_command(*words, str(scratch / f"ray-{at}"), "--ray", "local")
        on_ray.append(seconds)
        peaks.append(peak)
        _check_same(scratch / f"here-{at}" / checkpoint.folder.name, scratch / f"ray-{at}" / checkpoint.folder.name)
    yield Figure(f"build by --ray local, {LAYERS} layers of GPT-2 small, no pairs, against a plain one",
                 min(on_ray) / min(here), 1.15)  # fmt: skip
    yield Figure("the plain one", min(here), unit="s")
    yield Figure("peak memory of the process that gives out the tasks", max(peaks) / 2**30, unit="GiB")


def _check_same(index: Path, other: Path) -> None:
    names = sorted(path.name for path in index.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    assert all((index / name).read_bytes() == (other / name).read_bytes() for name in names)
