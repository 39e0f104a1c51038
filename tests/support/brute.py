"""Compute lists and pairs by their definitions: every score in float64, rounded to float32, all of them sorted. This is
plain numpy without any of the code under test: slow, and good for small vocabularies only."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Ends: TypeAlias = tuple[tuple[Array, Array], tuple[Array, Array]]  # (pairs, scores) at the top, at the bottom


def lensed(E: Array, lens: str) -> tuple[Array, Array]:
    """Return rows and factors: a score under a lens is the rows' product times the tokens' factors."""
    rows = E.astype(np.float64)
    if lens == "dot":
        return rows, np.ones(len(rows))
    mean = rows.mean(axis=0)
    centred = rows - mean
    length = np.sqrt((centred**2).sum(axis=1))
    noise = 1e-9 * (np.sqrt((rows**2).sum(axis=1)) + np.sqrt((mean**2).sum()))
    pointed = length > noise + 1e-37  # a row that equals the mean has no direction, and its scores are 0
    return np.where(pointed[:, None], centred, 0.0), np.where(pointed, 1 / np.where(pointed, length, 1), 0.0)


def rounded(scores: Array) -> Array:
    return scores.astype(np.float32) + np.float32(0)


def vector_scores(E: Array, V: Array, lens: str) -> Array:
    """Return all scores, (n, d_vocab) in float64; equal rows of E have equal scores."""
    different, place = np.unique(E + np.float32(0), axis=0, return_inverse=True)
    rows, factor = lensed(E, lens)
    first = np.zeros(len(different), np.int64)
    first[place.ravel()] = np.arange(len(E))
    return (V.astype(np.float64) @ rows[first].T)[:, place.ravel()] * factor


def vector_lists(E: Array, V: Array, k: int) -> tuple[Array, Array]:
    """Return ids and scores (n, lens, end, k); ties by the smaller id."""
    lists = []
    for lens in ("dot", "cosine"):
        scores = rounded(vector_scores(E, V, lens))
        orders = [np.argsort(-sign * scores, axis=1, kind="stable")[:, :k] for sign in (1, -1)]
        lists.append([(order, np.take_along_axis(scores, order, axis=1)) for order in orders])
    ids = np.stack([np.stack([ids for ids, _ in ends], axis=1) for ends in lists], axis=1)
    return ids, np.stack([np.stack([scores for _, scores in ends], axis=1) for ends in lists], axis=1)


def pair_matrix(source: Array, target: Array, W_left: Array, W_right: Array, lens: str) -> Array:
    """Return e_i W_left · e_j W_right of all tokens, (d_vocab, d_vocab) in float64; equal rows have equal scores."""
    sides = []
    for E, W in ((source, W_left), (target, W_right)):
        rows, factor = lensed(E, lens)
        different, place = np.unique(rows + 0.0, axis=0, return_inverse=True)
        sides.append((different @ W.astype(np.float64), place.ravel(), factor))
    (A, i, a_factor), (B, j, b_factor) = sides
    scores: Array = (A @ B.T)[i][:, j] * (a_factor[:, None] * b_factor)
    return scores


def preset_masks(surface: Array, words: Array) -> dict[str, Array]:
    distinct = surface[:, None] != surface
    return {"all": np.ones_like(distinct), "distinct": distinct, "words": distinct & words[:, None] & words}


def best_pairs(scores: Array, mask: Array, n: int) -> Ends:
    """Return the n largest and the n smallest of float32 scores under a mask; ties by the smaller ids."""
    places = np.flatnonzero(mask)  # in the order of ties
    listed = scores.ravel()[places]
    ends = []
    for sign in (1, -1):
        size = -sign * listed
        few = np.arange(len(size))
        if len(size) > n:  # keep the pairs that are not worse than the n-th, and spare sorting the rest
            few = np.flatnonzero(size <= np.partition(size, n - 1)[n - 1])
        order = few[np.argsort(size[few], kind="stable")][:n]
        pairs = np.stack(np.divmod(places[order], scores.shape[1]), axis=1)
        ends.append((pairs, listed[order]))
    return ends[0], ends[1]


def top_pairs(
    source: Array, target: Array, W_left: Array, W_right: Array, lens: str, surface: Array, words: Array, n: int
) -> dict[str, Ends]:
    scores = rounded(pair_matrix(source, target, W_left, W_right, lens))
    return {preset: best_pairs(scores, mask, n) for preset, mask in preset_masks(surface, words).items()}


def coherence(ids: Array, left_out: Array, E: Array, first: int) -> Array:
    """Return for each list (n, k) the mean cosine of two of its first tokens that are not left out; NaN without two."""
    rows, factor = lensed(E, "cosine")
    directions = rows * factor[:, None]
    means = []
    for tokens in ids:
        kept = [t for t in tokens if not left_out[t] and directions[t].any()][:first]
        cosines = [directions[s] @ directions[t] for at, s in enumerate(kept) for t in kept[at + 1 :]]
        means.append(np.mean(cosines) if cosines else np.nan)
    return np.array(means)


def readability(pairs: Array, E: Array, F: Array) -> float:
    """Compute the readability of the first 20 pairs: the mean of the larger of the pair's cosine in E and the mean of
    three products of cosines with another pair, in E of the first and in F of the second tokens; NaN without pairs."""
    in_E, in_F = cosines(E), cosines(F)
    values = []
    first = pairs[:20].tolist()
    for at, (a, b) in enumerate(first):
        like = sorted(in_E[a, x] * in_F[b, y] for other, (x, y) in enumerate(first) if other != at)[-3:]
        values.append(max(in_E[a, b], sum(like) / len(like)) if like else in_E[a, b])
    return sum(values) / len(values) if values else np.nan


def cosines(W: Array) -> Array:
    """Return the cosines of centred rows, (d_vocab, d_vocab); 0 for a row that equals the mean."""
    rows, factor = lensed(W, "cosine")
    return np.asarray(rows @ rows.T * factor * factor[:, None])
