"""Makes the arrays of one layer: a pure function of weights, layer and options.

Everything on the CPU runs in single-threaded pieces on a pool of threads, so that no two thread pools get in each
other's way; on another device products and proposals run there.
"""

import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from itertools import product
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.build.inverted import invert_lists, invert_pairs
from precompute.index.layout import number_dtype
from precompute.index.stored import Stored
from precompute.index.tokens import distinct_classes, whole_words
from precompute.project.coherence import DEPTH, Directions, coherence, hubs, pair_coherence, similarity
from precompute.project.embedding import Embedding
from precompute.project.pairs.head_pairs import Ends, Matrix, top_pairs
from precompute.project.pairs.masks import Masks
from precompute.project.vectors import Lists, PendingLists, Projector
from precompute.shape import ENDS, FACTORS, LENSES, MATRICES, PRESETS, SIDES
from precompute.weights.architectures.base import Model

Arrays = dict[str, NDArray[Any]]
Vectors = dict[str, torch.Tensor]  # by kind: (count, d_model)
Coherences = dict[tuple[str, int, int], Future[NDArray[np.float32]]]  # by kind, lens and end
Search = tuple[dict[str, Ends], float]  # the pairs by preset, and seconds
Searches = dict[tuple[str, int, str], Future[Search]]  # by matrix, head and lens
Step = Callable[[float], None]  # told the share of a layer's work that was done since the last call
T = TypeVar("T")

PAIR_SHARE = 0.75  # of a layer's work, for the progress bar only
MEASURED_HEADS = 2  # whose searches come first and tell how long all will take
MEASURED_BLOCKS = 4  # of the first kind of vectors, likewise
NORMS_AT_ONCE = 1024


@dataclass(frozen=True)
class Costs:
    """What the first pieces of work took, each on one thread of the pool."""

    vector: float  # seconds per vector
    searches: dict[str, float]  # seconds per search of a head's matrix, by lens


@dataclass(frozen=True)
class BuildContext:
    """What the layers of a model share while they are built."""

    model: Model
    stored: Stored
    masks: Masks
    projectors: dict[str, Projector]  # by side; their lists have DEPTH entries or more
    directions: dict[str, Directions]  # by side
    pool: Executor

    @classmethod
    def of(
        cls, model: Model, tokens: list[bytes], stored: Stored, device: torch.device, pool: Executor
    ) -> "BuildContext":
        depth = max(stored.k, DEPTH)
        embeddings = {"reads": Embedding.of(model.W_E, device)}
        if not model.shape.tied:
            embeddings["writes"] = Embedding.of(model.W_U, device)
        projectors = {side: Projector(embedding, depth) for side, embedding in embeddings.items()}
        directions = {side: Directions.of(embedding) for side, embedding in embeddings.items()}
        return cls(
            model,
            stored,
            Masks.of(distinct_classes(tokens), whole_words(tokens)),
            {"writes": projectors["reads"]} | projectors,
            {"writes": directions["reads"]} | directions,
            pool,
        )

    def embedding(self, kind: str) -> Embedding:
        return self.projectors[SIDES[kind]].embedding


