"""The whole job at GPT-2's sizes with random weights: against the sum of its kernels, with numbers about lists against
lists alone, and its peak memory.

A layer is the same work as any other, so a few layers are built and stand for all.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from itertools import pairwise
from pathlib import Path

import torch

from benchmarks.figures import Figure, seconds
from benchmarks.models import SIZES, random_gpt2
from lexiscope.precompute.build.head_factors import HeadFactors, head_matrix
from lexiscope.precompute.build.layer import BuildContext
from lexiscope.precompute.build.pieces import Task, make_task
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.project.nearest_tokens import nearest_tokens
from lexiscope.precompute.project.pairs.head_pairs import top_pairs
from lexiscope.precompute.shape import LENSES, MATRICES, SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint

GIB = 2**30
LAYERS = 2


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    small = random_gpt2(scratch / "small", "small", LAYERS, tokenizer)
    whole, peak = run_build(small, scratch / "small-data")
    ratio = whole / kernels(small)
    yield Figure(f"whole build, {LAYERS} layers of GPT-2 small, against the sum of its kernels", ratio, 1.2)
    yield Figure("peak memory of that build", peak / GIB, 3.0, unit="GiB")
    one = random_gpt2(scratch / "one", "small", 1, tokenizer)
    name = "build with stats and lines of chance / without, processor's time"
    yield Figure(f"{name}, GPT-2 small", with_stats(one, pairs=500), 1.1)
    yield Figure(f"{name}, --pairs 0", with_stats(one, pairs=0))
    large = random_gpt2(scratch / "large", "large", 1, tokenizer)
    _, peak = run_build(large, scratch / "large-data")
    yield Figure("peak memory of the build of a layer of GPT-2 large", peak / GIB, 8.0, unit="GiB")


def kernels(checkpoint: Checkpoint) -> float:
    """Return the seconds of the products, lists and searches of all layers (measured on one), of the nearest tokens,
    and of the lines of chance."""
    model = describe(checkpoint)
    cpu = torch.device("cpu")
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    stored = Stored(model.shape, model.shape.kinds, LENSES, k=100, pairs=500)
    with compute_threads(cpu, 2) as pool:
        context = BuildContext.of(model, tokens, stored, cpu, pool)
        vectors = {kind: model.vectors(0, kind) for kind in model.shape.kinds}
        for kind, V in vectors.items():  # compiles, too
            context.projectors[SIDES[kind]].lists(V[:8], pool)

        def lists() -> None:
            for kind, V in vectors.items():
                context.projectors[SIDES[kind]].lists(V, pool)

        factors = HeadFactors.read(model, 0)
        embedding = context.projectors["reads"].embedding

        def pairs() -> None:
            jobs = [
                pool.submit(top_pairs, head_matrix(factors, name, head, embedding, embedding), context.masks, lens, 500)
                for name in MATRICES
                for head in range(model.shape.n_heads)
                for lens in LENSES
            ]
            for job in jobs:
                job.result()

        layer = seconds(lists) + seconds(pairs)
        of_model = seconds(lambda: nearest_tokens(context.projectors["reads"].embedding, pool))
        return LAYERS * layer + of_model + seconds(lambda: make_task(context, (Piece("chance"),)))


def with_stats(checkpoint: Checkpoint, pairs: int) -> float:
    """Return how many times as long the parts of a layer take with `stats`, and with a layer's share of `chance`, as
    its lists alone, in seconds of the processor: the median of three rounds."""
    cpu = torch.device("cpu")
    shape = describe(checkpoint).shape
    stored = Stored(shape, shape.kinds, LENSES, k=100, pairs=pairs)
    tokens = token_bytes(checkpoint.tokenizer_file(), shape.d_vocab)
    lists, stats, chance = Piece("lists", 0), Piece("stats", 0), Piece("chance")

    def measure(pool: Executor, *tasks: Task) -> list[float]:
        context = BuildContext.of(describe(checkpoint), tokens, stored, cpu, pool)  # anew: it keeps directions of heads
        times = [time.process_time()]
        if chance in tasks[-1]:
            _ = context.moments["writes"].covariance_of_directions  # once for all layers
        times.append(time.process_time())
        for task in tasks:
            make_task(context, task)
            times.append(time.process_time())
        return [after - before for before, after in pairwise(times)]

    with compute_threads(cpu, 2) as pool:
        measure(pool, (lists, stats))  # compiles
        ratios = []
        for _ in range(3):
            _, alone = measure(pool, (lists,))
            once, both, lines = measure(pool, (lists, stats), (chance,))
            ratios.append((both + (once + lines) / SIZES["small"][0]) / alone)
    return sorted(ratios)[1]


def run_build(checkpoint: Checkpoint, data: Path) -> tuple[float, float]:
    """Build in another process; return its seconds and its largest resident size in bytes."""
    return run_command("precompute", str(checkpoint.folder), "--data", str(data))


def run_command(*words: str) -> tuple[float, float]:
    """Run a command in another process; return its seconds and its largest resident size in bytes."""
    code = (
        "import resource, sys; from lexiscope.app.commands.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *words]
    start = time.perf_counter()
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return time.perf_counter() - start, float(run.stdout.split()[-1])
