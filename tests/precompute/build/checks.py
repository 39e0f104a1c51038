"""What is wrong with a finished index, by its sums and by brute force."""

from pathlib import Path

from precompute.index.index import Index
from precompute.verify.sample import check_sample
from precompute.verify.sums import check_sums
from precompute.weights.architectures import describe
from precompute.weights.checkpoint import Checkpoint


def problems(index: Path, source: Path, sample: int = 100) -> list[str]:
    opened, model = Index.open(index), describe(Checkpoint.open(source))
    results = [*check_sums(opened), *check_sample(opened, model, sample, seed=0, rows=1000)]
    return [f"{name}: {fault}" for name, fault in results if fault]
