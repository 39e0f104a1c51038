"""The top pairs of one head's matrix under one lens, for all presets and both ends.

`distinct` is what the search finds. `words` comes from the corner of the matrix where both tokens are whole words,
searched first and with its own floor; the rest is searched with the floor of `distinct`. `all` adds the few pairs of
one surface (" dog", "Dog"). So three presets cost one pass over the matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.errors import BadWeights
from precompute.project import exact
from precompute.project.embedding import Embedding, Float32
from precompute.project.pairs.board import Board, PairList
from precompute.project.pairs.masks import Masks
from precompute.project.pairs.same_surface import add_small_groups, search_large_groups, search_large_groups_on_device
from precompute.project.pairs.scale import factor, surely_nothing
from precompute.project.pairs.search import LARGEST_SCORE, Search
from precompute.project.pairs.space import Factor, Half, as_columns, as_rows, balance
from precompute.project.pairs.tiles import search_tiles

Int32 = NDArray[np.int32]
Ends = tuple[PairList, PairList]  # top, bottom

LARGEST_FACTOR = 1e16  # the squares of a whole vocabulary's rows must add up in float32


@dataclass(frozen=True)
class Matrix:
    """A head's vo or qk: score(i, j) = e_i W_left · e_j W_right, never multiplied out."""

    source: Embedding
    target: Embedding
    W_left: Float32  # (d_model, d_head)
    W_right: Float32  # (d_model, d_head)
    left: torch.Tensor  # (d_head, d_vocab) float32 product of W_leftᵀ with the source embedding
    right: torch.Tensor  # (d_head, d_vocab) of W_rightᵀ with the target embedding


def top_pairs(matrix: Matrix, masks: Masks, lens: str, n: int, exhaustive: bool = False) -> dict[str, Ends]:
    """By preset: the n largest and the n smallest entries, exact, ties by the smaller ids."""

    def scores(i: Int32, j: Int32) -> Float32:
        return exact.pair_scores(matrix.source, matrix.target, matrix.W_left, matrix.W_right, lens, i, j)

    A = factor(matrix.left, matrix.W_left, matrix.source, lens)
    B = factor(matrix.right, matrix.W_right, matrix.target, lens)
    if A is None or B is None:
        return _all_zero(masks, n)
    _check_size(A.largest / A.scale, B.largest / B.scale, A.values.shape[1])
    if surely_nothing(A, B):
        return _all_zero(masks, n)
    boards = {preset: Board(n, scores, A.scale * B.scale) for preset in ("all", "distinct", "words")}
    if matrix.left.device.type == "cpu":
        halves = balance(A, B)
        _search(halves, masks, boards["words"], boards["distinct"], exhaustive)
        boards["all"].add(*boards["distinct"].contents())
        search_large_groups(halves, matrix.source, matrix.target, masks, boards["all"], exhaustive)
    else:
        _search_on_device(A, B, masks, boards["words"], boards["distinct"])
        boards["all"].add(*boards["distinct"].contents())
        search_large_groups_on_device(A, B, matrix.source, matrix.target, masks, boards["all"])
    add_small_groups(A, B, masks, boards["all"])
    return {preset: board.best() for preset, board in boards.items()}


def _check_size(a: float, b: float, d_head: int) -> None:
    """a and b are the largest values of the two factors."""
    if not a * b * d_head < LARGEST_SCORE:
        raise BadWeights(
            "a head's weights are so large that its scores overflow float32: no list can be made from them"
        )
    if not max(a, b) * d_head**0.5 < LARGEST_FACTOR:
        raise BadWeights(
            f"a head's weights give one side of its scores a size of {max(a, b):.2g}: the sums of a search over it "
            "overflow float32, and no list can be made from them, although its scores may be small"
        )


def _search(halves: tuple[Half, Half], masks: Masks, words: Board, distinct: Board, exhaustive: bool) -> None:
    a, b = halves
    parts = [np.flatnonzero(masks.words).astype(np.int32), np.flatnonzero(~masks.words).astype(np.int32)]
    rows = [as_rows(a, part, masks.surface) for part in parts if len(part)]
    columns = [as_columns(b, part, masks.surface) for part in parts if len(part)]
    for i, row_part in enumerate(rows):
        for j, column_part in enumerate(columns):
            both_words = i == j == 0 and len(parts[0])
            Search(row_part, column_part, [words, distinct] if both_words else [distinct], exhaustive).run()


def _search_on_device(A: Factor, B: Factor, masks: Masks, words: Board, distinct: Board) -> None:
    device = A.values.device
    surface = torch.from_numpy(masks.surface).to(device)
    word_ids = torch.from_numpy(np.flatnonzero(masks.words)).to(device)
    every = torch.arange(len(masks.surface), device=device)
    search_tiles(A, B, word_ids, word_ids, surface, [words])
    search_tiles(A, B, every, every, surface, [distinct])


def _all_zero(masks: Masks, n: int) -> dict[str, Ends]:
    """Where every score is 0 the smallest ids win."""
    everyone = np.ones(len(masks.surface), bool)
    differs: Callable[[int], NDArray[np.bool_]] = lambda i: masks.surface != masks.surface[i]  # noqa: E731
    presets = {
        "all": _first_pairs(everyone, lambda _: everyone, n),
        "distinct": _first_pairs(everyone, differs, n),
        "words": _first_pairs(masks.words, lambda i: differs(i) & masks.words, n),
    }
    zeros = {preset: PairList(pairs, np.zeros(len(pairs), np.float32)) for preset, pairs in presets.items()}
    return {preset: (pairs, pairs) for preset, pairs in zeros.items()}


def _first_pairs(rows: NDArray[np.bool_], allowed: Callable[[int], NDArray[np.bool_]], n: int) -> Int32:
    pairs: list[tuple[int, int]] = []
    for i in np.flatnonzero(rows):
        pairs += [(int(i), int(j)) for j in np.flatnonzero(allowed(int(i)))[: n - len(pairs)]]
        if len(pairs) >= n:
            break
    return np.array(pairs, np.int32).reshape(-1, 2)
