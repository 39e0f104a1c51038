"""What the lenses need of a vocabulary matrix: mean row, norms and directions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.project.embedding import Embedding
from tests.precompute.project.vocabularies import KINDS, vocabulary
from tests.support import brute

CPU = torch.device("cpu")


@given(kind=st.sampled_from(KINDS), d_vocab=st.integers(1, 100), d_model=st.integers(1, 40), seed=st.integers(0, 1000))
def test_mean_norms_and_directions(kind: str, d_vocab: int, d_model: int, seed: int) -> None:
    E = vocabulary(kind, d_vocab, d_model, seed)
    embedding, (centred, factor) = Embedding.of(torch.from_numpy(E), CPU), brute.lensed(E, "cosine")
    rows = E.astype(np.float64)
    np.testing.assert_allclose(embedding.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-14 * np.abs(rows).max())
    np.testing.assert_allclose(embedding.norm, np.sqrt((rows**2).sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(embedding.centred_norm, np.sqrt((centred**2).sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(embedding.inverse_norm, factor, rtol=1e-12)
    np.testing.assert_array_equal(embedding.rows, E)
    lengths = embedding.directions().double().norm(dim=1).numpy()
    assert ((lengths == 0) | (factor > 0)).all()


@pytest.mark.parametrize("kind", ["random", "offset", "integers", "heavy tail", "zero rows", "all equal", "tiny"])
def test_directions_are_centred_and_normalised(kind: str) -> None:
    E = vocabulary(kind, 90, 12, 0)
    centred, factor = brute.lensed(E, "cosine")
    directions = Embedding.of(torch.from_numpy(E), CPU).directions()
    assert directions.dtype == torch.float32
    np.testing.assert_allclose(directions.numpy(), centred * factor[:, None], atol=1e-5)


def test_more_rows_than_are_read_at_once() -> None:
    E = vocabulary("offset", 9000, 2, 0)
    embedding = Embedding.of(torch.from_numpy(E), CPU)
    np.testing.assert_allclose(embedding.norm, np.linalg.norm(E.astype(np.float64), axis=1))
    np.testing.assert_allclose(embedding.centred_norm, np.linalg.norm(E - E.mean(axis=0, dtype=np.float64), axis=1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    E = vocabulary("random", 20, 3, 0)
    E[7, 1] = value
    with pytest.raises(BadWeights, match="not finite"):
        Embedding.of(torch.from_numpy(E), CPU)
