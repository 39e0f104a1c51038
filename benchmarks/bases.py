"""Whether the singular directions of heads read better than subheads, over all heads of the demo: by the measure of the
head page (app/lists/direction_coherence.py). A head's subheads are an arbitrary basis of what it does, so a third one
stands beside them: subheads turned by a random rotation, the same for both sides."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.app.lists.direction_coherence import BEST, JUDGED_TOKENS, direction_coherence, subhead_coherence
from lexiscope.app.lists.readable import INDISTINCT, readable
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.project.coherence import DEPTH, Directions, coherence, hubs
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.vectors import Projector
from lexiscope.precompute.shape import LENSES, MATRICES
from lexiscope.precompute.weights.architectures.base import Model

STRONGEST = 4  # directions, by their singular values
Numbers = NDArray[np.float64]  # (heads, d_head): the coherence of both sides at the better end


@dataclass(frozen=True)
class Rotated:
    """Makes lists of rotated subheads, as the index has lists of subheads."""

    index: Index
    model: Model
    projector: Projector
    directions: Directions

    def of_layer(self, layer: int) -> dict[tuple[str, str], Numbers]:
        """Return the coherence of rotated subheads by matrix and lens."""
        shape, shard, random = self.model.shape, self.index.shard(layer), np.random.default_rng(layer)
        lists = [shard.array(f"{kind}.ids")[..., :DEPTH] for kind in self.index.stored.weight_kinds]
        hub_mask = hubs(lists, shape.d_vocab)  # (L, d_vocab)
        found: dict[tuple[str, str], Numbers] = {}
        for matrix in MATRICES:
            left, right = (factor.double().numpy() for factor in self.model.factors(layer, matrix))
            Q = np.linalg.qr(random.standard_normal((shape.n_heads, shape.d_head, shape.d_head)))[0]
            sides = [self._counted(Q @ side, hub_mask) for side in (left.transpose(0, 2, 1), right)]  # (n, L, E)
            both = ((sides[0] + sides[1]) / 2).max(axis=2).reshape(shape.n_heads, shape.d_head, -1)
            found |= {(matrix, lens): both[:, :, at] for at, lens in enumerate(LENSES)}
        return found

    def _counted(self, V: NDArray[np.float64], hub_mask: NDArray[np.bool_]) -> Numbers:
        """Return (n, L, E): the coherence of each list of V (heads, d_head, d_model), 0 if it holds no words."""
        rows = torch.from_numpy(np.ascontiguousarray(V.reshape(-1, V.shape[-1]), np.float32))
        with ThreadPoolExecutor(1) as pool:
            ids = self.projector.lists(rows, pool).ids  # (n, L, E, DEPTH)
        found, words = np.zeros(ids.shape[:3]), readable(self.index)
        for lens, end in np.ndindex(ids.shape[1:3]):
            numbers = coherence(ids[:, lens, end], hub_mask[lens], self.directions)
            count = (numbers > 0) & (numbers < INDISTINCT) & words.are_lists_of_words(ids[:, lens, end, :JUDGED_TOKENS])
            found[:, lens, end] = np.where(count, numbers, 0)
        return found


def lines(index: Index, model: Model) -> Iterator[str]:
    """Yield the table. The model must be tied, and its index must store directions."""
    embedding = Embedding.of(model.W_E, torch.device("cpu"))
    rotated = Rotated(index, model, Projector(embedding, DEPTH), Directions.of(embedding))
    numbers: dict[tuple[str, str, str], list[Numbers]] = {}
    for layer in index.layers:
        shard, of_rotated = index.shard(layer), rotated.of_layer(layer)
        for matrix, lens in product(MATRICES, LENSES):
            for basis, measure in (("directions", direction_coherence), ("subheads", subhead_coherence)):
                heads = [measure(index, shard, matrix, head, lens) for head in range(index.shape.n_heads)]
                stored = np.stack([head.numbers for head in heads if head]).astype(np.float64)
                numbers.setdefault((matrix, lens, basis), []).append(stored)
            numbers.setdefault((matrix, lens, "rotated"), []).append(of_rotated[matrix, lens])
    yield f"coherence of the {BEST} best of a head, and in which share of heads one is better than another"
    for matrix, lens in product(MATRICES, LENSES):
        of = {basis: np.concatenate(numbers[matrix, lens, basis]) for basis in ("directions", "subheads", "rotated")}
        best = {basis: np.sort(each, axis=1)[:, -BEST:].mean(axis=1) for basis, each in of.items()}
        means = ", ".join(f"{basis} {each.mean():.4f}" for basis, each in best.items())
        shares = ", ".join(
            f"{one} > {other} {np.mean(best[one] > best[other]):.0%}"
            for one, other in (("directions", "subheads"), ("rotated", "subheads"), ("directions", "rotated"))
        )
        strongest, every = of["directions"][:, :STRONGEST].mean(), of["subheads"].mean()
        yield (
            f"{matrix} {lens}, {len(best['subheads'])} heads: {means}; {shares}; the {STRONGEST} strongest directions "
            f"{strongest:.3f}, all {of['directions'].mean():.3f}, all subheads {every:.3f}"
        )
