"""Makes the arrays of one layer: a pure function of weights, layer and options.

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
Vectors = dict[str, torch.Tensor]  # by kind: (count, d_model)
Products = dict[str, torch.Tensor]  # by kind of a head's factors: (count, d_vocab)
Coherences = dict[tuple[str, int, int], Future[NDArray[np.float32]]]  # by kind, lens and end
Searches = dict[tuple[str, int, int], Future[dict[str, Ends]]]  # by matrix, head and lens
Step = Callable[[float], None]  # told the share of a layer's work that was done since the last call

PAIR_SHARE = 0.75  # of a layer's work, for the progress bar only


@dataclass(frozen=True)
class BuildContext:
    """What the layers of a model share while they are built."""

    model: Model
    k: int  # entries of a list that are stored
    pairs: int  # pairs of a list that are stored
    masks: Masks
    projectors: dict[str, Projector]  # by side; their lists have DEPTH entries or more
    directions: dict[str, Directions]  # by side
    pool: Executor

    @classmethod
    def of(
        cls, model: Model, tokens: list[bytes], k: int, pairs: int, device: torch.device, pool: Executor
    ) -> "BuildContext":
        depth = max(k, DEPTH)
        embeddings = {"reads": Embedding.of(model.W_E, device)}
        if not model.shape.tied:
            embeddings["writes"] = Embedding.of(model.W_U, device)
        projectors = {side: Projector(embedding, depth) for side, embedding in embeddings.items()}
        directions = {side: Directions.of(embedding) for side, embedding in embeddings.items()}
        return cls(
            model,
            min(k, model.shape.d_vocab),
            pairs,
            Masks.of(distinct_classes(tokens), whole_words(tokens)),
            {"writes": projectors["reads"]} | projectors,
            {"writes": directions["reads"]} | directions,
            pool,
        )

    def embedding(self, kind: str) -> Embedding:
        return self.projectors[SIDES[kind]].embedding


def make_layer(context: BuildContext, layer: int, step: Step = lambda _: None) -> Arrays:
    """All arrays of a layer, as FORMAT.md lists them."""
    shape = context.model.shape
    vectors = {kind: context.model.vectors(layer, kind) for kind in shape.kinds}
    products = {kind: _empty_product(context, kind) for factors in FACTORS.values() for kind in factors}
    pending = {  # the factors first: the pair search starts from their products
        kind: context.projectors[SIDES[kind]].start(vectors[kind], products.get(kind), context.pool)
        for kind in (*products, *(kind for kind in shape.kinds if kind not in products))
    }
    lists: dict[str, Lists] = {}
    searches: Searches = {}
    for kind in pending:
        lists[kind] = pending[kind].result()
        step((1 - PAIR_SHARE) * len(vectors[kind]) / sum(map(len, vectors.values())))
        if len(lists) == len(products):
            searches = _start_searches(context, vectors, products)
    hub_mask = hubs([lists[kind].ids[..., :DEPTH] for kind in shape.kinds], shape.d_vocab)  # (L, d_vocab)
    coherences = _start_coherences(context, lists, hub_mask)
    arrays: Arrays = {}
    for matrix in MATRICES:
        arrays |= _pair_arrays(context, matrix, searches, hub_mask, step)
    arrays |= _list_arrays(context, vectors, lists, coherences)
    arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in shape.kinds], shape.d_vocab)
    pairs = {matrix: arrays[f"{matrix}.ids"] for matrix in MATRICES}
    counts = {matrix: arrays[f"{matrix}.count"] for matrix in MATRICES}
    return arrays | invert_pairs(pairs, counts, shape.d_vocab)


def _empty_product(context: BuildContext, kind: str) -> torch.Tensor:
    """Room for the product of a layer's vectors with the vocabulary: (count, d_vocab)."""
    shape, embedding = context.model.shape, context.embedding(kind)
    return torch.empty(shape.count(kind), shape.d_vocab, device=embedding.on_device.device)


