"""Coherence of lists against the loops that say what it is."""

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.project.coherence import COHERENT_TOKENS, Directions, coherence, hubs, pair_coherence
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.shape import HUB_FACTOR
from tests.precompute.project.vocabularies import vocabulary
from tests.support import brute

Array = NDArray[Any]


def directions(E: Array) -> Directions:
    return Directions.of(Embedding.of(torch.from_numpy(E), torch.device("cpu")))


def lists(random: np.random.Generator, n: int, k: int, d_vocab: int) -> Array:
    """Lists (n, k) without repetition."""
    return np.stack([random.permutation(d_vocab)[:k] for _ in range(n)]).astype(np.uint32)


@given(
    kind=st.sampled_from(["random", "offset", "heavy tail", "zero rows", "equal halves", "all equal", "integers"]),
    d_vocab=st.integers(1, 120),
    k=st.integers(1, 60),
    hub_share=st.sampled_from([0, 0.1, 0.9, 1]),
    seed=st.integers(0, 1000),
)
def test_coherence(kind: str, d_vocab: int, k: int, hub_share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    E = vocabulary(kind, d_vocab, 6, seed)
    ids, left_out = lists(random, 5, min(k, d_vocab), d_vocab), random.random(d_vocab) < hub_share
    found = coherence(ids, left_out, directions(E))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, brute.coherence(ids, left_out, E, COHERENT_TOKENS), atol=2e-5)


def test_equal_directions_are_coherent_and_fewer_than_two_tokens_are_not_a_number() -> None:
    E = np.array([[1, 0], [2, 0], [3, 0], [-6, 1], [0, -1]], np.float32)
    found = coherence(np.array([[0, 1, 2]], np.uint16), np.zeros(5, bool), directions(E - E.mean(axis=0)))
    np.testing.assert_allclose(found, [1], atol=0.1)
    nobody, all_but_one = np.ones(5, bool), np.array([0, 1, 1, 1, 1], bool)
    for left_out in (nobody, all_but_one):
        assert np.isnan(coherence(np.array([[0, 1, 2]], np.uint16), left_out, directions(E))).all()


def test_hubs_are_in_many_more_lists_than_chance_has_it() -> None:
    random = np.random.default_rng(0)
    d_vocab, k = 1000, 5
    kinds = [np.stack([lists(random, n, k, d_vocab - 2) for _ in range(4)], axis=1) for n in (300, 100)]
    kinds = [ids.reshape(-1, 2, 2, k) for ids in kinds]
    expected = 800 * k / d_vocab  # of 800 lists of a lens
    for ids in kinds:
        ids[:, 0, 0, 0] = d_vocab - 1  # in half the lists of one lens
    few = int(HUB_FACTOR * expected)
    kinds[0][:few, 1, 0, 0] = d_vocab - 2  # as often as is not yet unusual
    found = hubs(kinds, d_vocab)
    assert found.shape == (2, d_vocab)
    assert np.argwhere(found).tolist() == [[0, d_vocab - 1]]
    kinds[1][0, 1, 1, 0] = d_vocab - 2
    assert np.argwhere(hubs(kinds, d_vocab)).tolist() == [[0, d_vocab - 1], [1, d_vocab - 2]]


@given(n=st.integers(0, 60), d_vocab=st.integers(1, 60), hub_share=st.sampled_from([0, 0.3]), seed=st.integers(0, 99))
def test_pair_coherence(n: int, d_vocab: int, hub_share: float, seed: int) -> None:
    """Each side by itself, a token counted once, where it comes first."""
    random = np.random.default_rng(seed)
    E, F = vocabulary("random", d_vocab, 5, seed), vocabulary("offset", d_vocab, 5, seed + 1)
    pairs, left_out = random.integers(0, d_vocab, (n, 2)).astype(np.int32), random.random(d_vocab) < hub_share
    sides = [np.array([list(dict.fromkeys(pairs[:, side].tolist()))], np.int64) for side in (0, 1)]
    naive = [brute.coherence(tokens, left_out, W, COHERENT_TOKENS)[0] for tokens, W in zip(sides, (E, F), strict=True)]
    found = pair_coherence(pairs, left_out, directions(E), directions(F))
    np.testing.assert_allclose(found, np.mean(naive), atol=2e-5)
