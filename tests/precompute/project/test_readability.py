"""Readability of pairs against its definition, written out."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.readability import readability
from tests.precompute.project.vocabularies import vocabulary
from tests.support import brute

Array = NDArray[Any]
NONE = np.empty((0, 2), np.uint32)


def embedding(W: Array) -> Embedding:
    return Embedding.of(torch.from_numpy(W), torch.device("cpu"))


@given(
    kind=st.sampled_from(["random", "offset", "heavy tail", "zero rows", "equal halves", "all equal", "integers"]),
    d_vocab=st.integers(1, 60),
    n=st.integers(1, 30),
    tied=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_readability(kind: str, d_vocab: int, n: int, tied: bool, seed: int) -> None:
    E = vocabulary(kind, d_vocab, 6, seed)
    F = E if tied else vocabulary(kind, d_vocab, 6, seed + 1)
    pairs = np.random.default_rng(seed).integers(0, d_vocab, (n, 2), np.uint32)
    found = readability(pairs, embedding(E), embedding(F))
    assert found.dtype == np.float32
    assert found == pytest.approx(brute.readability(pairs, E, F), abs=1e-5)


def test_forms_of_a_word_and_pairs_like_each_other_can_be_read_and_others_cannot() -> None:
    E = np.repeat(np.eye(8, dtype=np.float32), 8, axis=0)  # eight tokens in each of eight directions
    E += np.random.default_rng(0).normal(0, 0.05, E.shape).astype(np.float32)
    one_word = np.array([[0, 1], [2, 3], [3, 4], [1, 5]])
    one_relation = np.array([[0, 8], [1, 9], [2, 10], [3, 11]])
    unrelated = np.array([[0, 8], [16, 24], [32, 40], [48, 56]])
    scores = [readability(pairs, embedding(E), embedding(E)) for pairs in (one_word, one_relation, unrelated)]
    assert scores == [pytest.approx(1, abs=0.1), pytest.approx(1, abs=0.1), pytest.approx(0, abs=0.2)]


def test_a_list_without_pairs_has_none() -> None:
    E = vocabulary("random", 10, 6, 0)
    assert np.isnan(readability(NONE, embedding(E), embedding(E)))