def _start_coherences(context: BuildContext, lists: dict[str, Lists], hub_mask: NDArray[np.bool_]) -> Coherences:
    return {
        (kind, lens, end): context.pool.submit(
            coherence, lists[kind].ids[:, lens, end, :DEPTH], hub_mask[lens], context.directions[SIDES[kind]]
        )
        for kind, lens, end in product(lists, range(len(LENSES)), range(len(ENDS)))
    }


def _start_searches(context: BuildContext, vectors: Vectors, products: Products) -> Searches:
    """All heads at once, so that no processor waits for the last one of a kind."""
    heads = range(context.model.shape.n_heads)
    return {
        (name, head, lens): context.pool.submit(
            top_pairs, head_matrix(context, name, head, vectors, products), context.masks, LENSES[lens], context.pairs
        )
        for name, head, lens in product(MATRICES, heads, range(len(LENSES)))
    }


def _list_arrays(context: BuildContext, vectors: Vectors, lists: dict[str, Lists], coherences: Coherences) -> Arrays:
    id_type = number_dtype(context.model.shape.d_vocab)
    arrays: Arrays = {}
    for kind, V in vectors.items():
        ids = lists[kind].ids
        arrays[f"{kind}.ids"] = ids[..., : context.k].astype(id_type, order="C")
        arrays[f"{kind}.scores"] = np.ascontiguousarray(lists[kind].scores[..., : context.k])
        arrays[f"{kind}.norm"] = np.linalg.norm(V.numpy().astype(np.float64), axis=1).astype(np.float32)
        arrays[f"{kind}.coherence"] = np.empty(ids.shape[:3], np.float32)
    keys, values = (lists[kind].ids[:, :, 0, :DEPTH] for kind in ("ff_key", "ff_value"))  # (d_mlp, L, DEPTH)
    arrays["ff.similarity"] = np.stack([similarity(keys[:, lens], values[:, lens]) for lens in range(len(LENSES))], 1)
    for (kind, lens, end), future in coherences.items():
        arrays[f"{kind}.coherence"][:, lens, end] = future.result()
    return arrays


def _pair_arrays(
    context: BuildContext, name: str, searches: Searches, hub_mask: NDArray[np.bool_], step: Step
) -> Arrays:
    shape, n = context.model.shape, context.pairs
    sizes = (shape.n_heads, len(LENSES), len(PRESETS), len(ENDS))
    arrays: Arrays = {
        f"{name}.ids": np.zeros((*sizes, n, 2), number_dtype(shape.d_vocab)),
        f"{name}.scores": np.zeros((*sizes, n), np.float32),
        f"{name}.count": np.zeros(sizes, np.uint32),
        f"{name}.coherence": np.full(sizes, np.nan, np.float32),
    }
    left, right = FACTORS[name]
    directions = context.directions[SIDES[left]], context.directions[SIDES[right]]
    for head, lens in product(range(shape.n_heads), range(len(LENSES))):
        presets = searches[name, head, lens].result()
        for (p, preset), end in product(enumerate(PRESETS), range(len(ENDS))):
            best, at = presets[preset][end], (head, lens, p, end)
            arrays[f"{name}.ids"][at][: len(best.pairs)] = best.pairs
            arrays[f"{name}.scores"][at][: len(best.pairs)] = best.scores
            arrays[f"{name}.count"][at] = len(best.pairs)
            arrays[f"{name}.coherence"][at] = pair_coherence(best.pairs, hub_mask[lens], *directions)
        step(PAIR_SHARE / len(searches))
    return arrays


def head_matrix(context: BuildContext, name: str, head: int, vectors: Vectors, products: Products) -> Matrix:
    """A head's vo or qk, from the vectors of its two kinds and their products with the vocabulary."""
    shape = context.model.shape
    left, right = FACTORS[name]
    rows = [slice(first, first + shape.d_head) for first in (shape.row(kind, head, 0) for kind in (left, right))]
    return Matrix(
        context.embedding(left),
        context.embedding(right),
        np.ascontiguousarray(vectors[left][rows[0]].numpy().T),
        np.ascontiguousarray(vectors[right][rows[1]].numpy().T),
        products[left][rows[0]],
        products[right][rows[1]],
    )
