"""The top pairs of one head's matrix under one lens, for all presets and both ends.

`distinct` is what the search finds. `words` comes from the corner of the matrix where both tokens are whole words,
searched first and with its own floor; the rest is searched with the floor of `distinct`. `all` adds the few pairs of
one surface (" dog", "Dog"), which are simply all scored. So three presets cost one pass over the matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from precompute import exact
from precompute.embedding import Embedding, Float32
from precompute.errors import BadWeights
from precompute.pair_board import Board, PairList
from precompute.pair_search import LARGEST_SCORE, Search
from precompute.pair_space import Factor, as_columns, as_rows, balance
from precompute.pair_tiles import search_tiles
from precompute.rounding import TINY, gamma

Int32 = NDArray[np.int32]
Ends = tuple[PairList, PairList]  # top, bottom

LARGEST_FACTOR = 1e16  # the squares of a whole vocabulary's rows must add up in float32


@dataclass(frozen=True)
class Masks:
    """What the presets need to know of the vocabulary."""

    surface: Int32  # (d_vocab,) equal for tokens that do not differ after decoding, stripping and lower-casing
    words: NDArray[np.bool_]  # (d_vocab,) whole words
    same_from: Int32  # all pairs of one surface
    same_to: Int32

    @classmethod
    def of(cls, surface: Int32, words: NDArray[np.bool_]) -> "Masks":
        order = np.argsort(surface, kind="stable").astype(np.int32)
        starts = np.flatnonzero(np.diff(surface[order], prepend=-1))
        groups = np.split(order, starts[1:])
        same_from = np.concatenate([np.repeat(group, len(group)) for group in groups])
        same_to = np.concatenate([np.tile(group, len(group)) for group in groups])
        return cls(surface, words, same_from, same_to)


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

    A = Factor.of(matrix.left, matrix.W_left, matrix.source, lens)
    B = Factor.of(matrix.right, matrix.W_right, matrix.target, lens)
    largest = [max(-float(low), float(high)) for low, high in (torch.aminmax(side.values) for side in (A, B))]
    if not all(largest):
        return _all_zero(masks, n)
    _check_size(largest[0], largest[1], A.values.shape[1])
    boards = {preset: Board(n, scores) for preset in ("all", "distinct", "words")}
    if matrix.left.device.type == "cpu":
        _search(A, B, masks, boards["words"], boards["distinct"], exhaustive)
    else:
        _search_on_device(A, B, masks, boards["words"], boards["distinct"])
    boards["all"].add(*boards["distinct"].contents())
    boards["all"].add(masks.same_from, masks.same_to, *_same_surface(A, B, masks))
    return {preset: board.best() for preset, board in boards.items()}


def _check_size(a: float, b: float, d_head: int) -> None:
    """a and b are the largest values of the two factors."""
    if not (a * b * d_head < LARGEST_SCORE and max(a, b) * d_head**0.5 < LARGEST_FACTOR):
        raise BadWeights(
            "a head's weights are so large that its scores overflow float32: no list can be made from them"
        )


def _search(A: Factor, B: Factor, masks: Masks, words: Board, distinct: Board, exhaustive: bool) -> None:
    a, b = balance(A, B)
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


def _same_surface(A: Factor, B: Factor, masks: Masks) -> tuple[Float32, Float32]:
    """Scores of all pairs of one surface, and how far they may be off."""
    values = [x.cpu().numpy() for x in (A.values, B.values, A.error, B.error)]
    return _row_dots(*values, masks.same_from, masks.same_to, gamma(A.values.shape[1] + 8), TINY)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _row_dots(
    A: Float32, B: Float32, a_error: Float32, b_error: Float32, i: Int32, j: Int32, relative: float, absolute: float
) -> tuple[Float32, Float32]:
    scores, errors = np.empty(len(i), np.float32), np.empty(len(i), np.float32)
    for n in range(len(i)):
        score, aa, bb = np.float32(0), 0.0, 0.0  # squares of tiny values vanish in float32
        row, column = np.uint64(i[n]), np.uint64(j[n])
        for x in range(np.uint64(A.shape[1])):
            score += A[row, x] * B[column, x]
            aa += np.float64(A[row, x]) * np.float64(A[row, x])
            bb += np.float64(B[column, x]) * np.float64(B[column, x])
        a, b = np.sqrt(aa) * 1.00001, np.sqrt(bb) * 1.00001
        scores[n] = score
        errors[n] = a_error[row] * (b + b_error[column]) + a * (b_error[column] + relative * b) + absolute
    return scores, errors


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