def make_layer(
    context: BuildContext, layer: int, step: Step = lambda _: None, measured: Callable[[Costs], None] | None = None
) -> Arrays:
    """All arrays of a layer, as FORMAT.md lists them. `measured` is told early what first pieces of work took."""
    stored, n_heads = context.stored, context.model.shape.n_heads
    factors = {kind: context.model.vectors(layer, kind) for matrix in stored.matrices for kind in FACTORS[matrix]}
    searches = _start_searches(context, factors, range(n_heads)[:MEASURED_HEADS])
    arrays: Arrays = {}
    lists: dict[str, Lists] = {}
    before: tuple[str, PendingLists] | None = None

    def finish(kind: str, pending: PendingLists) -> None:
        lists[kind] = _of_lenses(pending.result(), stored)
        step((1 - PAIR_SHARE if stored.pairs else 1) * stored.shape.count(kind) / stored.n_vectors)

    for kind in stored.kinds:
        V = factors[kind] if kind in factors else context.model.vectors(layer, kind)
        if measured and not before:
            _compile(context.projectors[SIDES[kind]], V[:1])
        pending = context.projectors[SIDES[kind]].start(len(V), V.__getitem__, context.pool)
        arrays[f"{kind}.norm"] = _norms(V)
        del V  # the vectors of two kinds are in memory, not those of all
        if before:
            finish(*before)
        elif measured:
            measured(_costs(pending, searches))
            if searches:
                step(PAIR_SHARE * min(MEASURED_HEADS, n_heads) / n_heads)
        before = kind, pending
    searches |= _start_searches(context, factors, range(n_heads)[MEASURED_HEADS:])
    if before:
        finish(*before)
    hub_mask = hubs([lists[kind].ids[..., :DEPTH] for kind in stored.kinds], stored.shape.d_vocab)  # (L, d_vocab)
    coherences = _start_coherences(context, lists, hub_mask)
    for matrix in stored.matrices:
        arrays |= _pair_arrays(context, matrix, searches, hub_mask, step, MEASURED_HEADS if measured else 0)
    arrays |= _list_arrays(stored, lists, coherences)
    arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in stored.kinds], stored.shape.d_vocab)
    if stored.pairs:
        pairs, counts = ({matrix: arrays[f"{matrix}.{part}"] for matrix in MATRICES} for part in ("ids", "count"))
        arrays |= invert_pairs(pairs, counts, stored.shape.d_vocab)
    return arrays


def _compile(projector: Projector, V: torch.Tensor) -> None:
    """Makes a list, so that the next ones take as long as any other."""
    ids, scores = np.empty((len(V), 2, 2, projector.k), np.uint32), np.empty((len(V), 2, 2, projector.k), np.float32)
    vectors = V.to(projector.embedding.on_device.device)
    projector.select(vectors, vectors @ projector.embedding.on_device.T, ids, scores)


def _costs(pending: PendingLists, searches: Searches) -> Costs:
    """Medians: a search may be the first to need some kernel, and wait for it to be compiled."""
    vectors = statistics.median(block.result() for block in pending.blocks[:MEASURED_BLOCKS])
    by_lens: dict[str, list[float]] = {}
    for (_, _, lens), search in searches.items():
        by_lens.setdefault(lens, []).append(search.result()[1])
    return Costs(vectors, {lens: statistics.median(seconds) for lens, seconds in by_lens.items()})


def _of_lenses(lists: Lists, stored: Stored) -> Lists:
    """Those of the lenses that are stored."""
    if stored.lenses == LENSES:
        return lists
    lenses = [LENSES.index(lens) for lens in stored.lenses]
    return Lists(lists.ids[:, lenses], lists.scores[:, lenses])


def _norms(V: torch.Tensor) -> NDArray[np.float32]:
    """(n,) of the vectors V (n, d_model), in float64 and then rounded."""
    blocks = (V[start : start + NORMS_AT_ONCE].numpy() for start in range(0, len(V), NORMS_AT_ONCE))
    norms = [np.linalg.norm(block.astype(np.float64), axis=1) for block in blocks]
    return np.concatenate(norms).astype(np.float32)


def _start_coherences(context: BuildContext, lists: dict[str, Lists], hub_mask: NDArray[np.bool_]) -> Coherences:
    return {
        (kind, lens, end): context.pool.submit(
            coherence, lists[kind].ids[:, lens, end, :DEPTH], hub_mask[lens], context.directions[SIDES[kind]]
        )
        for kind, lens, end in product(lists, range(len(context.stored.lenses)), range(len(ENDS)))
    }


def _start_searches(context: BuildContext, factors: Vectors, heads: Iterable[int]) -> Searches:
    """All heads at once, so that no processor waits for the last one of a kind."""
    stored, searches = context.stored, Searches()
    for name, head in product(stored.matrices, heads):
        matrix = _once(partial(head_matrix, context, name, head, factors))
        for lens in stored.lenses:
            searches[name, head, lens] = context.pool.submit(_search, context, matrix, lens)
    return searches


