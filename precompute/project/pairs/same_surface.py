"""Add to a leaderboard the pairs of tokens that have the same surface, such as " dog" and "Dog": all pairs of a small
group, and of a large group those that a search finds. Large groups are mostly embedding rows that belong to no token.
Pairs are scored in pieces, so that thousands of such rows need no more memory than a few."""

import hashlib

import numpy as np
import torch

from lexiscope.precompute.project.embedding import Embedding, Float32, Int32
from lexiscope.precompute.project.pairs.coordinates import BalancedSide, as_columns, as_rows
from lexiscope.precompute.project.pairs.factor import Factor, underflow_error
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.project.pairs.search import Search
from lexiscope.precompute.project.pairs.strips import row_dots
from lexiscope.precompute.project.pairs.tiles import search_tiles
from lexiscope.precompute.project.rounding import gamma

CHUNK_PAIRS = 1 << 18  # pairs that are scored at once


def add_small_groups(A: Factor, B: Factor, masks: Masks, board: Leaderboard) -> None:
    a, b, a_error, b_error = (x.cpu().numpy() for x in (A.values, B.values, A.error, B.error))
    relative, absolute = gamma(A.values.shape[1] + 8), underflow_error(A, B)
    for start in range(0, len(masks.same_from), CHUNK_PAIRS):
        i, j = masks.same_from[start : start + CHUNK_PAIRS], masks.same_to[start : start + CHUNK_PAIRS]
        board.add(i, j, *row_dots(a, b, a_error, b_error, i, j, relative, absolute))


def search_large_groups(
    sides: tuple[BalancedSide, BalancedSide],
    source: Embedding,
    target: Embedding,
    masks: Masks,
    board: Leaderboard,
    exhaustive: bool,
) -> None:
    a, b = sides
    row_surface, column_surface = np.zeros_like(masks.surface), np.ones_like(masks.surface)  # never equal
    for group in masks.large:
        rows, columns = (first_of_equals(side.rows, group, board.n) for side in (source, target))
        Search(as_rows(a, rows, row_surface), as_columns(b, columns, column_surface), [board], exhaustive).run()


def search_large_groups_on_device(
    A: Factor, B: Factor, source: Embedding, target: Embedding, masks: Masks, board: Leaderboard
) -> None:
    for group in masks.large:
        rows, columns = (
            torch.from_numpy(first_of_equals(side.rows, group, board.n)).to(A.values.device)
            for side in (source, target)
        )
        search_tiles(A, B, rows, columns, None, [board])


def first_of_equals(embedding: Float32, tokens: Int32, n: int) -> Int32:
    """Return the tokens, whose ids rise, except those whose embedding equals the embeddings of n tokens with smaller
    ids: for each pair of such a token there are n pairs with the same score that come before it.

    Unused rows of an embedding are often all equal, and no bound rules out pairs whose scores tie.
    """
    seen: dict[bytes, int] = {}
    kept = []
    for token in tokens:
        key = hashlib.blake2b(embedding[token], digest_size=16).digest()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= n:
            kept.append(token)
    return np.array(kept, np.int32)
