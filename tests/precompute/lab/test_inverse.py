"""keep-k scores are those of sorting and numpy's own pseudo-inverse."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lexiscope.precompute.index.lab_record import KeepK
from lexiscope.precompute.lab.inverse import KeepKScores, ff_value_samples, normal_samples
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.lab.direct import FAMILIES, Array, direct


def keep_k(vector: Array, k: int) -> Array:
    floor = np.sort(np.abs(vector))[-k]
    return np.where(np.abs(vector) >= floor, vector, 0)


def check(found: KeepK, W_U: Array, x: Array, y: Array) -> None:
    E = W_U.T
    assert found.k == tuple(k for k in (10, 50, 100, 200, 300, 500, 512) if k <= len(W_U))
    assert found.samples == len(x)
    for name, others in (("", y), ("_same", x)):
        for inverse, dual in (("transpose", E.T), ("pseudo", np.linalg.pinv(E, rcond=1e-9))):
            expected = []
            for k in found.k:
                kept_x = [keep_k(vector @ E, k) for vector in x]
                kept_y = [keep_k(dual @ vector, k) for vector in others]
                made = np.array([[one @ other for other in kept_y] for one in kept_x]).ravel()
                wanted = np.array([[one @ other for other in others] for one in x]).ravel()
                expected.append(wanted @ made / (np.linalg.norm(wanted) * np.linalg.norm(made)))
            assert getattr(found, inverse + name) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_a_direct_computation(family: str, family_folder: Callable[[str], Path]) -> None:
    folder, seed, n = family_folder(family), 3, 7
    model, plain = describe(Checkpoint.open(folder)), direct(folder)
    scores = KeepKScores(model.W_U.numpy())
    rows = np.random.RandomState(seed).standard_normal((2 * n, plain.W_U.shape[1]))
    check(scores.of(normal_samples(n, rows.shape[1], seed)), plain.W_U, rows[:n], rows[n:])
    values = np.concatenate([plain.vectors(layer, "ff_value") for layer in range(plain.n_layers)])
    rows = values[np.random.RandomState(seed).randint(len(values), size=2 * n)]
    check(scores.of(ff_value_samples(model, n, seed)), plain.W_U, rows[:n], rows[n:])


def test_an_embedding_that_does_not_span_all_of_its_space() -> None:
    """Its Gram matrix has no inverse. Whole numbers: rounding must not make it span the rest."""
    rng = np.random.RandomState(0)
    W_U = (rng.randint(-9, 10, (400, 5)) @ rng.randint(-9, 10, (5, 12))).astype(np.float32)
    samples = rng.standard_normal((8, 12))
    found = KeepKScores(W_U).of(samples)
    check(found, W_U.astype(np.float64), samples[:4], samples[4:])


def test_a_vocabulary_smaller_than_any_k() -> None:
    rng = np.random.RandomState(0)
    found = KeepKScores(rng.standard_normal((9, 4)).astype(np.float32)).of(rng.standard_normal((6, 4)))
    assert found.k == (9,)
    assert found.pseudo == pytest.approx((1.0,))


def test_vectors_of_zeros_have_no_direction() -> None:
    found = KeepKScores(np.eye(20, 4, dtype=np.float32)).of(np.zeros((6, 4)))
    assert found.transpose == found.pseudo == (0,)
