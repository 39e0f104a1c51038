"""Compute how coherent and how readable lists are, by FORMAT.md and in float64, to check what the build stores."""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.verify.brute_force import BruteForce, Float64, Ids
from lexiscope.precompute.weights.difference import Difference

DEPTH, FIRST_TOKENS, HUB_FACTOR = 100, 20, 10  # as FORMAT.md defines them
FIRST_PAIRS, LIKE_IT = 20, 3  # as FORMAT.md defines them
BLOCK = 256  # vectors whose scores are computed at once

Hubs = NDArray[np.bool_]  # (lenses, d_vocab)


def first_tokens(scores: Float64, sign: int) -> Ids:
    """Return the first tokens of the lists at one end, (n, DEPTH or all), from scores (n, d_vocab); ties by the smaller
    id."""
    rounded = sign * scores.astype(np.float32)
    return np.argsort(-rounded, axis=1, kind="stable")[:, :DEPTH]


def hubs_of_lists(lists: list[NDArray[np.integer]], d_vocab: int) -> Hubs:
    """Find hubs by the lists (n, L, E, DEPTH or more) of all kinds of a layer, which must be checked in another way."""
    counts = np.zeros((lists[0].shape[1], d_vocab), np.int64)
    for at in range(len(counts)):
        for ids in lists:
            tokens = ids[:, at, :, :DEPTH].ravel()
            counts[at] += np.bincount(tokens[tokens < d_vocab], minlength=d_vocab)
    return _too_often(counts, 2 * sum(map(len, lists)))


def hubs(brute: BruteForce, layer: int, kinds: tuple[str, ...], lenses: tuple[str, ...]) -> Hubs:
    """Find hubs by the scores of all vectors of these kinds in the layer, which is slow in a large model."""
    shape = brute.model.shape
    counts, n_vectors = np.zeros((len(lenses), shape.d_vocab), np.int64), 0
    for kind in kinds:
        n = shape.count(kind)
        for start in range(0, n, BLOCK):
            vectors = brute.vectors(layer, kind, np.arange(start, min(start + BLOCK, n)))
            if isinstance(brute.model, Difference):
                vectors = vectors[vectors.any(axis=1)]
            n_vectors += len(vectors)
            for at, lens in enumerate(lenses):
                scores = vectors @ brute.embedding(kind, lens).T
                for sign in (1, -1):
                    counts[at] += np.bincount(first_tokens(scores, sign).ravel(), minlength=shape.d_vocab)
    return _too_often(counts, 2 * n_vectors)


def _too_often(counts: NDArray[np.int64], n_lists: int) -> Hubs:
    """Return the tokens in more than HUB_FACTOR times as many lists, both ends of a vector counted, as chance would
    give."""
    d_vocab = counts.shape[1]
    return np.asarray(counts > HUB_FACTOR * min(DEPTH, d_vocab) / d_vocab * n_lists)


def coherence(tokens: Ids, left_out: NDArray[np.bool_], directions: Float64) -> float:
    """Compute the coherence of one list; NaN without two tokens to compare. `directions` are centred, normalised
    embeddings."""
    kept = [t for t in tokens if not left_out[t] and directions[t].any()][:FIRST_TOKENS]
    cosines = directions[kept] @ directions[kept].T
    above = cosines[np.triu_indices(len(kept), 1)]
    return float(above.mean()) if above.size else np.nan


def pair_coherence(pairs: Ids, left_out: NDArray[np.bool_], source: Float64, target: Float64) -> float:
    """Compute the mean of the coherences of both sides, each token taken once."""
    sides = [list(dict.fromkeys(pairs[:, side].tolist())) for side in (0, 1)]
    from_, to = (np.array(side, np.int64) for side in sides)
    return (coherence(from_, left_out, source) + coherence(to, left_out, target)) / 2


def readability(pairs: Ids, source: Float64, target: Float64) -> float:
    """Compute how well the first pairs can be read; NaN without pairs. `source` and `target` are centred, normalised
    embeddings."""
    values = []
    first = pairs[:FIRST_PAIRS].tolist()
    for at, (a, b) in enumerate(first):
        others = first[:at] + first[at + 1 :]
        like = sorted((source[a] @ source[x]) * (target[b] @ target[y]) for x, y in others)[-LIKE_IT:]
        values.append(max([source[a] @ source[b], *([np.mean(like)] if like else [])]))
    return float(np.mean(values)) if values else np.nan
