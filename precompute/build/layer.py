"""Make the lists of one layer, and its moments from the same products: a pure function of weights, layer and options.

Everything on the CPU runs in single-threaded pieces on a pool of threads, so that no two thread pools disturb each
other; on another device, products and proposals run on that device.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.build.head_factors import HeadFactors, head_matrix
from lexiscope.precompute.build.inverted import invert_lists, invert_pairs
from lexiscope.precompute.build.unchanged import Changed, counts_of_changed, ids_of_changed, told_apart, with_unchanged
from lexiscope.precompute.index.layout import number_dtype
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import distinct_classes, whole_words
from lexiscope.precompute.project.coherence import DEPTH, Directions, coherence, hubs, pair_coherence
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.in_and_out import cosines_of_neurons
from lexiscope.precompute.project.moments import Moments, MomentsOfProducts
from lexiscope.precompute.project.pairs.head_pairs import Ends, Matrix, top_pairs
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.project.readability import readability
from lexiscope.precompute.project.similarity import similarities
from lexiscope.precompute.project.vectors import Lists, PendingLists, Projector, See
from lexiscope.precompute.shape import COMPARED, DIRECTION_KINDS, ENDS, FACTORS, LENSES, MATRICES, PRESETS, SIDES
from lexiscope.precompute.weights.difference import Difference, Parameters

Arrays = dict[str, NDArray[Any]]
Coherences = dict[tuple[str, int, int], Future[NDArray[np.float32]]]  # by kind, lens and end
Search = tuple[dict[str, Ends], float]  # the pairs by preset, and seconds
Searches = dict[tuple[str, int, str], Future[Search]]  # by matrix, head and lens
Step = Callable[[float], None]  # called with the share of a layer's work that was done since the last call

PAIR_SHARE = 0.75  # share of pairs in a layer's work, for the progress bar only
MEASURED_HEADS = 2  # heads that are searched first, to tell how long all will take
MEASURED_BLOCKS = 4  # blocks of the first kind of vectors that are measured for the same purpose
NORMS_AT_ONCE = 1024


@dataclass(frozen=True)
class Costs:
    """How long the first pieces of work took, each on one thread of the pool."""

    vector: float  # seconds per vector
    searches: dict[str, float]  # seconds per search of a head's matrix, by lens


@dataclass(frozen=True)
class BuildContext:
    """What the layers of a model share while they are built."""

    model: Parameters
    tokens: list[bytes]  # the whole vocabulary
    stored: Stored
    masks: Masks
    projectors: dict[str, Projector]  # by side; their lists have DEPTH entries or more
    directions: dict[str, Directions]  # by side
    moments: dict[str, MomentsOfProducts]  # by side
    pool: Executor

    @classmethod
    def of(
        cls, model: Parameters, tokens: list[bytes], stored: Stored, device: torch.device, pool: Executor
    ) -> "BuildContext":
        depth = max(stored.k, DEPTH)
        embeddings = {"reads": Embedding.of(model.W_E, device)}
        if not model.shape.tied:
            embeddings["writes"] = Embedding.of(model.W_U, device)
        projectors = {side: Projector(embedding, depth) for side, embedding in embeddings.items()}
        directions = {side: Directions.of(embedding) for side, embedding in embeddings.items()}
        moments = {side: MomentsOfProducts(embedding, stored.lenses) for side, embedding in embeddings.items()}
        return cls(
            model,
            tokens,
            stored,
            Masks.of(distinct_classes(tokens), whole_words(tokens)),
            {"writes": projectors["reads"]} | projectors,
            {"writes": directions["reads"]} | directions,
            {"writes": moments["reads"]} | moments,
            pool,
        )

    def embedding(self, kind: str) -> Embedding:
        return self.projectors[SIDES[kind]].embedding


def make_layer(
    context: BuildContext,
    layer: int,
    step: Step = lambda _: None,
    measured: Callable[[Costs], None] | None = None,
    stats: bool = False,
) -> Arrays:
    """Make the arrays of the part `lists` (see FORMAT.md) and, if `stats` is True, those of the part `stats`: both need
    the products of all vectors with the vocabulary. `measured` is called early with the costs of the first pieces of
    work."""
    model, stored, n_heads = context.model, context.stored, context.model.shape.n_heads
    factors = HeadFactors.read(model, layer) if stored.pairs or stored.difference else None
    searches = _start_searches(context, factors, range(n_heads)[:MEASURED_HEADS])
    arrays: Arrays = factors.norms() if factors else {}
    lists: dict[str, Lists] = {}
    changed: dict[str, Changed] = {}
    of_stats = _neuron_arrays(context, layer) if stats else {}
    before: tuple[str, PendingLists] | None = None
    stepped = 0  # heads whose searches are known to be done

    def finish(kind: str, pending: PendingLists) -> None:
        lists[kind] = of_lenses(with_unchanged(pending.result(), changed[kind]), stored)
        step((1 - PAIR_SHARE if stored.pairs else 1) * stored.shape.count(kind) / stored.n_vectors)

    for kind in stored.kinds:
        V = factors.vectors(kind) if factors and kind.startswith("w_") else model.vectors(layer, kind)
        arrays[f"{kind}.norm"] = norms_of(V)
        changed[kind] = np.ones(len(V), np.bool_)
        if isinstance(model, Difference) and kind not in DIRECTION_KINDS:
            arrays[f"{kind}.base_norm"] = norms_of(model.base.vectors(layer, kind))
        if isinstance(model, Difference) or kind in DIRECTION_KINDS:
            changed[kind] = arrays[f"{kind}.norm"] > 0
            V = V if changed[kind].all() else V[torch.from_numpy(changed[kind])]
        if measured and len(V):
            _compile(context.projectors[SIDES[kind]], V[:1])
        see = see_moments(context, kind, changed[kind], of_stats) if stats else None
        pending = context.projectors[SIDES[kind]].start(len(V), V.__getitem__, context.pool, see)
        if measured and len(V):
            measured(_costs(pending, searches))
            measured = None
            if searches:
                stepped = MEASURED_HEADS
                step(PAIR_SHARE * min(MEASURED_HEADS, n_heads) / n_heads)
        del V  # so that the vectors of two kinds are in memory, not those of all
        if before:
            finish(*before)
        before = kind, pending
    for matrix in stored.directions:
        arrays[f"{matrix}.singular"] = model.directions.of(layer, matrix).singular.numpy()
    searches |= _start_searches(context, factors, range(n_heads)[MEASURED_HEADS:])
    if before:
        finish(*before)
    of_changed = [ids_of_changed(lists[kind].ids, changed[kind])[..., :DEPTH] for kind in stored.counted_kinds]
    hub_mask = hubs(of_changed, stored.shape.d_vocab)  # (lenses, d_vocab)
    coherences = _start_coherences(context, lists, hub_mask)
    for matrix in stored.matrices:
        made = _pair_arrays(context, matrix, searches, hub_mask, step, stepped)
        if stored.difference:
            for part in ("coherence", "readability"):
                made[f"{matrix}.{part}"][arrays[f"{matrix}.norm"] == 0] = np.nan
        arrays |= made
    arrays |= _list_arrays(stored, lists, changed, coherences)
    return arrays | _inverted_arrays(stored, arrays, changed) | of_stats


def make_stats(context: BuildContext, layer: int, step: Step = lambda _: None) -> Arrays:
    """Make only the arrays of the part `stats` (how scores are distributed), for a layer whose lists exist already."""
    arrays: Arrays = {}
    for kind in context.stored.kinds:
        V = context.model.vectors(layer, kind)
        changed = norms_of(V) > 0
        V = V if changed.all() else V[torch.from_numpy(changed)]
        see_products(context, kind, V, see_moments(context, kind, changed, arrays), step)
    return arrays | _neuron_arrays(context, layer)


def see_products(context: BuildContext, kind: str, V: torch.Tensor, see: See, step: Step = lambda _: None) -> None:
    """Multiply the vectors V (n, d_model) with the vocabulary of their kind in blocks, and call `see` with each."""
    projector = context.projectors[SIDES[kind]]
    size, W = projector.block_size, projector.embedding.on_device

    def multiply(start: int) -> None:
        vectors = V[start : start + size].to(W.device)
        see(slice(start, start + size), vectors, vectors @ W.T)

    for _ in context.pool.map(multiply, range(0, len(V), size)):
        step(size / context.stored.n_vectors)


def see_moments(context: BuildContext, kind: str, changed: Changed, arrays: Arrays) -> See:
    """Add empty arrays for the moments of a kind of vectors to `arrays`; return a function that fills them, given the
    products of those vectors that changed."""
    numbers, made = np.flatnonzero(changed), Moments.of_zeros(len(changed), len(context.stored.lenses))
    arrays |= {f"{kind}.moments": made.moments, f"{kind}.z": made.z}
    moments, writes = context.moments[SIDES[kind]], SIDES[kind] == "writes"
    if writes:
        arrays[f"{kind}.unembedding"] = np.full(len(changed), np.nan, np.float32)
        _ = moments.covariance_of_directions  # computed here once, before the threads of the pool ask for it

    def see(rows: slice, V: torch.Tensor, product: torch.Tensor) -> None:
        moments.write(V, product, made, numbers[rows])
        if writes:
            arrays[f"{kind}.unembedding"][numbers[rows]] = moments.variance_of_cosines(V)

    return see


def _neuron_arrays(context: BuildContext, layer: int) -> Arrays:
    """Make the arrays that compare what neurons read with what they write, where the index has both."""
    model, stored = context.model, context.stored
    if not stored.in_and_out or isinstance(model, Difference):
        return {}
    gain, centres = model.norm_in_front(layer)
    vectors = {kind: model.vectors(layer, kind) for kind in model.shape.kinds if kind.startswith("ff_")}
    cosines, mismatched = cosines_of_neurons(vectors, gain.numpy().astype(np.float64), centres)
    return {"ff.cosines": cosines, "ff.mismatched": mismatched}


def _compile(projector: Projector, V: torch.Tensor) -> None:
    """Make one list, so that the kernels are compiled before the time of the next lists is measured."""
    ids, scores = np.empty((len(V), 2, 2, projector.k), np.uint32), np.empty((len(V), 2, 2, projector.k), np.float32)
    vectors = V.to(projector.embedding.on_device.device)
    projector.select(vectors, vectors @ projector.embedding.on_device.T, ids, scores)


def _costs(pending: PendingLists, searches: Searches) -> Costs:
    """Return the costs as medians of the measured times, because the first search may wait for a kernel to be
    compiled."""
    vectors = statistics.median(block.result() for block in pending.blocks[:MEASURED_BLOCKS])
    by_lens: dict[str, list[float]] = {}
    for (_, _, lens), search in searches.items():
        by_lens.setdefault(lens, []).append(search.result()[1])
    return Costs(vectors, {lens: statistics.median(seconds) for lens, seconds in by_lens.items()})


def of_lenses(lists: Lists, stored: Stored) -> Lists:
    """Return the lists without those of lenses that the index does not store."""
    if stored.lenses == LENSES:
        return lists
    lenses = [LENSES.index(lens) for lens in stored.lenses]
    return Lists(lists.ids[:, lenses], lists.scores[:, lenses])


def norms_of(V: torch.Tensor) -> NDArray[np.float32]:
    """Return the norms (n,) of the vectors V (n, d_model), computed in float64 and then rounded."""
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


def _start_searches(context: BuildContext, factors: HeadFactors | None, heads: Iterable[int]) -> Searches:
    """Start the searches for pairs of all heads at once, so that no processor waits for the last search of a kind."""
    stored, searches = context.stored, Searches()
    if not factors:
        return searches
    for name, head in product(stored.matrices, heads):
        source, target = (context.embedding(kind) for kind in FACTORS[name])
        matrix = context.pool.submit(head_matrix, factors, name, head, source, target)  # begins before its searches
        for lens in stored.lenses:
            searches[name, head, lens] = context.pool.submit(_search, context, matrix, lens)
    return searches


def _search(context: BuildContext, matrix: Future[Matrix], lens: str) -> Search:
    start = time.perf_counter()
    pairs = top_pairs(matrix.result(), context.masks, lens, context.stored.pairs)
    return pairs, time.perf_counter() - start


def _list_arrays(
    stored: Stored, lists: dict[str, Lists], changed: Mapping[str, Changed], coherences: Coherences
) -> Arrays:
    id_type = number_dtype(stored.shape.d_vocab)
    arrays: Arrays = {}
    for kind, of_kind in lists.items():
        arrays[f"{kind}.ids"] = of_kind.ids[..., : stored.k].astype(id_type, order="C")
        arrays[f"{kind}.scores"] = np.ascontiguousarray(of_kind.scores[..., : stored.k])
        arrays[f"{kind}.coherence"] = np.empty(of_kind.ids.shape[:3], np.float32)
    ids = told_apart({kind: of_kind.ids for kind, of_kind in lists.items()}, changed, stored.shape.d_vocab)
    arrays |= similarity_arrays(stored, ids)
    for (kind, lens, end), future in coherences.items():
        arrays[f"{kind}.coherence"][:, lens, end] = np.where(changed[kind], future.result(), np.nan)
    return arrays


def similarity_arrays(stored: Stored, ids: Mapping[str, NDArray[np.integer]]) -> Arrays:
    """Compute similarities of neurons and subheads, from the lists (n, lenses, ends, DEPTH or more) of all kinds."""
    arrays: Arrays = {}
    for name in stored.compared:
        first, second = (ids[kind][stored.shape.rows(kind), :, :, :DEPTH] for kind in COMPARED[name])
        of_subheads = () if name == "ff" else (stored.shape.n_heads, stored.shape.d_head)
        for part, made in zip(("similarity", "shuffled"), similarities(first, second), strict=True):
            arrays[f"{name}.{part}"] = made.reshape(*of_subheads, *made.shape[1:]) if of_subheads else made
    return arrays


def _inverted_arrays(stored: Stored, arrays: Arrays, changed: Mapping[str, Changed]) -> Arrays:
    d_vocab, listed = stored.shape.d_vocab, np.concatenate([changed[kind] for kind in stored.kinds])
    inverted = invert_lists([arrays[f"{kind}.ids"] for kind in stored.kinds], d_vocab, listed)
    if not stored.pairs:
        return inverted
    ids = {matrix: arrays[f"{matrix}.ids"] for matrix in MATRICES}
    counts = {matrix: counts_of_changed(arrays[f"{matrix}.count"], arrays.get(f"{matrix}.norm")) for matrix in MATRICES}
    return inverted | invert_pairs(ids, counts, d_vocab)


def _pair_arrays(
    context: BuildContext, name: str, searches: Searches, hub_mask: NDArray[np.bool_], step: Step, stepped: int
) -> Arrays:
    """Make the arrays of a matrix's pairs from its searches. `step` has been called already for the first `stepped`
    heads."""
    shape, lenses, n = context.model.shape, context.stored.lenses, context.stored.pairs
    sizes = (shape.n_heads, len(lenses), len(PRESETS), len(ENDS))
    arrays: Arrays = {
        f"{name}.ids": np.zeros((*sizes, n, 2), number_dtype(shape.d_vocab)),
        f"{name}.scores": np.zeros((*sizes, n), np.float32),
        f"{name}.count": np.zeros(sizes, np.uint32),
        f"{name}.coherence": np.full(sizes, np.nan, np.float32),
        f"{name}.readability": np.full(sizes, np.nan, np.float32),
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
            arrays[f"{name}.readability"][at] = readability(best.pairs, *(side.embedding for side in directions))
        if head >= stepped:
            step(PAIR_SHARE / len(searches))
    return arrays
