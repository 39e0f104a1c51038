"""A build by `--ray local` on this machine against a plain one, both as commands in processes of their own: start of
Ray and of its worker processes, and the way of weights and lists through its object store, are in the figure."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.build import run_command
from benchmarks.figures import Figure
from benchmarks.models import random_gpt2

LAYERS = 2
ROUNDS = 2


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    """Build layers of GPT-2 small's size without pairs, and the nearest tokens, in turn; the shortest runs count."""
    checkpoint = random_gpt2(scratch / "ray-small", "small", LAYERS, tokenizer)
    words = ("precompute", str(checkpoint.folder), "--pairs", "0", "--data")
    plain, on_ray = [], []
    for at in range(ROUNDS):
        folders = scratch / f"plain-{at}", scratch / f"ray-{at}"
        plain.append(run_command(*words, str(folders[0])))
        on_ray.append(run_command(*words, str(folders[1]), "--ray", "local"))
        _check_same(*(folder / checkpoint.folder.name for folder in folders))
    (seconds, _), (ray_seconds, peak) = min(plain), min(on_ray)
    what = f"build by --ray local, {LAYERS} layers of GPT-2 small, no pairs"
    yield Figure(f"{what}, against a plain one", ray_seconds / seconds, 1.15)
    yield Figure("the plain one", seconds, unit="s")
    yield Figure("peak memory of the process that gives out the tasks", peak / 2**30, unit="GiB")


def _check_same(index: Path, other: Path) -> None:
    names = sorted(path.name for path in index.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    assert all((index / name).read_bytes() == (other / name).read_bytes() for name in names)
