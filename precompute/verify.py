"""Checks an index without trusting the code that made it: some of its lists, derived anew by brute force in float64.
Scores may differ from the brute-force ones in the last bit, where the order of a float64 sum decides a rounding.
Checksums, which need no weights, are for sums.py."""

import secrets
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from precompute.architectures.base import Model
from precompute.brute_force import BruteForce, Ids
from precompute.embedding import Float64
from precompute.errors import LexiscopeError, ShardDamaged
from precompute.index import Index
from precompute.shape import ENDS, LENSES, MATRICES, PRESETS
from precompute.shard_reader import Floats
from precompute.sums import Result

LAST_BIT = 4e-7  # relative
SIMILARITY_K = 100  # as FORMAT.md defines it
ROWS = 32  # source tokens whose whole row of a head's matrix is computed


def check_sample(index: Index, model: Model, sample: int, seed: int, rows: int = ROWS) -> Iterator[Result]:
    """Some vectors of every kind, some neurons, one head of each matrix and three tokens, in every layer there is.

    The caller knows that the model is the one that the index was made from.
    """
    rng = np.random.default_rng(seed)
    shape = model.shape
    brute = BruteForce(model, list(index.tokens))
    for layer in index.layers:
        for kind in shape.kinds:
            numbers = np.sort(rng.choice(shape.count(kind), min(sample, shape.count(kind)), replace=False))
            fault = _checked(index, layer, _vectors_fault, brute, kind, numbers)
            yield f"layer {layer} {kind} {', '.join(map(str, numbers))}", fault
        neurons = np.sort(rng.choice(shape.d_mlp, min(sample, shape.d_mlp), replace=False))
        fault = _checked(index, layer, _similarity_fault, brute, neurons)
        yield f"layer {layer} similarity of neurons {', '.join(map(str, neurons))}", fault
        for matrix in MATRICES:
            head = int(rng.integers(shape.n_heads))
            sources = rng.choice(shape.d_vocab, min(rows, shape.d_vocab), replace=False)
            fault = _checked(index, layer, _pairs_fault, brute, matrix, head, sources)
            yield f"layer {layer} {matrix} head {head}", fault
        shard = index.shard(layer)
        listed, paired = (int(rng.choice(shard.array(name)[0].ravel())) for name in ("ff_value.ids", "vo.ids"))
        for token in (listed, paired, int(rng.integers(shape.d_vocab))):
            yield f"layer {layer} lists of token {token}", _checked(index, layer, _inverted_fault, token)


def new_seed() -> int:
    return secrets.randbelow(1 << 31)


def _checked(index: Index, layer: int, check: Callable[..., str | None], *what: object) -> LexiscopeError | None:
    try:
        wrong = check(index, layer, *what)
    except ShardDamaged as fault:  # values that cannot be right are noticed when they are read
        return fault
    if wrong is None:
        return None
    path, name = index.folder / index.manifest.shards[layer].file, index.manifest.model
    said = f"layer {layer}: {wrong} is not what the weights give"
    return ShardDamaged(f"{said}. Delete {path} and run `lexiscope precompute {name}` again")


def _vectors_fault(index: Index, layer: int, brute: BruteForce, kind: str, numbers: Ids) -> str | None:
    vectors = brute.vectors(layer, kind, numbers)
    for lens in LENSES:
        scores = vectors @ brute.embedding(kind, lens).T  # (len(numbers), d_vocab)
        for at, number in enumerate(numbers.tolist()):
            lists = index.shard(layer).vector(kind, number, lens)
            size = float(np.abs(scores[at]).max())
            ascending = np.sort(scores[at])
            ends = (
                (lists.top_ids, lists.top_scores, ascending[::-1]),
                (lists.bottom_ids, lists.bottom_scores, ascending),
            )
            for end, (ids, stored, best) in zip(ENDS, ends, strict=True):
                right = _close(scores[at, ids], stored, size) and _close(best[: len(ids)], stored, size)
                if not right or len(np.unique(ids)) < len(ids):
                    return f"{kind} {number} ({lens}, {end})"
            if abs(lists.norm - np.linalg.norm(vectors[at])) > LAST_BIT * lists.norm:
                return f"the norm of {kind} {number}"
    return None


