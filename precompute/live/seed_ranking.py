"""Compute the query that seed words give (section 4.1 of the paper), and rank vectors by it in a plain way.

Under the lens dot, the paper's, q is the weighted mean of the words' centred embeddings, and a vector's score is q · v.
Under the lens cosine, the centred embeddings are set to length one first, and the score is q · v / |v|, the weighted
mean of the words' cosines with v, so that only directions count. A vector of length 0 has the score 0.

The ranking reads a model layer by layer, for a command; the module `seeds` answers many visitors from memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.seed_words import Seed as Seed
from lexiscope.precompute.live.seed_words import find_seed as find_seed
from lexiscope.precompute.project.embedding import ROUNDING_SHARE, SMALLEST_NORM, Float32, Float64
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.difference import Parameters


@dataclass(frozen=True)
class Ranked:
    kind: str
    layer: int
    index: int
    score: float


def query(W: Float32, seeds: list[Seed], lens: str = "dot") -> Float64:
    """Return q (d_model,): the weighted mean of the words' embeddings, centred by the mean row of W and, under the lens
    cosine, set to length one. The embedding of a word of several pieces is the mean of its pieces."""
    if wrong := [token for seed in seeds for token in seed.tokens if token >= len(W)]:
        raise NotFound(f"token {wrong[0]} has no embedding: the model has {len(W)}")
    words = np.stack([W[list(seed.tokens)].astype(np.float64).mean(axis=0) for seed in seeds])  # (seeds, d_model)
    mean = W.mean(axis=0, dtype=np.float64)
    terms = words - mean
    if lens == "cosine":
        terms = np.stack([direction(word, mean, seed.word) for word, seed in zip(words, seeds, strict=True)])
    return weighted_mean(terms, np.array([seed.weight for seed in seeds]))


def direction(e: Float64, mean: Float64, name: str) -> Float64:
    """Centre e (d_model,) and scale it to length one, as the lens cosine does. Raise BadRequest, which mentions `name`,
    if it has no direction."""
    centred = e - mean
    length = np.linalg.norm(centred)
    if length <= ROUNDING_SHARE * (np.linalg.norm(e) + np.linalg.norm(mean)) + SMALLEST_NORM:
        raise BadRequest(f"{name!r} has no direction: it stands at the mean of all tokens. Use the lens dot.")
    return np.asarray(centred / length)


def inverse_lengths(vectors: Float32) -> Float64:
    """Return 1 / |v| for each vector v of (n, d_model), in float64; 0 for a vector without a direction."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.asarray(np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > SMALLEST_NORM))


def weighted_mean(terms: Float64, weights: Float64) -> Float64:
    """Return the sum of weight * term / sum of |weight| for terms (terms, d_model) and weights (terms,); raise
    BadRequest if the terms cancel each other up to rounding."""
    q = np.asarray(weights @ terms / np.abs(weights).sum())
    if len(terms) > 1 and np.linalg.norm(q) <= 1e-9 * np.linalg.norm(terms, axis=1).max():
        raise BadRequest("the seeds cancel each other out: nothing is left to search for")
    return q


def rank_by_seeds(
    model: Parameters, seeds: list[Seed], kinds: Iterable[str], n: int, lens: str = "dot"
) -> list[Ranked]:
    """Return the n vectors of these kinds, over all layers, with the largest scores; ties by kind, layer and index."""
    queries = {side: query(W.numpy(), seeds, lens) for side, W in (("reads", model.W_E), ("writes", model.W_U))}
    ranked: list[Ranked] = []
    for kind in dict.fromkeys(kinds):
        for layer in range(model.shape.n_layers):
            vectors = model.vectors(layer, kind).numpy()
            scores = vectors.astype(np.float64) @ queries[SIDES[kind]]
            if lens == "cosine":
                scores *= inverse_lengths(vectors)
            best = np.argsort(-scores, kind="stable")[:n]
            ranked += [Ranked(kind, layer, int(index), float(scores[index])) for index in best]
    return sorted(ranked, key=lambda r: (-r.score, r.kind, r.layer, r.index))[:n]
