"""Invert lists: for each token, find the vectors and head pairs that list it, best rank first."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.layout import number_dtype, rank_dtype
from lexiscope.precompute.shape import MATRICES

Array: TypeAlias = NDArray[Any]


def invert_lists(ids: Sequence[Array], d_vocab: int, listed: NDArray[np.bool_] | None = None) -> dict[str, Array]:
    """Make the arrays `inverted.*` from the arrays `{kind}.ids` (n, lenses, ends, k) of all kinds, in the order of
    Shape.kinds. All vectors are inverted, or only those that are flagged in `listed` (n_vectors,)."""
    n_vectors = sum(len(kind) for kind in ids)
    _, n_lenses, n_ends, k = ids[0].shape
    offsets = np.empty((n_lenses, n_ends, d_vocab + 1), np.uint32)
    numbers = np.arange(n_vectors) if listed is None or listed.all() else np.flatnonzero(listed)
    vectors, ranks = [], []
    start = 0
    for lens, end in np.ndindex(n_lenses, n_ends):
        tokens = np.concatenate([kind[:, lens, end].T for kind in ids], axis=1)  # (k, n_vectors), by rank
        if len(numbers) < n_vectors:
            tokens = tokens[:, numbers]
        order, offsets[lens, end] = _by_token(tokens.ravel(), d_vocab, start)
        rank, column = np.divmod(order, max(1, len(numbers)))
        vector = column if len(numbers) == n_vectors else numbers[column]
        vectors.append(vector.astype(number_dtype(n_vectors)))
        ranks.append(rank.astype(rank_dtype(k)))
        start += len(order)
    return {
        "inverted.offsets": offsets,
        "inverted.vector": np.concatenate(vectors),
        "inverted.rank": np.concatenate(ranks),
    }


def invert_pairs(ids: Mapping[str, Array], counts: Mapping[str, Array], d_vocab: int) -> dict[str, Array]:
    """Make the arrays `paired.*` from the ids (n_heads, lenses, presets, ends, pairs, 2) and the counts (n_heads,
    lenses, presets, ends) of the matrices vo and qk."""
    # (n_heads, matrices, lenses, presets, ends, pairs, 2)
    both = np.stack([ids[matrix] for matrix in MATRICES], axis=1)
    valid = np.stack([counts[matrix] for matrix in MATRICES], axis=1)  # (n_heads, matrices, lenses, presets, ends)
    n_heads, n_matrices, n_lenses, n_presets, n_ends, n_pairs, n_sides = both.shape
    grid = (n_pairs, n_heads, n_matrices, n_presets, n_sides)
    offsets = np.empty((n_lenses, n_ends, d_vocab + 1), np.uint32)
    places, ranks = [], []
    start = 0
    for lens, end in np.ndindex(n_lenses, n_ends):
        tokens = both[:, :, lens, :, end].transpose(3, 0, 1, 2, 4)  # (pairs, n_heads, matrices, presets, sides)
        # (pairs, n_heads, matrices, presets)
        listed = np.arange(n_pairs)[:, None, None, None] < valid[:, :, lens, :, end]
        positions = np.flatnonzero(np.broadcast_to(listed[..., None], grid))
        order, offsets[lens, end] = _by_token(tokens.ravel()[positions], d_vocab, start)
        rank, head, matrix, preset, side = np.unravel_index(positions[order], grid)
        places.append(np.stack([head, matrix, preset, side], axis=1).astype(np.uint16))
        ranks.append(rank.astype(np.uint32))
        start += len(order)
    return {"paired.offsets": offsets, "paired.place": np.concatenate(places), "paired.rank": np.concatenate(ranks)}


def _by_token(tokens: Array, d_vocab: int, start: int) -> tuple[NDArray[np.intp], Array]:
    """Sort the positions of a list by the token at each position, keeping the order of equal tokens. Return them, and
    where the positions of each token begin."""
    order = np.argsort(tokens, kind="stable")  # stable, which for uint16 is a fast radix sort
    counts = np.bincount(tokens, minlength=d_vocab)
    if len(counts) > d_vocab:
        raise ValueError(f"token id {len(counts) - 1} in a list over {d_vocab} tokens")
    offsets = np.zeros(d_vocab + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return order, (offsets + start).astype(np.uint32)
