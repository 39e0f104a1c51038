"""The score itself: true to float64, the same for equal rows, and independent of what else is scored with it."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.exact import LANES, dot, pair_scores
from lexiscope.precompute.shape import LENSES
from tests.precompute.project.vocabularies import KINDS, vocabulary
from tests.support import brute


@given(n=st.integers(0, 4 * LANES + 1), scale=st.sampled_from([1e-20, 1, 1e15]), seed=st.integers(0, 1000))
def test_dot_products(n: int, scale: float, seed: int) -> None:
    x, y = (np.random.default_rng(seed).standard_normal((2, n)) * scale).astype(np.float32)
    true = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True)), Fraction(0))
    size = float(np.abs(x.astype(np.float64) * y).sum())
    assert abs(Fraction(float(dot(x, y, np.empty(LANES)))) - true) <= n * 2.0**-53 * size


def test_dot_products_of_whole_numbers_are_exact() -> None:
    random = np.random.default_rng(0)
    for n in range(2 * LANES + 2):
        x, y = random.integers(-(2**20), 2**20, (2, n))
        assert dot(x.astype(np.float32), y.astype(np.float32), np.full(LANES, np.nan)) == x @ y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lens", LENSES)
def test_pair_scores_are_those_of_the_full_matrix(kind: str, lens: str) -> None:
    """All at once, and one by one: a score depends on its pair alone."""
    random = np.random.default_rng(1)
    E, F = vocabulary(kind, 40, 17, 0), vocabulary(kind, 40, 17, 1)
    whole = kind in ("integers", "signed zeros")
    W = random.integers(-2, 3, (2, 17, 9)) if whole else random.standard_normal((2, 17, 9))
    left, right = W.astype(np.float32)
    source, target = (Embedding.of(torch.from_numpy(x), torch.device("cpu")) for x in (E, F))
    i, j = random.integers(0, 40, (2, 300)).astype(np.int32)
    scores = pair_scores(source, target, left, right, lens, i, j)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, brute.rounded(brute.pair_matrix(E, F, left, right, lens))[i, j])
    assert not (np.signbit(scores) & (scores == 0)).any()
    for at in range(0, 300, 50):
        one = slice(at, at + 1)
        assert pair_scores(source, target, left, right, lens, i[one], j[one]) == scores[at]


@pytest.mark.parametrize("lens", LENSES)
def test_equal_rows_have_equal_scores(lens: str) -> None:
    E = np.tile(vocabulary("random", 7, 33, 0), (5, 1))
    embedding = Embedding.of(torch.from_numpy(E), torch.device("cpu"))
    W = vocabulary("random", 33, 11, 1)
    i, j = (x.ravel().astype(np.int32) for x in np.indices((35, 35)))
    scores = pair_scores(embedding, embedding, W, W, lens, i, j).reshape(35, 35)
    np.testing.assert_array_equal(scores, np.tile(scores[:7, :7], (5, 5)))


def test_no_pairs() -> None:
    embedding = Embedding.of(torch.ones(3, 2), torch.device("cpu"))
    W, none = np.ones((2, 2), np.float32), np.empty(0, np.int32)
    assert pair_scores(embedding, embedding, W, W, "dot", none, none).shape == (0,)
