"""Every way through the pair search gives the same pairs, and the errors it reckons with are no smaller than true."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.pairs.coarse import relative_cost
from lexiscope.precompute.project.pairs.coordinates import SearchSide, as_columns, as_rows, balance, shells
from lexiscope.precompute.project.pairs.factor import Factor
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard
from lexiscope.precompute.project.pairs.plan import COARSE, SCAN
from lexiscope.precompute.project.pairs.search import Search
from lexiscope.precompute.project.pairs.strips import PREFIXES, Columns, Rows
from lexiscope.precompute.shape import LENSES
from tests.precompute.project.heads import Head, same
from tests.precompute.project.vocabularies import KINDS
from tests.support import brute

pytestmark = pytest.mark.slow

EVERYTHING = -2
BYTES = [COARSE] if relative_cost(64) < math.inf else []  # not every processor adds bytes up exactly


def search(head: Head, lens: str, n: int, way: int | None) -> Leaderboard:
    """The whole matrix as one rectangle; `way` None leaves the plan to the search, EVERYTHING is the plain product."""
    a, b = balance(*head.factors(lens))
    tokens = np.arange(len(head.surface), dtype=np.int32)
    board = head.board(lens, n)
    rows, columns = as_rows(a, tokens, head.surface), as_columns(b, tokens, head.surface)
    run(rows, columns, board, way)
    return board


def run(rows: SearchSide[Rows], columns: SearchSide[Columns], board: Leaderboard, way: int | None) -> None:
    if way is None:
        Search(rows, columns, [board]).run()
    elif way == EVERYTHING:
        Search(rows, columns, [board], exhaustive=True).run()
    else:
        Search(rows, columns, [board], choose_way=lambda *_: way).run()


@cache
def hard_head(kind: str, d_vocab: int, d_head: int) -> Head:
    return Head.of(kind, d_vocab, d_head, 7)


@cache
def hard_pairs(kind: str, d_vocab: int, d_head: int, lens: str) -> brute.Ends:
    return hard_head(kind, d_vocab, d_head).brute(lens, 70)["distinct"]


@pytest.mark.parametrize("way", [SCAN, *BYTES, *PREFIXES, EVERYTHING, None])
@pytest.mark.parametrize(("kind", "d_vocab", "d_head"), [
    ("heavy tail", 1300, 48), ("random", 600, 64), ("integers", 400, 33), ("equal halves", 300, 40),
    ("all equal", 300, 12), ("huge outlier", 257, 20), ("tiny", 90, 5),
])  # fmt: skip
def test_all_ways_give_the_same_pairs(way: int | None, kind: str, d_vocab: int, d_head: int) -> None:
    """Where all rows are equal all pairs tie: more candidates than there is room for, so parts are searched again."""
    head = hard_head(kind, d_vocab, d_head)
    if way is not None and way >= max(d_head, PREFIXES[-1]):
        way = EVERYTHING
    for lens in LENSES:
        same(search(head, lens, 70, way).best(), hard_pairs(kind, d_vocab, d_head, lens))


@given(
    kind=st.sampled_from([kind for kind in KINDS if kind != "all zero"]),
    d_vocab=st.integers(2, 120),
    d_head=st.integers(1, 80),
    n=st.integers(1, 100),
    way=st.sampled_from([SCAN, *BYTES, *PREFIXES[:-1], EVERYTHING]),
    seed=st.integers(0, 1000),
)
def test_any_way_through_any_matrix(kind: str, d_vocab: int, d_head: int, n: int, way: int, seed: int) -> None:
    head = Head.of(kind, d_vocab, d_head, seed, tied=seed % 2 == 0)
    for lens in LENSES:
        same(search(head, lens, n, way).best(), head.brute(lens, n)["distinct"])


def test_several_boards_each_get_their_own() -> None:
    head = Head.of("random", 300, 40, 0)
    a, b = balance(*head.factors("dot"))
    tokens = np.arange(300, dtype=np.int32)
    boards = [head.board("dot", n) for n in (5, 500)]
    Search(as_rows(a, tokens, head.surface), as_columns(b, tokens, head.surface), boards).run()
    for board in boards:
        same(board.best(), head.brute("dot", board.n)["distinct"])


def test_a_rectangle_of_the_matrix() -> None:
    head = Head.of("random", 300, 40, 0)
    a, b = balance(*head.factors("dot"))
    i, j = np.arange(50, 290, 3, dtype=np.int32), np.arange(0, 200, 7, dtype=np.int32)
    board = head.board("dot", 30)
    Search(as_rows(a, i, head.surface), as_columns(b, j, head.surface), [board]).run()
    mask = np.zeros((300, 300), bool)
    mask[np.ix_(i, j)] = True
    mask &= head.surface[:, None] != head.surface
    same(board.best(), brute.best_pairs(brute.rounded(head.true_scores("dot")), mask, 30))


@pytest.mark.parametrize("n", [1, 255, 512, 513, 1024, 1025, 2500])
def test_shells_cover_all_columns_once(n: int) -> None:
    starts = shells(n)
    assert starts[0] == 0
    assert starts[-1] == n
    assert (np.diff(starts) > 0).all()


MATRICES = {
    "kind": st.sampled_from(KINDS),
    "d_vocab": st.integers(1, 150),
    "d_model": st.integers(1, 200),
    "d_head": st.integers(1, 80),
    "seed": st.integers(0, 1000),
    "lens": st.sampled_from(LENSES),
}


@pytest.mark.parametrize(("embedding", "weight"), [(1e-30, 1e-12), (1e-33, 1e-8), (1e-25, 1e-18)])
def test_factors_of_products_that_vanish(embedding: float, weight: float) -> None:
    head = Head.of("random", 100, 10, 0)
    head.source[:] *= np.float32(embedding)
    head.W_left[:] *= np.float32(weight)
    rows, scale = brute.lensed(head.source, "cosine")
    factor = head.factors("cosine")[0]
    error = np.linalg.norm(factor.values.numpy() - rows @ head.W_left.astype(np.float64) * scale[:, None], axis=1)
    assert (error <= factor.error.numpy().astype(np.float64)).all()


def uneven(head: Head) -> Head:
    """Directions of very different weight on the two sides, which balancing has to undo."""
    scale = np.geomspace(1e4, 1e-4, head.W_left.shape[1]).astype(np.float32)
    return replace(head, W_left=head.W_left * scale, W_right=head.W_right / scale)


@given(**MATRICES)
def test_factors_err_less_than_is_claimed(
    kind: str, d_vocab: int, d_model: int, d_head: int, seed: int, lens: str
) -> None:
    head = Head.of(kind, d_vocab, d_head, seed, d_model=d_model, tied=False)
    sides = (head.source, head.W_left), (head.target, head.W_right)
    for factor, (E, W) in zip(head.factors(lens), sides, strict=True):
        rows, scale = brute.lensed(E, lens)
        true = rows @ W.astype(np.float64) * scale[:, None]
        error = np.linalg.norm(factor.values.numpy() - true, axis=1)
        assert (error <= factor.error.numpy().astype(np.float64)).all()


@given(**MATRICES, balanced=st.booleans())
def test_balanced_scores_err_less_than_is_claimed(
    kind: str, d_vocab: int, d_model: int, d_head: int, seed: int, lens: str, balanced: bool
) -> None:
    head = Head.of(kind, d_vocab, d_head, seed, d_model=d_model, tied=False)
    head = head if balanced else uneven(head)
    a, b = balance(*head.factors(lens))
    computed = a.shift[:, None] + b.shift + a.coords @ b.coords.T
    claimed = a.error.astype(np.float64) @ b.error.astype(np.float64).T
    assert (np.abs(computed - head.true_scores(lens)) <= claimed).all()


@given(**MATRICES)
@example(kind="tiny", d_vocab=20, d_model=5, d_head=40, seed=0, lens="dot")
def test_norms_are_never_too_small(kind: str, d_vocab: int, d_model: int, d_head: int, seed: int, lens: str) -> None:
    """The norm of a prefix's rest, with the score of the prefix, bounds the score."""
    for half in balance(*Head.of(kind, d_vocab, d_head, seed, d_model=d_model).factors(lens)):
        coords = half.coords.astype(np.float64)
        assert (np.linalg.norm(coords, axis=1) <= half.norm).all()
        for prefix, rest in zip(PREFIXES, half.rest, strict=True):
            assert (np.linalg.norm(coords[:, prefix:], axis=1) <= rest).all()


