"""Compute, by the definitions in docs/format.md and in float64, what the build stores about lists: how coherent,
readable and similar they are, which tokens are hubs, and which lens reads best. Also compare the lists of a vector
with its scores."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import VectorLists
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import DIRECTION_KINDS, ENDS
from lexiscope.precompute.verify.brute_force import BruteForce, Float64, Ids
from lexiscope.precompute.weights.difference import Difference

DEPTH, COHERENT_TOKENS, HUB_FACTOR = 100, 20, 10  # as docs/format.md defines them
PAIRS_READ, LIKE_IT = 20, 3  # as docs/format.md defines them
SIMILARITY_K, READ_FIRST = 100, 10  # as docs/format.md defines them
LAST_BIT = 4e-7  # relative error of a score, which is rounded once
SMALLEST_FLOAT32 = 1.5e-45  # the most that rounding to float32 adds to a number near 0
COHERENCE_ERROR = 1e-4  # error of a mean cosine in float32
SIGNS = (1, -1)  # multiplied with these, the scores of either end fall along its list
VECTORS_AT_ONCE = 256  # vectors whose scores are computed at once

Hubs = NDArray[np.bool_]  # (lenses, d_vocab)
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # (n,) each


def ends_of(lists: VectorLists) -> Iterator[tuple[str, int, Array, Floats, float]]:
    """Yield both ends of the lists of a vector: the name of the end, its sign, ids, scores and coherence."""
    coherences = lists.coherence_top, lists.coherence_bottom
    yield from zip(ENDS, SIGNS, lists.ids, lists.scores, coherences, strict=True)


def lists_error(
    name: str,
    lens: str,
    lists: VectorLists,
    scores: Float64,
    off: float,
    left_out: NDArray[np.bool_] | None,
    directions: Float64,
    has_coherence: bool = True,
) -> str | None:
    """Say which list of a vector does not match its scores (d_vocab,), or has another coherence; return None if all is
    right. `off` is how far scores may differ, beside their last bit. Coherences are checked only if `left_out`, the
    tokens that do not count for them, is given; they must be NaN if the vector has none."""
    for end, sign, ids, stored, kept in ends_of(lists):
        best = np.sort(-sign * scores)[: len(ids)] * -sign
        far = np.maximum(np.abs(scores[ids] - stored), np.abs(best - stored))
        right = (far <= LAST_BIT * np.abs(stored) + off + SMALLEST_FLOAT32).all()
        if not right or len(np.unique(ids)) < len(ids) or not falls_in_order(sign * stored, ids):
            return f"{name} ({lens}, {end})"
        if left_out is not None:
            others = first_tokens(scores[None], sign)[0]
            tokens = np.concatenate([ids, others[~np.isin(others, ids)]])[:DEPTH]
            if not same_cosine(kept, coherence(tokens, left_out, directions) if has_coherence else np.nan):
                return f"the coherence of {name} ({lens}, {end})"
    return None


def same_cosine(stored: float, exact: float) -> bool:
    return bool(np.isclose(stored, exact, rtol=0, atol=COHERENCE_ERROR, equal_nan=True))


def falls_in_order(scores: Floats, *ids: Array) -> bool:
    """Return True if scores fall, and ids rise where scores tie."""
    order = np.lexsort((*reversed(ids), -scores))
    return bool((order == np.arange(len(scores))).all())


def first_tokens(scores: Float64, sign: int) -> Ids:
    """Return the first tokens of the lists at one end, (n, DEPTH) or all of them, from scores (n, d_vocab); ties by the
    smaller id."""
    rounded = sign * scores.astype(np.float32)
    return np.argsort(-rounded, axis=1, kind="stable")[:, :DEPTH]


def hubs_of_lists(lists: list[NDArray[np.integer]], d_vocab: int) -> Hubs:
    """Return the hubs of a layer (tokens in an unusual share of its lists), from the lists (n, lenses, ends, DEPTH or
    more) of all its kinds. These lists must be checked in another way."""
    counts = np.zeros((lists[0].shape[1], d_vocab), np.int64)
    for at in range(len(counts)):
        for ids in lists:
            tokens = ids[:, at, :, :DEPTH].ravel()
            counts[at] += np.bincount(tokens[tokens < d_vocab], minlength=d_vocab)
    return _too_often(counts, 2 * sum(map(len, lists)))


def hubs(brute: BruteForce, layer: int, kinds: tuple[str, ...], lenses: tuple[str, ...]) -> Hubs:
    """Return the hubs of a layer (tokens in an unusual share of its lists), from the scores of all vectors of these
    kinds, which is slow in a large model."""
    shape = brute.model.shape
    counts, n_vectors = np.zeros((len(lenses), shape.d_vocab), np.int64), 0
    for kind in kinds:
        n = shape.count(kind)
        for start in range(0, n, VECTORS_AT_ONCE):
            vectors = brute.vectors(layer, kind, np.arange(start, min(start + VECTORS_AT_ONCE, n)))
            if isinstance(brute.model, Difference):
                vectors = vectors[vectors.any(axis=1)]
            n_vectors += len(vectors)
            for at, lens in enumerate(lenses):
                scores = vectors @ brute.embedding(kind, lens).T
                for sign in (1, -1):
                    counts[at] += np.bincount(first_tokens(scores, sign).ravel(), minlength=shape.d_vocab)
    return _too_often(counts, 2 * n_vectors)


def _too_often(counts: NDArray[np.int64], n_lists: int) -> Hubs:
    """Return the tokens that are in more than HUB_FACTOR times as many lists (`n_lists`, both ends counted) as chance
    would give."""
    d_vocab = counts.shape[1]
    return np.asarray(counts > HUB_FACTOR * min(DEPTH, d_vocab) / d_vocab * n_lists)


def coherence(tokens: Ids, left_out: NDArray[np.bool_], directions: Float64) -> float:
    """Compute the coherence of one list; NaN without two tokens to compare. `directions` are centred, normalised
    embeddings."""
    kept = [t for t in tokens if not left_out[t] and directions[t].any()][:COHERENT_TOKENS]
    cosines = directions[kept] @ directions[kept].T
    above = cosines[np.triu_indices(len(kept), 1)]
    return float(above.mean()) if above.size else np.nan


def pair_coherence(pairs: Ids, left_out: NDArray[np.bool_], source: Float64, target: Float64) -> float:
    """Compute the coherence of a list of pairs: the mean of the coherences of its two sides, at which each token counts
    once."""
    sides = [list(dict.fromkeys(pairs[:, side].tolist())) for side in (0, 1)]
    from_, to = (np.array(side, np.int64) for side in sides)
    return (coherence(from_, left_out, source) + coherence(to, left_out, target)) / 2


def readability(pairs: Ids, source: Float64, target: Float64) -> float:
    """Compute how well the first pairs can be read; NaN without pairs. `source` and `target` are centred, normalised
    embeddings."""
    values = []
    first = pairs[:PAIRS_READ].tolist()
    for at, (a, b) in enumerate(first):
        others = first[:at] + first[at + 1 :]
        like = sorted((source[a] @ source[x]) * (target[b] @ target[y]) for x, y in others)[-LIKE_IT:]
        values.append(max([source[a] @ source[b], *([np.mean(like)] if like else [])]))
    return float(np.mean(values)) if values else np.nan


def partners(n: int) -> Ids:
    """Return for each of n first lists the number of the second list that it is compared with when the lists are
    shuffled."""
    order = np.random.RandomState(0).permutation(n).tolist()
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return np.array([following[number] for number in range(n)], np.int64)


def bounds(brute: BruteForce, layer: int, kinds: tuple[str, str], rows: tuple[Ids, Ids], lens: str, end: int) -> Bounds:
    """Return the smallest and the largest possible similarity of the top list of these vectors of the first kind with
    one end of these vectors of the second kind: the last bit of a score may decide whether a token is in a list."""
    surely_first, maybe_first = _listed(brute, layer, kinds[0], rows[0], lens, 1)
    surely_second, maybe_second = _listed(brute, layer, kinds[1], rows[1], lens, SIGNS[end])
    n = min(SIMILARITY_K, brute.model.shape.d_vocab)
    least = (surely_first & surely_second).sum(axis=1)
    most = np.minimum((maybe_first & maybe_second).sum(axis=1), n)
    return least / (2 * n - least) - LAST_BIT, most / (2 * n - most) + LAST_BIT


def vectors_that_count(shard: Shard, stored: Stored, kind: str) -> NDArray[np.bool_]:
    """Return flags (n,) of the vectors of a kind whose lists count: in a difference those that changed, of directions
    those that exist."""
    norms = shard.all_norms(kind)
    return norms > 0 if stored.difference or kind in DIRECTION_KINDS else np.ones(len(norms), np.bool_)


def lists_that_count(shard: Shard, stored: Stored, kind: str) -> NDArray[np.integer]:
    """Return the stored lists of a kind that count, (n, lenses, ends, k)."""
    return shard.array(f"{kind}.ids")[vectors_that_count(shard, stored, kind)]


def best_lens(index: Index, words: NDArray[np.bool_]) -> str:
    """Return the lens that reads best, from the stored lists of all layers, which other checks cover."""
    stored, d_vocab = index.stored, index.shape.d_vocab
    shares: dict[str, Fraction] = {}
    for at, lens in enumerate(stored.lenses):
        in_lists, among_first, n_lists = np.zeros(d_vocab, np.int64), np.zeros(d_vocab, np.int64), 0
        for layer in index.layers:
            for kind in stored.counted_kinds:
                ids = lists_that_count(index.shard(layer), stored, kind)[:, at]  # (n, ends, k)
                in_lists += np.bincount(ids.ravel(), minlength=d_vocab)
                among_first += np.bincount(ids[..., :READ_FIRST].ravel(), minlength=d_vocab)
                n_lists += 2 * len(ids)
        is_hub = in_lists > HUB_FACTOR * stored.k / d_vocab * n_lists
        shares[lens] = Fraction(int(among_first[words & ~is_hub].sum()), max(1, int(among_first.sum())))
    return next(lens for lens in stored.lenses if shares[lens] == max(shares.values()))


def _listed(
    brute: BruteForce, layer: int, kind: str, numbers: Ids, lens: str, sign: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return flags of the tokens that surely are among the first SIMILARITY_K, and of those that may be: (len(numbers),
    d_vocab) each."""
    vectors = brute.vectors(layer, kind, numbers)
    scores = sign * (vectors @ brute.embedding(kind, lens).T)
    k = min(SIMILARITY_K, scores.shape[1])
    last = np.partition(scores, -k, axis=1)[:, [-k]]
    doubt = LAST_BIT * np.abs(last) + 1e-12 * np.abs(scores).max(axis=1, keepdims=True) + SMALLEST_FLOAT32
    # In a difference, vectors of 0 share no token.
    counts = vectors.any(axis=1, keepdims=True) | (not isinstance(brute.model, Difference))
    return (scores > last + doubt) & counts, (scores >= last - doubt) & counts
