"""The whole job at GPT-2's sizes with random weights: against the sum of its kernels, and its peak memory.

A layer is the same work as any other, so one layer is built and stands for all.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.figures import Figure, seconds
from benchmarks.models import random_gpt2
from precompute import shard
from precompute.architectures import describe
from precompute.build import compute_threads
from precompute.checkpoint import Checkpoint
from precompute.pairs import top_pairs
from precompute.shape import LENSES, MATRICES, SIDES
from precompute.tokens import token_bytes

GIB = 2**30


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    small = random_gpt2(scratch / "small", "small", 1, tokenizer)
    yield Figure(
        "whole build of a GPT-2 small layer, against the sum of its kernels", whole_against_kernels(small, scratch), 1.2
    )
    for size, bound in (("small", 3.0), ("large", 8.0)):
        checkpoint = random_gpt2(scratch / size, size, 1, tokenizer)
        peak = peak_memory(checkpoint, scratch / f"{size}-data")
        yield Figure(
            f"peak memory of the build, GPT-2 {size} (one layer, k=100, pairs=500)", peak / GIB, bound, unit="GiB"
        )


def whole_against_kernels(checkpoint: Checkpoint, scratch: Path) -> float:
    start = time.perf_counter()
    run_build(checkpoint, scratch / "whole")
    whole = time.perf_counter() - start
    model = describe(checkpoint)
    cpu = torch.device("cpu")
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    with compute_threads(cpu, 2) as pool:
        bench = shard.Workbench.of(model, tokens, 100, 500, cpu, pool)
        vectors = {kind: model.vectors(0, kind) for kind in model.shape.kinds}
        products = {
            kind: torch.empty(len(V), model.shape.d_vocab) for kind, V in vectors.items() if kind.startswith("w_")
        }
        for kind, V in vectors.items():  # compiles, too
            bench.projectors[SIDES[kind]].lists(V[:8], None, pool)

        def lists() -> None:
            for kind, V in vectors.items():
                bench.projectors[SIDES[kind]].lists(V, products.get(kind), pool)

        def pairs() -> None:
            jobs = [
                pool.submit(top_pairs, shard._matrix(bench, name, head, vectors, products), bench.masks, lens, 500)
                for name in MATRICES
                for head in range(model.shape.n_heads)
                for lens in LENSES
            ]
            for job in jobs:
                job.result()

        kernels = seconds(lists) + seconds(pairs)
    return whole / kernels


def run_build(checkpoint: Checkpoint, data: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "precompute", str(checkpoint.folder), "--data", str(data), "--force"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def peak_memory(checkpoint: Checkpoint, data: Path) -> float:
    """Largest resident size of a build in a process of its own, in bytes."""
    code = (
        "import resource, sys; from app.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "precompute", str(checkpoint.folder), "--data", str(data)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(run.stdout.split()[-1])
