"""What the directions of heads add to the build of a layer of the demo, in processor seconds.

Their lists by themselves, against the layer as it is built without them; kernels are compiled before.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.figures import Figure
from lexiscope.precompute.build.layer import BuildContext, make_layer
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.shape import DIRECTION_KINDS, LENSES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.sources import resolve

LAYER, COMPILED_ON = 15, 14  # of the demo
BOUND = 0.15


def figures(data: Path) -> Iterator[Figure]:
    checkpoint = resolve("demo", cache=data / ".cache")
    model = describe(checkpoint)
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    without = Stored(model.shape, model.shape.weight_kinds, LENSES, k=100, pairs=500)
    alone = replace(without, kinds=DIRECTION_KINDS, pairs=0)
    cpu = torch.device("cpu")

    def build(stored: Stored, pool: Executor, layer: int) -> Callable[[], object]:
        context = BuildContext.of(model, tokens, stored, cpu, pool)
        return lambda: make_layer(context, layer)

    with compute_threads(cpu, 2) as pool:
        build(replace(without, kinds=("w_q",), pairs=1), pool, COMPILED_ON)()
        added = processor_seconds(build(alone, pool, LAYER))
        whole = processor_seconds(build(without, pool, LAYER))
    yield Figure("directions: what they add to the build of a demo layer", added / whole, BOUND)
    yield Figure("directions of a demo layer, processor time", added, unit="s")


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
