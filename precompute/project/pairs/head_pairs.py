"""Find the top pairs of one head's matrix under one lens, for all presets and both ends. The pair search begins here.

Presets say which pairs may be on a list; all three come from one pass over the matrix. `distinct`, which the search
finds, has no pairs of one surface, such as (" dog", "Dog"). `words` comes from the corner of the matrix where both
tokens are whole words, which is searched first and with floors of its own; the rest is searched with the floors of
`distinct`. `all` adds the few pairs of one surface. A floor is the score that a pair must reach to be on a list.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.project import exact
from lexiscope.precompute.project.embedding import Embedding, Float32, Float64, Int32
from lexiscope.precompute.project.pairs.coordinates import BalancedSide, as_columns, as_rows, balance
from lexiscope.precompute.project.pairs.factor import Factor, all_scores_are_zero, scaled_factor
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard, PairList
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.project.pairs.same_surface import (
    add_small_groups,
    search_large_groups,
    search_large_groups_on_device,
)
from lexiscope.precompute.project.pairs.search import LARGEST_SCORE, Search
from lexiscope.precompute.project.pairs.tiles import search_tiles
from lexiscope.precompute.shape import PRESETS

Ends = tuple[PairList, PairList]  # the pairs of the top, those of the bottom

LARGEST_FACTOR = 1e16  # the squares of a whole vocabulary's rows must add up in float32


@dataclass(frozen=True)
class Matrix:
    """A head's matrix W_V W_O or W_Q W_Kᵀ as two factors that are never multiplied out. With the embeddings e,
    score(i, j) = e_i W_left · e_j W_right."""

    source: Embedding
    target: Embedding
    W_left: Float32 | Float64  # (d_model, d_head)
    W_right: Float32 | Float64  # (d_model, d_head)
    left: torch.Tensor  # (d_head, d_vocab) float32 product of W_leftᵀ with the source embedding
    right: torch.Tensor  # (d_head, d_vocab) of W_rightᵀ with the target embedding


def top_pairs(matrix: Matrix, masks: Masks, lens: str, n: int, exhaustive: bool = False) -> dict[str, Ends]:
    """Return, for each preset, the pairs with the n largest and the n smallest scores. They are exact; equal scores are
    ordered by the smaller ids."""

    def exact_scores(i: Int32, j: Int32) -> Float32:
        return exact.pair_scores(matrix.source, matrix.target, matrix.W_left, matrix.W_right, lens, i, j)

    A = scaled_factor(matrix.left, matrix.W_left, matrix.source, lens)
    B = scaled_factor(matrix.right, matrix.W_right, matrix.target, lens)
    if A is None or B is None:
        return _all_zero(masks, n)
    _check_size(A.largest / A.scale, B.largest / B.scale, A.values.shape[1])
    if all_scores_are_zero(A, B):
        return _all_zero(masks, n)
    boards = {preset: Leaderboard(n, exact_scores, A.scale * B.scale) for preset in PRESETS}
    if matrix.left.device.type == "cpu":
        sides = balance(A, B)
        _search(sides, masks, boards["words"], boards["distinct"], exhaustive)
        boards["all"].add(*boards["distinct"].candidates())
        search_large_groups(sides, matrix.source, matrix.target, masks, boards["all"], exhaustive)
    else:
        search_on_device(A, B, masks, boards["words"], boards["distinct"])
        boards["all"].add(*boards["distinct"].candidates())
        search_large_groups_on_device(A, B, matrix.source, matrix.target, masks, boards["all"])
    add_small_groups(A, B, masks, boards["all"])
    return {preset: board.best() for preset, board in boards.items()}


def _check_size(a: float, b: float, d_head: int) -> None:
    """Raise an error if scores would overflow; a and b are the largest values of the two factors."""
    if not a * b * d_head < LARGEST_SCORE:
        raise BadWeights(
            "a head's weights are so large that its scores overflow float32: no list can be made from them"
        )
    if not max(a, b) * d_head**0.5 < LARGEST_FACTOR:
        raise BadWeights(
            f"a head's weights give one side of its scores a size of {max(a, b):.2g}: the sums of a search over it "
            "overflow float32, and no list can be made from them, although its scores may be small"
        )


def _search(
    sides: tuple[BalancedSide, BalancedSide], masks: Masks, words: Leaderboard, distinct: Leaderboard, exhaustive: bool
) -> None:
    """Search the four rectangles of a matrix whose rows are words or other tokens, and whose columns are words or other
    tokens; words with words first."""
    a, b = sides
    word_ids, other_ids = (np.flatnonzero(mask).astype(np.int32) for mask in (masks.words, ~masks.words))
    groups = [tokens for tokens in (word_ids, other_ids) if len(tokens)]
    rows = [as_rows(a, tokens, masks.surface) for tokens in groups]
    columns = [as_columns(b, tokens, masks.surface) for tokens in groups]
    for i, j in np.ndindex(len(groups), len(groups)):
        both_words = i == j == 0 and len(word_ids)
        Search(rows[i], columns[j], [words, distinct] if both_words else [distinct], exhaustive).run()


def search_on_device(A: Factor, B: Factor, masks: Masks, words: Leaderboard, distinct: Leaderboard) -> None:
    """Search by whole products, tile by tile, which every device can do."""
    device = A.values.device
    surface = torch.from_numpy(masks.surface).to(device)
    word_ids = torch.from_numpy(np.flatnonzero(masks.words)).to(device)
    all_ids = torch.arange(len(masks.surface), device=device)
    search_tiles(A, B, word_ids, word_ids, surface, [words])
    search_tiles(A, B, all_ids, all_ids, surface, [distinct])


def _all_zero(masks: Masks, n: int) -> dict[str, Ends]:
    """Return the lists for a matrix whose scores are all 0: they hold the pairs with the smallest ids."""

    def distinct_from(i: int) -> NDArray[np.bool_]:
        return np.asarray(masks.surface != masks.surface[i])

    all_tokens = np.ones(len(masks.surface), bool)
    presets = {
        "all": _first_pairs(all_tokens, lambda _: all_tokens, n),
        "distinct": _first_pairs(all_tokens, distinct_from, n),
        "words": _first_pairs(masks.words, lambda i: distinct_from(i) & masks.words, n),
    }
    zeros = {preset: PairList(pairs, np.zeros(len(pairs), np.float32)) for preset, pairs in presets.items()}
    return {preset: (pairs, pairs) for preset, pairs in zeros.items()}


def _first_pairs(rows: NDArray[np.bool_], allowed: Callable[[int], NDArray[np.bool_]], n: int) -> Int32:
    """Return the n pairs (n, 2) with the smallest ids whose row is flagged in `rows`, and whose column `allowed`
    permits for that row."""
    pairs: list[tuple[int, int]] = []
    for i in np.flatnonzero(rows):
        pairs += [(int(i), int(j)) for j in np.flatnonzero(allowed(int(i)))[: n - len(pairs)]]
        if len(pairs) >= n:
            break
    return np.array(pairs, np.int32).reshape(-1, 2)
