"""Measure how coherent a list of tokens is: how close its tokens are to each other in the embedding.

Hubs, tokens that are in an unusual share of a layer's lists, say nothing about a single vector and are left out. Hubs
and coherence are always computed from the first DEPTH tokens of a list, whether an index stores fewer or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Embedding, Float32
from lexiscope.precompute.shape import HUB_FACTOR

DEPTH = 100  # tokens of a list that are used; the k of the paper's Sim_k
COHERENT_TOKENS = 20  # tokens that count for coherence: the first that are not hubs
DIRECTIONS_AT_ONCE = 4096

Ids = NDArray[np.integer]


@dataclass(frozen=True)
class Directions:
    """The embeddings of a vocabulary, to be compared with each other: each is centred and set to length one when it is
    used."""

    embedding: Embedding
    missing: NDArray[np.bool_]  # (d_vocab,) the tokens without a direction

    @classmethod
    def of(cls, embedding: Embedding) -> "Directions":
        missing = np.empty(len(embedding.rows), np.bool_)
        for start in range(0, len(missing), DIRECTIONS_AT_ONCE):
            some = slice(start, start + DIRECTIONS_AT_ONCE)
            missing[some] = ~embedding.directions(some).any(dim=1).cpu().numpy()
        return cls(embedding, missing)


def hubs(ids: Sequence[Ids], d_vocab: int) -> NDArray[np.bool_]:
    """Return the hubs of one layer, tokens in an unusual share of its lists, as flags (lenses, d_vocab). `ids` are the
    lists (n, lenses, ends, depth) of the vectors of each kind."""
    lenses, depth = ids[0].shape[1], ids[0].shape[3]
    lists = sum(kind.shape[0] * kind.shape[2] for kind in ids)
    counts = [sum(np.bincount(kind[:, lens].ravel(), minlength=d_vocab) for kind in ids) for lens in range(lenses)]
    return np.asarray(np.stack(counts) > HUB_FACTOR * depth / d_vocab * lists)


def coherence(ids: Ids, left_out: NDArray[np.bool_], directions: Directions) -> Float32:
    """Return the mean pairwise cosine (n,) of the first tokens of each list, ids (n, k).

    Tokens that are flagged in `left_out` (d_vocab,), such as hubs, and tokens without a direction do not count. The
    result is NaN where fewer than two tokens are left.
    """
    first, weight = _first_tokens(ids, left_out | directions.missing)
    embedding, out = directions.embedding, np.empty(len(ids), np.float32)
    mean, inverse = embedding.mean.astype(np.float32), embedding.inverse_norm.astype(np.float32)
    _mean_cosines(first, weight, embedding.rows, mean, inverse, out)
    return out


@kernel()
def _mean_cosines(
    first: NDArray[np.int64],  # (n, COHERENT_TOKENS)
    weight: Float32,  # (n, COHERENT_TOKENS) 1 for the tokens that count
    rows: Float32,  # (d_vocab, d_model)
    mean: Float32,  # (d_model,)
    inverse: Float32,  # (d_vocab,)
    out: Float32,  # (n,)
) -> None:
    """Set `out` to mean cosines, by |u_1 + ... + u_m|² = m + the sum over ordered pairs of u_i · u_j. Directions u are
    computed one at a time: those of a whole vocabulary would take as much memory as the vocabulary."""
    total = np.empty(rows.shape[1], np.float32)
    for n in range(len(first)):
        total[:] = 0
        count = 0
        for at in range(first.shape[1]):
            if weight[n, at]:
                count += 1
                token = np.uint64(first[n, at])
                scale = inverse[token]
                for x in range(np.uint64(len(total))):  # unsigned: so the loop can be vectorised
                    total[x] += (rows[token, x] - mean[x]) * scale
        square = 0.0
        for x in range(len(total)):
            square += np.float64(total[x]) * np.float64(total[x])
        out[n] = (square - count) / (count * (count - 1)) if count > 1 else np.nan


def pair_coherence(pairs: Ids, left_out: NDArray[np.bool_], source: Directions, target: Directions) -> np.float32:
    """Return the coherence of a list of pairs (n, 2): the mean of the coherences of its two sides, each computed from
    the first distinct tokens at that side."""
    sides = []
    for side, directions in enumerate((source, target)):
        _, first_rank = np.unique(pairs[:, side], return_index=True)
        tokens = pairs[np.sort(first_rank), side][None]
        sides.append(coherence(tokens, left_out, directions)[0] if tokens.size else np.float32(np.nan))
    return np.float32(np.mean(sides))


def _first_tokens(ids: Ids, left_out: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Float32]:
    """Return the first COHERENT_TOKENS tokens of each list that are not left out, and their weights,
    (n, COHERENT_TOKENS) each. A list with fewer tokens is filled up with token 0 at weight 0."""
    kept = ~left_out[ids]
    position = np.cumsum(kept, axis=1) - 1  # among those kept
    row, rank = np.nonzero(kept & (position < COHERENT_TOKENS))
    tokens = np.zeros((len(ids), COHERENT_TOKENS), np.int64)
    weight = np.zeros((len(ids), COHERENT_TOKENS), np.float32)
    tokens[row, position[row, rank]] = ids[row, rank]
    weight[row, position[row, rank]] = 1
    return tokens, weight
