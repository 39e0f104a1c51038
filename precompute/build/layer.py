"""Makes the arrays of one layer: a pure function of weights, layer and options. Which layers, and where, is build.py's.

Everything on the CPU runs in single-threaded pieces on a pool of threads, so that no two thread pools get in each
other's way; on another device products and proposals run there.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.build.inverted import invert_lists, invert_pairs
from precompute.index.layout import number_dtype
from precompute.index.tokens import distinct_classes, whole_words
from precompute.project.coherence import DEPTH, Directions, coherence, hubs, pair_coherence, similarity
from precompute.project.embedding import Embedding
from precompute.project.pairs.head_pairs import Ends, Matrix, top_pairs
from precompute.project.pairs.masks import Masks
from precompute.project.vectors import Lists, Projector
from precompute.shape import ENDS, FACTORS, LENSES, MATRICES, PRESETS, SIDES
from precompute.weights.architectures.base import Model

Arrays = dict[str, NDArray[Any]]
Coherences = dict[tuple[str, int, int], Future[NDArray[np.float32]]]  # by kind, lens and end
Searches = dict[tuple[str, int, int], Future[dict[str, Ends]]]  # by matrix, head and lens
Step = Callable[[float], None]  # told the share of a layer's work that was done since the last call

PAIR_SHARE = 0.75  # of a layer's work, for the progress bar only


@dataclass(frozen=True)
class Workbench:
    """What all layers of a model share."""

    model: Model
    k: int  # entries of a list that are stored
    pairs: int
    masks: Masks
    projectors: dict[str, Projector]  # by side; their lists have DEPTH entries or more
    directions: dict[str, Directions]  # by side
    pool: Executor

    @classmethod
    def of(
        cls, model: Model, tokens: list[bytes], k: int, pairs: int, device: torch.device, pool: Executor
    ) -> "Workbench":
        reads = Embedding.of(model.W_E, device)
        writes = reads if model.shape.tied else Embedding.of(model.W_U, device)
        depth = max(k, DEPTH)
        reading, reading_directions = Projector(reads, depth), Directions.of(reads)
        tied = model.shape.tied
        return cls(
            model,
            min(k, model.shape.d_vocab),
            pairs,
            Masks.of(distinct_classes(tokens), whole_words(tokens)),
            {"reads": reading, "writes": reading if tied else Projector(writes, depth)},
            {"reads": reading_directions, "writes": reading_directions if tied else Directions.of(writes)},
            pool,
        )

    def embedding(self, kind: str) -> Embedding:
        return self.projectors[SIDES[kind]].embedding


def make_shard(bench: Workbench, layer: int, step: Step = lambda _: None) -> Arrays:
    """All arrays of a layer, as FORMAT.md lists them."""
    shape = bench.model.shape
    vectors = {kind: bench.model.vectors(layer, kind) for kind in shape.kinds}
    products = {kind: _room(bench, kind) for factors in FACTORS.values() for kind in factors}
    underway = {  # the factors first: the pair search starts from their products
        kind: bench.projectors[SIDES[kind]].start(vectors[kind], products.get(kind), bench.pool)
        for kind in (*products, *(kind for kind in shape.kinds if kind not in products))
    }
    lists: dict[str, Lists] = {}
    searches: Searches = {}
    for kind in underway:
        lists[kind] = underway[kind].result()
        step((1 - PAIR_SHARE) * len(vectors[kind]) / sum(map(len, vectors.values())))
        if len(lists) == len(products):
            searches = _start_searches(bench, vectors, products)
    left_out = hubs([lists[kind].ids[..., :DEPTH] for kind in shape.kinds], shape.d_vocab)
    coherences = _start_coherences(bench, lists, left_out)
    arrays: Arrays = {}
    for matrix in MATRICES:
        arrays |= _pair_arrays(bench, matrix, searches, left_out, step)
    arrays |= _list_arrays(bench, vectors, lists, coherences)
    id_type = number_dtype(shape.d_vocab)
    arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in shape.kinds], shape.d_vocab)
    pairs = {matrix: arrays[f"{matrix}.ids"] for matrix in MATRICES}
    counts = {matrix: arrays[f"{matrix}.count"] for matrix in MATRICES}
    assert all(ids.dtype == id_type for ids in pairs.values())
    return arrays | invert_pairs(pairs, counts, shape.d_vocab)


def _room(bench: Workbench, kind: str) -> torch.Tensor:
    """For a product of a layer's vectors with the vocabulary."""
    shape, embedding = bench.model.shape, bench.embedding(kind)
    return torch.empty(shape.count(kind), shape.d_vocab, device=embedding.on_device.device)


