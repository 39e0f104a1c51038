"""The pair search in plain tiles, as a device runs it, against the full matrix and against the search of the CPU."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.project.pairs.factor import Factor
from lexiscope.precompute.project.pairs.head_pairs import search_on_device
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard
from lexiscope.precompute.project.pairs.same_surface import search_large_groups_on_device
from lexiscope.precompute.project.pairs.tiles import MOST_HITS, PLAIN_TILE_ROWS, search_tiles
from lexiscope.precompute.shape import LENSES
from tests.precompute.project.heads import SMALL_WEIGHTS, Head, same
from tests.precompute.project.vocabularies import KINDS
from tests.support import brute

pytestmark = pytest.mark.slow


def check(head: Head, n: int) -> None:
    for lens in LENSES:
        words, distinct, true = head.board(lens, n), head.board(lens, n), head.brute(lens, n)
        search_on_device(*head.factors(lens), head.masks(), words, distinct)
        same(words.best(), true["words"])
        same(distinct.best(), true["distinct"])


@given(
    kind=st.sampled_from(KINDS),
    d_vocab=st.integers(1, 200),
    d_head=st.integers(1, 80),
    n=st.integers(1, 600),
    words=st.sampled_from([0, 0.4, 1]),
    seed=st.integers(0, 1000),
)
def test_pairs_are_those_of_the_full_matrix(
    kind: str, d_vocab: int, d_head: int, n: int, words: float, seed: int
) -> None:
    check(Head.of(kind, d_vocab, d_head, seed, tied=seed % 2 == 0, words=words), n)


@pytest.mark.parametrize("d_vocab", [PLAIN_TILE_ROWS - 1, PLAIN_TILE_ROWS, PLAIN_TILE_ROWS + 1])
def test_edges_of_tiles(d_vocab: int) -> None:
    check(Head.of("heavy tail", d_vocab, 16, 0, words=0.9), 50)


@pytest.mark.parametrize("scale", [1e-19, 1e-21, 1e-22, 1e-25])
def test_scores_at_the_lower_end_of_float32(scale: float) -> None:
    check(Head.of("random", 60, 30, 0).scaled(scale, scale), 40)


@pytest.mark.parametrize("scale", SMALL_WEIGHTS)
def test_small_weights(scale: tuple[float, float]) -> None:
    check(Head.of("heavy tail", 79, 63, 0, tied=False).scaled(*scale), 20)


def test_more_hits_than_are_moved_at_once() -> None:
    """All pairs tie: a tile is taken in halves."""
    d_vocab = MOST_HITS // PLAIN_TILE_ROWS + 100
    ones = Factor(torch.ones(d_vocab, 2), torch.zeros(d_vocab))
    board = Leaderboard(20, lambda i, _: np.full(len(i), 2, np.float32))
    surface = torch.arange(d_vocab, dtype=torch.int32)
    search_tiles(ones, ones, torch.arange(PLAIN_TILE_ROWS), torch.arange(d_vocab), surface, [board])
    for end in board.best():
        assert end.pairs.tolist() == [[0, j] for j in range(1, 21)]
        assert (end.scores == 2).all()


@pytest.mark.parametrize("equal", [0, 300])
def test_large_groups_of_one_surface(equal: int) -> None:
    head = Head.of("heavy tail", 700, 12, 0, tied=False, surfaces=2)
    head.source[:equal], head.target[:equal] = head.source[0], head.target[0]
    m, masks = head.matrix(), head.masks()
    for lens in LENSES:
        board, factors = head.board(lens, 80), head.factors(lens)
        search_large_groups_on_device(*factors, m.source, m.target, masks, board)
        scores = brute.rounded(head.true_scores(lens))
        same(board.best(), brute.best_pairs(scores, head.surface[:, None] == head.surface, 80))


def test_nothing_to_search() -> None:
    factor, none = Factor(torch.ones(3, 2), torch.zeros(3)), torch.empty(0, dtype=torch.int64)
    board = Leaderboard(2, lambda i, _: np.ones(len(i), np.float32))
    search_tiles(factor, factor, none, torch.arange(3), torch.zeros(3, dtype=torch.int32), [board])
    search_tiles(factor, factor, torch.arange(3), none, torch.zeros(3, dtype=torch.int32), [board])
    assert [len(end.scores) for end in board.best()] == [0, 0]
