"""Scale on paper: hours and gigabytes of large models on machines that are not here, from parts measured on this one.

Measured at the model's own sizes, on one thread, with random numbers: a vector's lists and their coherence; what of
them stays on the CPU when a GPU multiplies (exact scores of candidates, coherence); what one thread does of a layer
whatever the machine has (directions, similarities, inversion). Measured on the demo's heads: a search, and its exact
scores, which stay on the CPU, too.

Extrapolated: a search to another size by d_vocab² d_head (what a plain product costs), its exact scores by
d_model d_head; cores by their number, as if they did not share memory; GPUs by their rates alone, nothing was run on
one. What a machine loads, fetches and writes is left out.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from benchmarks.models import demo
from benchmarks.pairs import OTHERS, SAMPLE, matrix_at
from lexiscope.precompute.build.estimate import Work
from lexiscope.precompute.build.inverted import invert_lists
from lexiscope.precompute.build.layer import Costs, similarity_arrays
from lexiscope.precompute.build.progress import duration
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.project import exact, vector_kernel
from lexiscope.precompute.project.coherence import Directions, coherence
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.pairs.head_pairs import top_pairs
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.project.vectors import MARGIN, Projector
from lexiscope.precompute.shape import LENSES, Shape
from lexiscope.precompute.weights.directions import find_directions

# layers, heads, heads of keys and values, d_model, d_head, d_mlp, d_vocab, gated, tied, positions
MODELS = {
    "GPT-2 XL": Shape("gpt2", 48, 25, 25, 1600, 64, 6400, 50_257, False, True, "learned"),
    "Pythia-6.9B": Shape("gpt_neox", 32, 32, 32, 4096, 128, 16_384, 50_432, False, False, "rotary"),
    "Llama-3-8B": Shape("llama", 32, 32, 8, 4096, 128, 14_336, 128_256, True, False, "rotary"),
}
K, PAIRS = 100, 500
CORES, GPUS, TASKS_PER_GPU = 64, 8, 4
# An A100: 19.5 TFLOPS in float32 (TF32 is off: products must be float32), 2 TB/s; of both this share is assumed.
GPU_FLOPS, GPU_BYTES, GPU_SHARE = 19.5e12, 2.0e12, 0.6
VECTOR_PASSES = 12  # over a product, 4 bytes each: the second lens, four top-k
PAIR_BYTES = 24  # per score of a tile: written, compared with two floors, with the surfaces, counted
WORDS_SHARE = 0.39  # of d_vocab², searched by itself for the preset `words`; as in the demo
VECTORS, HEADS = 64, 4


@dataclass(frozen=True)
class Parts:
    """Processor seconds on one thread of this machine."""

    vector: float
    vector_beside_gpu: float
    layer: float  # what one thread does of a layer
    searches: dict[str, float]  # by lens
    search_beside_gpu: dict[str, float]


def lines(data: Path) -> Iterator[str]:
    with compute_threads(torch.device("cpu"), 1):
        shape, searches, scores = measure_searches(data)
        yield (
            f"measured on the demo (d_vocab {shape.d_vocab}, d_head {shape.d_head}), seconds per search: "
            + ", ".join(f"{lens} {searches[lens]:.2f}, of it exact scores {scores[lens]:.3f}" for lens in LENSES)
        )
        for name, model in MODELS.items():
            size = model.d_vocab**2 * model.d_head / (shape.d_vocab**2 * shape.d_head)
            width = model.d_model * model.d_head / (shape.d_model * shape.d_head)
            parts = Parts(
                *measure_vectors(model),
                measure_layer(model),
                {lens: each * size for lens, each in searches.items()},
                {lens: each * width for lens, each in scores.items()},
            )
            yield (
                f"{name}, seconds on one thread: a vector {parts.vector:.5f}, beside a GPU "
                f"{parts.vector_beside_gpu:.5f}; a layer {parts.layer:.1f}; a search {_by_lens(parts.searches)}, "
                f"beside a GPU {_by_lens(parts.search_beside_gpu)}"
            )
            for pairs in (PAIRS, 0):
                yield row(name, model, parts, pairs)


def row(name: str, shape: Shape, parts: Parts, pairs: int) -> str:
    """Return a row: | model | index | 1 GPU | 8 GPUs | 8 GPUs, 4 tasks on each | 64 cores |."""
    work = Work(Stored(shape, shape.kinds, LENSES, K, pairs), shape.n_layers, neighbours=True, workers=1)
    product = 2 * shape.d_model * shape.d_vocab / GPU_FLOPS + VECTOR_PASSES * 4 * shape.d_vocab / GPU_BYTES
    scores = (1 + WORDS_SHARE) * shape.d_vocab**2  # of a search, in tiles
    tiles = scores * (2 * shape.d_head / GPU_FLOPS + PAIR_BYTES / GPU_BYTES)
    gpu = work.seconds(Costs(product / GPU_SHARE, dict.fromkeys(LENSES, tiles / GPU_SHARE)))
    one_thread = shape.n_layers * parts.layer
    beside = work.seconds(Costs(parts.vector_beside_gpu, parts.search_beside_gpu)) + one_thread
    shared = max(gpu, (gpu + beside) / TASKS_PER_GPU)
    cores = work.seconds(Costs(parts.vector, parts.searches)) / CORES + one_thread
    times = (gpu + beside, (gpu + beside) / GPUS, shared / GPUS, cores)
    cells = (f"{name}{'' if pairs else ', no pairs'}", file_size(work.n_bytes()), *map(duration, times))
    return f"| {' | '.join(cells)} |"


def measure_vectors(shape: Shape) -> tuple[float, float]:
    """Return the seconds of a vector's lists, and of the part that a GPU does not do."""
    W, V = _normal(shape.d_vocab, shape.d_model), _normal(VECTORS, shape.d_model)
    projector = Projector(Embedding.of(W, torch.device("cpu")), K)
    ids, scores = np.empty((VECTORS, 2, 2, K), np.uint32), np.empty((VECTORS, 2, 2, K), np.float32)
    candidates = np.random.default_rng(0).integers(0, shape.d_vocab, (VECTORS, 2, 2, K + MARGIN), np.int32)
    vectors = V.numpy()

    directions, no_hubs = Directions.of(projector.embedding), np.zeros(shape.d_vocab, np.bool_)

    def coherences() -> None:
        for lens, end in np.ndindex(2, 2):
            coherence(candidates[:, lens, end, :K], no_hubs, directions)

    def beside_gpu() -> None:
        coherences()
        projector.vector_errors(vectors)
        dots = projector.mean_dots(vectors)
        vector_kernel.rank(candidates, vectors, dots, projector.embedding.rows, projector.inverse_norm, ids, scores)

    def whole() -> None:
        coherences()
        projector.select(V, V @ W.T, ids, scores)

    return _warm(whole) / VECTORS, _warm(beside_gpu) / VECTORS


