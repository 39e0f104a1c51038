"""Two models compared: real encoders against projecting both to the vocabulary, GPT-2's sizes against bare products."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.build import GIB, run_command
from benchmarks.figures import Figure, seconds
from benchmarks.models import SIZES, random_gpt2
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.compare import job
from lexiscope.precompute.compare.common_tokens import CommonTokens, common_tokens
from lexiscope.precompute.compare.compared_arrays import Comparer
from lexiscope.precompute.compare.correlate import CORRELATED_ROWS, Buffers, correlate
from lexiscope.precompute.compare.matches import Matches
from lexiscope.precompute.errors import SourceNotFound
from lexiscope.precompute.index.comparison_record import MATCHES
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.sources import resolve

CPU, THREADS = torch.device("cpu"), 2
QUIET = job.CompareProgress(Console(quiet=True))
SAMPLE = ((0, 0), (3, 6))  # pairs of layers that are compared by projecting, too


def figures(scratch: Path, data: Path, tokenizer: Path) -> Iterator[Figure]:
    yield from encoders(data, scratch)
    n_layers = SIZES["small"][0]
    one, other = (random_gpt2(scratch / f"gpt2-{seed}", "small", n_layers, tokenizer, seed) for seed in (1, 2))
    a, b = describe(one), describe(other)
    before = bare_products(a, b)
    options = job.CompareOptions(a.shape.weight_kinds, device="cpu", threads=THREADS)  # directions would first be made
    _, whole = timed(partial(job.compare, a, b, scratch / "data", options, QUIET))
    bare = (before + bare_products(a, b)) / 2  # a machine is not equally busy all the time
    yield Figure("GPT-2 small with another, matches too, against bare products", whole / bare, 1.3)
    words = ("compare", str(one.folder), str(other.folder), "--data", str(scratch), "--kinds", "ff_value")
    yield Figure("peak memory of that comparison", run_command(*words)[1] / GIB, 3.0, unit="GiB")
    large = random_gpt2(scratch / "gpt2-large", "large", 1, tokenizer, seed=1)  # layers pass one by one
    medium = random_gpt2(scratch / "gpt2-medium", "medium", SIZES["medium"][0], tokenizer, seed=2)
    words = ("compare", str(large.folder), str(medium.folder), "--data", str(scratch), "--kinds", "ff_value")
    yield Figure("peak memory of comparing GPT-2 large with medium", run_command(*words)[1] / GIB, 3.0, unit="GiB")


def encoders(data: Path, scratch: Path) -> Iterator[Figure]:
    """Compare MiniLM-L6 with gte-small, all kinds and layers."""
    from tests.support.real_models import real_model  # the same model as in the tests

    try:
        a = describe(resolve("minilm", cache=data / ".cache"))
        b = describe(Checkpoint.open(real_model("gte-small", data / ".cache" / "real")))
    except (SourceNotFound, FileNotFoundError) as error:
        print(f"MiniLM-L6 with gte-small is left out: {error}", flush=True)
        return
    tokens = common_tokens(*(token_bytes(model.tokenizer_file(), model.shape.d_vocab) for model in (a, b)))
    with compute_threads(CPU, THREADS) as pool:
        comparison = partial(compare_kinds, a, b, tokens, pool)
        comparison(with_matches=True)  # compiles
        alone = seconds(lambda: comparison(with_matches=False), repeats=2)
        similarities, with_matches = timed(lambda: comparison(with_matches=True))
    direct, difference = by_projecting(a, b, tokens, similarities)
    yield Figure("MiniLM-L6 with gte-small, 6 kinds, all layers, against projecting", direct / alone, 50, at_least=True)
    yield Figure("the same with the matches of every vector", direct / with_matches, 25, at_least=True)
    yield Figure("largest difference from projecting, in millionths", difference * 1e6, 10.0, unit="")
    whole, _ = run_command("compare", str(a.checkpoint.folder), str(b.checkpoint.folder), "--data", str(scratch))
    yield Figure("the whole command, in feature space, too", whole, unit="s")


def compare_kinds(a: Model, b: Model, tokens: CommonTokens, pool: Executor, with_matches: bool) -> dict[str, Float64]:
    """Return the similarities of all kinds, made from the weights."""
    comparer = Comparer(a, b, tokens, CPU, pool)
    similarities = {}
    for kind in a.shape.weight_kinds:
        of_a, of_b = comparer.in_embedding_space(kind)
        matches = Matches(len(of_a), len(of_b), MATCHES), Matches(len(of_b), len(of_a), MATCHES)
        similarities[kind] = correlate(of_a, of_b, matches if with_matches else None, CPU, pool, lambda _: None)
        if with_matches:
            matches[0].arrays("a", of_b.count)
            matches[1].arrays("b", of_a.count)
    return similarities


def by_projecting(a: Model, b: Model, tokens: CommonTokens, similarities: dict[str, Float64]) -> tuple[float, float]:
    """Return the seconds of projecting each layer once and correlating all pairs of layers, estimated from a sample of
    pairs, and the largest difference that the sample shows."""
    total, difference = 0.0, 0.0
    for kind in a.shape.weight_kinds:
        for layer_a, layer_b in SAMPLE:
            P_a, seconds_a = timed(partial(project, a, tokens.a, kind, layer_a))
            P_b, seconds_b = timed(partial(project, b, tokens.b, kind, layer_b))
            mean, correlating = timed(partial(mean_size, P_a, P_b))
            difference = max(difference, abs(mean - similarities[kind][layer_a, layer_b]))
            layers_a, layers_b = a.shape.n_layers, b.shape.n_layers
            total += (layers_a * seconds_a + layers_b * seconds_b + layers_a * layers_b * correlating) / len(SAMPLE)
    return total, difference


def project(model: Model, ids: NDArray[np.int64], kind: str, layer: int) -> torch.Tensor:
    """Return projections (n, tokens) of mean 0 and length 1."""
    W = (model.W_U if SIDES[kind] == "writes" else model.W_E)[torch.from_numpy(ids)]
    rows = model.vectors(layer, kind) @ W.T
    rows -= rows.mean(dim=1, keepdim=True)
    return rows.div_(torch.linalg.vector_norm(rows, dim=1, keepdim=True))


def mean_size(P_a: torch.Tensor, P_b: torch.Tensor) -> float:
    return float((P_a @ P_b.T).abs_().mean())


def bare_products(a: Model, b: Model) -> float:
    """Return the seconds of the products that a comparison cannot do without, of both spaces, in the same blocks: those
    of one layer of A with all of B, times A's layers."""
    total = 0.0
    with compute_threads(CPU, THREADS) as pool:
        buffers = Buffers()
        for kind in a.shape.weight_kinds:
            left, rights = a.vectors(0, kind), [b.vectors(layer, kind) for layer in range(b.shape.n_layers)]
            starts = range(0, len(left), CORRELATED_ROWS)
            blocks = [(left[start : start + CORRELATED_ROWS], right) for start in starts for right in rights]
            total += seconds(partial(_multiply, blocks, buffers, pool), repeats=2)
    return 2 * a.shape.n_layers * total


def _multiply(blocks: list[tuple[torch.Tensor, torch.Tensor]], buffers: Buffers, pool: Executor) -> None:
    for _ in pool.map(lambda block: buffers.product(*block), blocks):
        pass


T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