def _search(context: BuildContext, matrix: Callable[[], Matrix], lens: str) -> Search:
    start = time.perf_counter()
    pairs = top_pairs(matrix(), context.masks, lens, context.stored.pairs)
    return pairs, time.perf_counter() - start


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """What `make` gives, made when it is first asked for, and gone when nobody can ask any more."""
    made: list[T] = []
    lock = Lock()

    def get() -> T:
        with lock:
            if not made:
                made.append(make())
        return made[0]

    return get


def _list_arrays(stored: Stored, lists: dict[str, Lists], coherences: Coherences) -> Arrays:
    id_type = number_dtype(stored.shape.d_vocab)
    arrays: Arrays = {}
    for kind, of_kind in lists.items():
        arrays[f"{kind}.ids"] = of_kind.ids[..., : stored.k].astype(id_type, order="C")
        arrays[f"{kind}.scores"] = np.ascontiguousarray(of_kind.scores[..., : stored.k])
        arrays[f"{kind}.coherence"] = np.empty(of_kind.ids.shape[:3], np.float32)
    if stored.similarity:
        keys, values = (lists[kind].ids[:, :, 0, :DEPTH] for kind in ("ff_key", "ff_value"))  # (d_mlp, L, DEPTH)
        by_lens = [similarity(keys[:, lens], values[:, lens]) for lens in range(len(stored.lenses))]
        arrays["ff.similarity"] = np.stack(by_lens, 1)
    for (kind, lens, end), future in coherences.items():
        arrays[f"{kind}.coherence"][:, lens, end] = future.result()
    return arrays


def _pair_arrays(
    context: BuildContext, name: str, searches: Searches, hub_mask: NDArray[np.bool_], step: Step, stepped: int
) -> Arrays:
    """Of the first heads, `stepped` of them, the work is known to be done already."""
    shape, lenses, n = context.model.shape, context.stored.lenses, context.stored.pairs
    sizes = (shape.n_heads, len(lenses), len(PRESETS), len(ENDS))
    arrays: Arrays = {
        f"{name}.ids": np.zeros((*sizes, n, 2), number_dtype(shape.d_vocab)),
        f"{name}.scores": np.zeros((*sizes, n), np.float32),
        f"{name}.count": np.zeros(sizes, np.uint32),
        f"{name}.coherence": np.full(sizes, np.nan, np.float32),
    }
    left, right = FACTORS[name]
    directions = context.directions[SIDES[left]], context.directions[SIDES[right]]
    for head, (lens_at, lens) in product(range(shape.n_heads), enumerate(lenses)):
        presets, _ = searches[name, head, lens].result()
        for (p, preset), end in product(enumerate(PRESETS), range(len(ENDS))):
            best, at = presets[preset][end], (head, lens_at, p, end)
            arrays[f"{name}.ids"][at][: len(best.pairs)] = best.pairs
            arrays[f"{name}.scores"][at][: len(best.pairs)] = best.scores
            arrays[f"{name}.count"][at] = len(best.pairs)
            arrays[f"{name}.coherence"][at] = pair_coherence(best.pairs, hub_mask[lens_at], *directions)
        if head >= stepped:
            step(PAIR_SHARE / len(searches))
    return arrays


def head_matrix(context: BuildContext, name: str, head: int, vectors: Vectors) -> Matrix:
    """A head's vo or qk, from the vectors of its two kinds; only this head's are multiplied with the vocabulary."""
    (left, W_left), (right, W_right) = (_factor(context, kind, head, vectors) for kind in FACTORS[name])
    source, target = (context.embedding(kind) for kind in FACTORS[name])
    return Matrix(source, target, W_left, W_right, left, right)


def _factor(context: BuildContext, kind: str, head: int, vectors: Vectors) -> tuple[torch.Tensor, NDArray[np.float32]]:
    """A head's vectors of one kind times the vocabulary, (d_head, d_vocab), and as a matrix (d_model, d_head)."""
    first = context.model.shape.row(kind, head, 0)
    rows, W_E = vectors[kind][first : first + context.model.shape.d_head], context.embedding(kind).on_device
    return rows.to(W_E.device) @ W_E.T, np.ascontiguousarray(rows.numpy().T)