class Witness(Leaderboard):
    """Remembers what it is given, with floors that never move."""

    def __init__(self, top: float, bottom: float) -> None:
        super().__init__(1, lambda _i, _j: np.empty(0, np.float32))
        self.raise_floors(top, bottom)
        self.seen: set[tuple[int, int]] = set()

    def add(self, i: Any, j: Any, score: Any, error: Any) -> None:  # noqa: ARG002
        self.seen.update(zip(i.tolist(), j.tolist(), strict=True))

    def raise_floors(self, top: float, bottom: float) -> None:
        if not np.isfinite(self.top):
            super().raise_floors(top, bottom)


@pytest.mark.parametrize("way", [None, SCAN, *BYTES, EVERYTHING])
@pytest.mark.parametrize("size", [20, 1000])
def test_a_huge_other_end_hides_nothing(size: int, way: int | None) -> None:
    """A few tokens give a bottom end that is many orders larger than the top end, whose floor must hold to the bit."""
    d, outliers, n = 8, 30, 2000
    rng = np.random.default_rng(1)
    E = np.zeros((n, d), np.float32)
    directions = rng.normal(size=(n - outliers, d - 1))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    E[outliers:, 1:] = directions * (1 + 1e-3 * rng.random((n - outliers, 1)))
    E[:outliers, 0] = size * (1 + 0.3 * rng.random(outliers))
    W_left, W_right = np.eye(d, dtype=np.float32), np.diag([-1.0] + [1.0] * (d - 1)).astype(np.float32)
    embedding = Embedding.of(torch.from_numpy(E), torch.device("cpu"))
    A, B = (Factor.of(torch.from_numpy(W.T @ E.T), W, embedding, "dot") for W in (W_left, W_right))
    tokens = np.arange(n, dtype=np.int32)
    a, b = balance(A, B)
    rows, columns = as_rows(a, tokens, tokens), as_columns(b, tokens, tokens)
    scores = E.astype(np.float64) @ W_left @ W_right.T @ E.T.astype(np.float64)
    others = ~np.eye(n, dtype=bool)
    best = np.sort(scores[others])
    for rank in (500, 200):
        top, bottom = best[-rank], best[500]
        witness = Witness(top, bottom)
        run(rows, columns, witness, way)
        wanted = {(int(i), int(j)) for i, j in zip(*np.nonzero((scores >= top) & others), strict=True)}
        assert wanted <= witness.seen
