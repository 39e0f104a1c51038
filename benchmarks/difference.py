"""The index of a difference against that of its base: a layer's vectors, and the pairs of its heads, which have twice
the d_head. On a real fine-tune of MiniLM, and on heads of random GPT-2-sized weights.

One thread, in seconds of the processor, which other work on the machine changes little.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import product
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from benchmarks.figures import Figure
from benchmarks.models import random_gpt2
from lexiscope.precompute.build.head_factors import HeadFactors, head_matrix
from lexiscope.precompute.build.layer import BuildContext, make_layer
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.project.pairs.head_pairs import top_pairs
from lexiscope.precompute.shape import FACTORS, LENSES, MATRICES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference, Parameters
from lexiscope.precompute.weights.sources import resolve

Work = list[Callable[[], object]]

LAYERS = (2, 5)
CHANGE = 0.02  # of random weights, as a share of their size; that of the real fine-tune is about the same
PAIRS = 500


def figures(scratch: Path, data: Path, tokenizer: Path) -> Iterator[Figure]:
    from tests.support.real_models import real_model  # a model of the tests

    cpu = torch.device("cpu")
    minilm = describe(resolve("minilm", cache=data / ".cache"))
    tuned = describe(Checkpoint.open(real_model("sre", data / ".cache" / "real")))
    small = random_gpt2(scratch / "base", "small", 1, tokenizer)
    with compute_threads(cpu, 1) as pool:
        ours, plain = (_context(model, cpu, pool) for model in (Difference(tuned, minilm), minilm))
        make_layer(ours, 0)  # compiles
        ratio = _ratio(*(_layers(context) for context in (ours, plain)))
        yield Figure("vectors of a fine-tune of MiniLM minus MiniLM, against MiniLM's", ratio, 1.15)
        heads = range(minilm.shape.n_heads)
        ratio = _ratio(*(_searches(context, LAYERS, heads) for context in (ours, plain)))
        yield Figure("pairs of its heads, of two layers", ratio, 2.2)
        base, changed = describe(small), describe(_nudged(small, scratch / "tuned"))
        random = (_context(model, cpu, pool) for model in (Difference(changed, base), base))
        ratio = _ratio(*(_searches(context, [0], range(2)) for context in random))
        yield Figure("pairs of two heads of random weights of GPT-2 small's size", ratio, 2.2)


def _context(model: Parameters, device: torch.device, pool: Executor) -> BuildContext:
    difference = isinstance(model, Difference)
    stored = Stored(model.shape, model.shape.kinds, LENSES, k=100, pairs=0, difference=difference)
    tokens = token_bytes(model.tokenizer_file(), model.shape.d_vocab)
    return BuildContext.of(model, tokens, stored, device, pool)


def _layers(context: BuildContext) -> Work:
    return [partial(make_layer, context, layer) for layer in LAYERS]


def _searches(context: BuildContext, layers: Iterable[int], heads: Iterable[int]) -> Work:
    def search(factors: HeadFactors, name: str, head: int, lens: str) -> None:
        source, target = (context.embedding(kind) for kind in FACTORS[name])
        top_pairs(head_matrix(factors, name, head, source, target), context.masks, lens, PAIRS)

    factors = [HeadFactors.read(context.model, layer) for layer in layers]
    return [partial(search, *which) for which in product(factors, MATRICES, heads, LENSES)]


def _ratio(ours: Work, plain: Work) -> float:
    """Return the ratio of the sums of their times. Pieces run in turn, after one of each to warm up."""
    totals = [0.0, 0.0]
    for warm_up in (ours[0], plain[0]):
        warm_up()
    for pieces in zip(ours, plain, strict=True):
        for side, piece in enumerate(pieces):
            start = time.process_time()
            piece()
            totals[side] += time.process_time() - start
    return totals[0] / totals[1]


def _nudged(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """Return a copy with a little noise on every matrix of its layers."""
    generator = torch.Generator().manual_seed(1)
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((checkpoint.folder / name).read_bytes())
    tensors = load_file(checkpoint.folder / "model.safetensors")
    for name, tensor in tensors.items():
        if name.startswith("h.") and tensor.ndim == 2:
            tensors[name] = tensor + CHANGE * tensor.std() * torch.randn(tensor.shape, generator=generator)
    save_file(tensors, folder / "model.safetensors")
    return Checkpoint.open(folder)
