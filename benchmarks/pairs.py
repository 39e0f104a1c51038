"""Head pairs against the exhaustive tiled product with a running floor, on real heads of the demo and on random ones.

Both use one thread; the lists are compared as well.
"""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.figures import Figure, seconds
from benchmarks.models import D_VOCAB, demo
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.pairs.head_pairs import Matrix, top_pairs
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.shape import LENSES
from lexiscope.precompute.weights.architectures.base import Model

HeadName = tuple[int, int, str]  # layer, head, matrix

N = 500  # pairs of each list
# 24 heads over all depths. Sizes in the search were chosen on half of them and tried on 3 of OTHERS.
MATRICES = ("vo", "qk", "vo", "qk")
SAMPLE = [(layer, (5 * layer + n) % 9, name) for layer in range(1, 30, 5) for n, name in enumerate(MATRICES)]
OTHERS = [(layer, (7 * layer + 2) % 9, MATRICES[layer // 2 % 2]) for layer in range(0, 30, 2) if layer % 5 != 1]


def figures(data: Path) -> Iterator[Figure]:
    model = demo(data)
    cpu = torch.device("cpu")
    embedding = Embedding.of(model.W_E, cpu)
    masks = all_pairs(model.shape.d_vocab)

    def rounds(sample: list[HeadName], lens: str) -> list[tuple[float, float]]:
        return [compare(matrix_at(model, embedding, *name), masks, lens) for name in sample]

    with compute_threads(cpu, 1):
        for exhaustive in (False, True):
            for lens in LENSES:
                top_pairs(matrix_at(model, embedding, *OTHERS[0]), masks, lens, N, exhaustive)  # compiles
        times = rounds(SAMPLE, "dot")
        yield Figure("head pairs, 24 real heads together, exhaustive / ours", together(times), 5, at_least=True)
        yield Figure("head pairs, the median head, exhaustive / ours", median(ratios(times)), 15, at_least=True)
        yield Figure("head pairs, the slowest head, ours / exhaustive", 1 / min(ratios(times)), 1.2)
        times = rounds(OTHERS, "dot")
        yield Figure(f"head pairs, the median of {len(OTHERS)} others, exhaustive / ours", median(ratios(times)))
        times = rounds(SAMPLE[::3], "cosine")
        yield Figure("head pairs under lens cosine, 8 real heads together, exhaustive / ours", together(times))
        generator = np.random.default_rng(0)
        random = Embedding.of(torch.from_numpy(generator.normal(0, 0.14, (D_VOCAB, 768)).astype(np.float32)), cpu)
        factors = [generator.normal(0, 0.02, (768, 64)).astype(np.float32) for _ in range(2)]
        times = [compare(matrix_of(random, *factors), all_pairs(D_VOCAB), "dot")]
        yield Figure("head pairs, random GPT-2-sized weights, exhaustive / ours", together(times))


def ratios(times: list[tuple[float, float]]) -> list[float]:
    return [theirs / ours for ours, theirs in times]


def together(times: list[tuple[float, float]]) -> float:
    return sum(theirs for _, theirs in times) / sum(ours for ours, _ in times)


def matrix_at(model: Model, embedding: Embedding, layer: int, head: int, name: str) -> Matrix:
    left, right = model.factors(layer, name)
    return matrix_of(embedding, left[head].numpy(), right[head].T.numpy())


def all_pairs(d_vocab: int) -> Masks:
    """Return masks for the preset `all` alone: no two tokens have the same surface, and none is a word."""
    return Masks.of(np.arange(d_vocab, dtype=np.int32), np.zeros(d_vocab, bool))


def matrix_of(embedding: Embedding, W_left: np.ndarray, W_right: np.ndarray) -> Matrix:
    products = [torch.from_numpy(np.ascontiguousarray(W.T)) @ embedding.on_device.T for W in (W_left, W_right)]
    left, right = (np.ascontiguousarray(W) for W in (W_left, W_right))
    return Matrix(embedding, embedding, left, right, *products)


def compare(matrix: Matrix, masks: Masks, lens: str) -> tuple[float, float]:
    """Return the seconds of our search and of the exhaustive one; their lists must be the same."""
    results = []

    def run(exhaustive: bool) -> None:
        results.append(top_pairs(matrix, masks, lens, N, exhaustive))

    times = seconds(lambda: run(False)), seconds(lambda: run(True))
    for ours, theirs in zip(results[0]["all"], results[1]["all"], strict=True):
        assert np.array_equal(ours.pairs, theirs.pairs)
        assert np.array_equal(ours.scores, theirs.scores)
    return times
