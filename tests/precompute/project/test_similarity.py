"""Similarity of lists, as they are and shuffled, against the sets that say what it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.project.similarity import jaccard, partners, similarities


def lists(random: np.random.Generator, *sizes: int, d_vocab: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """Lists without repetition; the last size is their length."""
    return np.argsort(random.random((*sizes[:-1], d_vocab)), axis=-1)[..., : sizes[-1]].astype(np.uint32)


def naive(a: list[int], b: list[int]) -> float:
    return len({*a} & {*b}) / len({*a} | {*b})


@given(n=st.integers(1, 5), k=st.integers(1, 150), more=st.integers(0, 100), seed=st.integers(0, 1000))
def test_similarity_is_the_jaccard_index(n: int, k: int, more: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = (lists(random, n, k, d_vocab=k + more) for _ in range(2))
    np.testing.assert_allclose(jaccard(a, b), [*map(naive, a.tolist(), b.tolist())], rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_top_of_one_with_both_ends_of_the_other_and_of_a_partner(n: int) -> None:
    first, second = (lists(np.random.default_rng(seed), n, 2, 2, 20, d_vocab=50) for seed in (1, 2))
    matched, shuffled = similarities(first, second)
    partner = partners(n)
    for vector, lens, end in np.ndindex(n, 2, 2):
        top = first[vector, lens, 0].tolist()
        at = vector, lens, end
        assert matched[at] == pytest.approx(naive(top, second[at].tolist()))
        assert shuffled[at] == pytest.approx(naive(top, second[partner[vector], lens, end].tolist()))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1536])
def test_partners_are_others_and_always_the_same(n: int) -> None:
    found = partners(n)
    assert sorted(found.tolist()) == [*range(n)]
    assert n == 1 or not (found == np.arange(n)).any()
    assert (found == partners(n)).all()


def test_partners_are_the_same_on_every_machine() -> None:
    """A golden value: numbers of indexes that exist must stay what they are."""
    assert partners(10).tolist() == [5, 6, 8, 0, 9, 2, 7, 3, 4, 1]