def _start_coherences(bench: Workbench, lists: dict[str, Lists], left_out: NDArray[np.bool_]) -> Coherences:
    return {
        (kind, lens, end): bench.pool.submit(
            coherence, lists[kind].ids[:, lens, end, :DEPTH], left_out[lens], bench.directions[SIDES[kind]]
        )
        for kind, lens, end in product(lists, range(len(LENSES)), range(len(ENDS)))
    }


def _start_searches(bench: Workbench, vectors: dict[str, torch.Tensor], products: dict[str, torch.Tensor]) -> Searches:
    """All heads at once, so that no processor waits for the last one of a kind."""
    heads = range(bench.model.shape.n_heads)
    return {
        (name, head, lens): bench.pool.submit(
            top_pairs, matrix_of(bench, name, head, vectors, products), bench.masks, LENSES[lens], bench.pairs
        )
        for name, head, lens in product(MATRICES, heads, range(len(LENSES)))
    }


def _list_arrays(
    bench: Workbench, vectors: dict[str, torch.Tensor], lists: dict[str, Lists], coherences: Coherences
) -> Arrays:
    id_type = number_dtype(bench.model.shape.d_vocab)
    arrays: Arrays = {}
    for kind, V in vectors.items():
        ids = lists[kind].ids
        arrays[f"{kind}.ids"] = ids[..., : bench.k].astype(id_type, order="C")
        arrays[f"{kind}.scores"] = np.ascontiguousarray(lists[kind].scores[..., : bench.k])
        arrays[f"{kind}.norm"] = np.linalg.norm(V.numpy().astype(np.float64), axis=1).astype(np.float32)
        arrays[f"{kind}.coherence"] = np.empty(ids.shape[:3], np.float32)
    keys, values = (lists[kind].ids[:, :, 0, :DEPTH] for kind in ("ff_key", "ff_value"))  # (d_mlp, L, DEPTH)
    arrays["ff.similarity"] = np.stack([similarity(keys[:, lens], values[:, lens]) for lens in range(len(LENSES))], 1)
    for (kind, lens, end), future in coherences.items():
        arrays[f"{kind}.coherence"][:, lens, end] = future.result()
    return arrays


def _pair_arrays(bench: Workbench, name: str, searches: Searches, left_out: NDArray[np.bool_], step: Step) -> Arrays:
    shape, n = bench.model.shape, bench.pairs
    sizes = (shape.n_heads, len(LENSES), len(PRESETS), len(ENDS))
    arrays: Arrays = {
        f"{name}.ids": np.zeros((*sizes, n, 2), number_dtype(shape.d_vocab)),
        f"{name}.scores": np.zeros((*sizes, n), np.float32),
        f"{name}.count": np.zeros(sizes, np.uint32),
        f"{name}.coherence": np.full(sizes, np.nan, np.float32),
    }
    left, right = FACTORS[name]
    directions = bench.directions[SIDES[left]], bench.directions[SIDES[right]]
    for head, lens in product(range(shape.n_heads), range(len(LENSES))):
        presets = searches[name, head, lens].result()
        for (p, preset), end in product(enumerate(PRESETS), range(len(ENDS))):
            found, at = presets[preset][end], (head, lens, p, end)
            arrays[f"{name}.ids"][at][: len(found.pairs)] = found.pairs
            arrays[f"{name}.scores"][at][: len(found.pairs)] = found.scores
            arrays[f"{name}.count"][at] = len(found.pairs)
            arrays[f"{name}.coherence"][at] = pair_coherence(found.pairs, left_out[lens], *directions)
        step(PAIR_SHARE / len(searches))
    return arrays


def matrix_of(
    bench: Workbench, name: str, head: int, vectors: dict[str, torch.Tensor], products: dict[str, torch.Tensor]
) -> Matrix:
    shape = bench.model.shape
    left, right = FACTORS[name]
    rows = [slice(first, first + shape.d_head) for first in (shape.row(kind, head, 0) for kind in (left, right))]
    return Matrix(
        bench.embedding(left),
        bench.embedding(right),
        np.ascontiguousarray(vectors[left][rows[0]].numpy().T),
        np.ascontiguousarray(vectors[right][rows[1]].numpy().T),
        products[left][rows[0]],
        products[right][rows[1]],
    )