def _similarity_fault(index: Index, layer: int, brute: BruteForce, neurons: Ids) -> str | None:
    """Where the last bit decides who is on a list, the similarity may be any that this allows."""
    for lens in LENSES:
        lists = [_listed(brute, layer, kind, neurons, lens) for kind in ("ff_key", "ff_value")]
        (surely_reads, maybe_reads), (surely_writes, maybe_writes) = lists
        n = min(SIMILARITY_K, index.shape.d_vocab)
        least = (surely_reads & surely_writes).sum(axis=1)
        most = np.minimum((maybe_reads & maybe_writes).sum(axis=1), n)
        for at, neuron in enumerate(neurons.tolist()):
            stored = index.shard(layer).similarity(neuron, lens)
            low, high = (shared / (2 * n - shared) for shared in (least[at], most[at]))
            if not low - LAST_BIT <= stored <= high + LAST_BIT:
                return f"the similarity of neuron {neuron} ({lens})"
    return None


def _listed(
    brute: BruteForce, layer: int, kind: str, numbers: Ids, lens: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which tokens surely are, and which may be, among the first SIMILARITY_K: (len(numbers), d_vocab) each."""
    scores = brute.vectors(layer, kind, numbers) @ brute.embedding(kind, lens).T
    k = min(SIMILARITY_K, scores.shape[1])
    last = np.partition(scores, -k, axis=1)[:, [-k]]
    doubt = LAST_BIT * np.abs(last) + 1e-12 * np.abs(scores).max(axis=1, keepdims=True)
    return scores > last + doubt, scores >= last - doubt


def _pairs_fault(index: Index, layer: int, brute: BruteForce, matrix: str, head: int, rows: Ids) -> str | None:
    everything = np.arange(index.shape.d_vocab)
    for lens in LENSES:
        exact = brute.head(layer, matrix, head, lens)
        row_scores = exact.rows(rows)
        for preset in PRESETS:
            allowed = brute.allowed(preset, rows[:, None], everything)
            for end, sign in zip(ENDS, (1, -1), strict=True):
                stored = index.shard(layer).pairs(matrix, head, lens, preset, end)
                pairs = stored.ids.astype(np.int64)
                listed = exact.at(pairs)
                size = float(np.abs(row_scores).max(initial=0)) + float(np.abs(listed).max(initial=0))
                full = len(pairs) == index.manifest.pairs
                floor = sign * float(stored.scores[-1]) + LAST_BIT * size if full else -np.inf
                missing = (sign * row_scores > floor) & allowed
                for at, token in enumerate(rows):
                    missing[at, pairs[pairs[:, 0] == token, 1]] = False
                proper = brute.allowed(preset, pairs[:, 0], pairs[:, 1]).all() and _distinct_and_ordered(
                    pairs, sign * stored.scores
                )
                if missing.any() or not proper or not _close(listed, stored.scores, size):
                    return f"{matrix} of head {head} ({lens}, {preset}, {end})"
    return None


def _inverted_fault(index: Index, layer: int, token: int) -> str | None:
    """The inverted lists point at the token (or reading them fails), so it is enough to count them."""
    shard = index.shard(layer)
    for lens_at, lens in enumerate(LENSES):
        for end_at, end in enumerate(ENDS):
            lists = (shard.array(f"{kind}.ids")[:, lens_at, end_at] for kind in index.shape.kinds)
            n_listed = sum(int(np.count_nonzero(ids == token)) for ids in lists)
            n_paired = 0
            for matrix in MATRICES:
                ids, count = (shard.array(f"{matrix}.{part}")[:, lens_at, :, end_at] for part in ("ids", "count"))
                valid = np.arange(ids.shape[-2]) < count[..., None]  # (n_heads, P, pairs)
                n_paired += int(np.count_nonzero((ids == token) & valid[..., None]))
            found = len(shard.listed(token, lens, end).rank), len(shard.paired(token, lens, end).rank)
            if found != (n_listed, n_paired):
                return f"the inverted lists of token {token} ({lens}, {end})"
    return None


def _distinct_and_ordered(pairs: Ids, falling: Floats) -> bool:
    return len(np.unique(pairs, axis=0)) == len(pairs) and bool((np.diff(falling) <= 0).all())


def _close(exact: Float64, stored: Floats, size: float) -> bool:
    close = np.abs(exact - stored) <= LAST_BIT * np.abs(exact) + 1e-12 * size
    return exact.shape == stored.shape and bool(close.all())