def measure_layer(shape: Shape) -> float:
    """Return the seconds of a layer that one thread works on any machine; a few directions of heads stand for all."""
    generator = np.random.default_rng(0)
    stored = Stored(shape, shape.kinds, LENSES, K, 0)
    ids = {kind: generator.integers(0, shape.d_vocab, (shape.count(kind), 2, 2, K), np.uint32) for kind in shape.kinds}
    inverted = seconds(lambda: invert_lists([*ids.values()], shape.d_vocab))
    similar = seconds(lambda: similarity_arrays(stored, ids))
    heads = [(_normal(shape.d_model, shape.d_head).double(), _normal(shape.d_model, shape.d_head).double())] * HEADS
    few = _normal(1024, shape.d_model)  # signs are counted with the vectors
    directions = _warm(lambda: find_directions(heads, few, shape.d_head)) / HEADS
    return inverted + similar + 2 * shape.n_heads * directions


def measure_searches(data: Path) -> tuple[Shape, dict[str, float], dict[str, float]]:
    """Return by lens the mean seconds of the demo's sampled heads, and how many of them exact scores take."""
    model = demo(data)
    embedding = Embedding.of(model.W_E, torch.device("cpu"))
    tokens = token_bytes(model.tokenizer_file(), model.shape.d_vocab)
    masks = Masks.of(distinct_classes(tokens), whole_words(tokens))
    whole: dict[str, float] = {}
    scored: dict[str, float] = {}
    for lens, sample in (("dot", SAMPLE[::2]), ("cosine", SAMPLE[::4])):
        top_pairs(matrix_at(model, embedding, *OTHERS[0]), masks, lens, PAIRS)  # compiles
        times = []
        with _timed(exact, "pair_scores") as spent:
            for name in sample:
                matrix = matrix_at(model, embedding, *name)
                times.append(seconds(lambda matrix=matrix, lens=lens: top_pairs(matrix, masks, lens, PAIRS)))  # type: ignore[misc]
        whole[lens], scored[lens] = mean(times), sum(spent) / len(sample)
    return model.shape, whole, scored


@contextmanager
def _timed(module: Any, name: str) -> Iterator[list[float]]:
    """Collect the seconds of every call of a function of a module."""
    function, spent = getattr(module, name), list[float]()

    def timed(*args: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args)
        finally:
            spent.append(time.process_time() - start)

    setattr(module, name, timed)
    try:
        yield spent
    finally:
        setattr(module, name, function)


def _warm(work: Callable[[], object]) -> float:
    work()
    return min(seconds(work) for _ in range(2))


def seconds(work: Callable[[], object]) -> float:
    """Return processor seconds: one thread works, and what other processes do does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _normal(*sizes: int) -> torch.Tensor:
    return torch.empty(*sizes).normal_(0, 0.02, generator=torch.Generator().manual_seed(0))


def _by_lens(values: dict[str, float]) -> str:
    return " and ".join(f"{value:.2f} ({lens})" for lens, value in values.items())
