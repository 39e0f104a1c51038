"""The running best of a pair search: whatever comes, in any order and parts, its lists are those of a full sort."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.project.pairs.leaderboard import MOST_INTERVALS, Leaderboard, nth_bounds
from tests.precompute.project.heads import same
from tests.support import brute

Array = NDArray[Any]


def fill(board: Leaderboard, true: Array, error: float, parts: int, random: np.random.Generator) -> None:
    """Gives the board all pairs in random order, each score off by up to `error`."""
    order = random.permutation(true.size)
    i, j = (x.astype(np.int32) for x in np.unravel_index(order, true.shape))
    for part in np.array_split(np.arange(true.size), parts):
        near = true[i[part], j[part]] + error * random.uniform(-0.9, 0.9, len(part))
        board.add(i[part], j[part], near, np.full(len(part), error))


def whole(true: Array, n: int) -> brute.Ends:
    return brute.best_pairs(true.astype(np.float32), np.ones(true.shape, bool), n)


@given(
    size=st.integers(1, 30),
    n=st.integers(1, 1000),
    parts=st.integers(1, 9),
    values=st.sampled_from([1, 2, 5, 10**6]),
    error=st.sampled_from([1e-6, 0.5, 3.0, 1e7]),
    seed=st.integers(0, 1000),
)
def test_lists_are_those_of_a_full_sort(size: int, n: int, parts: int, values: int, error: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    true = random.integers(0, values, (size, size)).astype(np.float64)
    board = Leaderboard(n, lambda i, j: true[i, j].astype(np.float32))
    fill(board, true, error, parts, random)
    same(board.best(), whole(true, n))
    if size * size >= n:
        ordered = np.sort(true, axis=None)
        assert board.top <= ordered[-n]
        assert board.bottom >= ordered[n - 1]


@pytest.mark.parametrize("values", [1, 2, 3])
def test_more_ties_than_there_is_room_for_are_settled(values: int) -> None:
    random = np.random.default_rng(values)
    true = random.integers(0, values, (650, 650)).astype(np.float64)
    assert true.size > 2 * MOST_INTERVALS
    board = Leaderboard(40, lambda i, j: true[i, j].astype(np.float32))
    fill(board, true, 0.25, 5, random)
    assert len(board.candidates()[0]) <= MOST_INTERVALS
    same(board.best(), whole(true, 40))


def test_floors_proved_elsewhere_drop_what_is_below_them() -> None:
    board = Leaderboard(2, lambda i, _: i.astype(np.float32))
    board.raise_floors(5, 1)
    board.raise_floors(4, 2)  # weaker: changes nothing
    assert (board.top, board.bottom) == (5, 1)
    i = np.arange(8, dtype=np.int32)
    board.add(i, i, i.astype(np.float64), np.full(8, 0.25))
    assert board.candidates()[0].tolist() == [0, 1, 6, 7]


def test_nothing_added_gives_empty_lists() -> None:
    board = Leaderboard(3, lambda i, _: i.astype(np.float32))
    board.add(*(np.empty(0, np.int32),) * 2, *(np.empty(0),) * 2)
    assert [len(end.scores) for end in board.best()] == [0, 0]


def test_bounds_of_the_nth() -> None:
    score, error = np.array([1.0, 5, 3, 4]), np.array([0.5, 2, 0.5, 0.5])
    assert nth_bounds(score, error, 1) == (3.5, 1.5)
    assert nth_bounds(score, error, 2) == (3.0, 3.5)
    assert nth_bounds(score, error, 4) == (0.5, 7.0)
