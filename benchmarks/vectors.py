"""Vector lists against the bare matrix product in the same blocks."""

from collections.abc import Iterator

import torch

from benchmarks.figures import Figure, seconds
from benchmarks.models import D_VOCAB
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.vectors import MOST_VECTORS, Projector

N, D_MODEL, K = 3072, 768, 100


def figures() -> Iterator[Figure]:
    generator = torch.Generator().manual_seed(0)
    W_E = torch.empty(D_VOCAB, D_MODEL).normal_(0, 0.14, generator=generator)
    V = torch.empty(N, D_MODEL).normal_(0, 0.14, generator=generator)
    cpu = torch.device("cpu")
    projector = Projector(Embedding.of(W_E, cpu), K)
    with compute_threads(cpu, 2) as pool:
        projector.lists(V[:MOST_VECTORS], pool)  # compiles

        def bare() -> None:
            for _ in pool.map(lambda start: V[start : start + MOST_VECTORS] @ W_E.T, range(0, N, MOST_VECTORS)):
                pass

        rounds = [(seconds(lambda: projector.lists(V, pool)), seconds(bare)) for _ in range(3)]
    ratio = sorted(ours / theirs for ours, theirs in rounds)[1]
    yield Figure("vector lists, GPT-2 small shapes, against the bare product", ratio, 1.5)
