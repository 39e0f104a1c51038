"""The coarse copy of a vocabulary: never further off than it says."""

import numpy as np
import pytest
import torch

from lexiscope.precompute.live.by_words.nearest import CoarseVocabulary
from lexiscope.precompute.project.embedding import Embedding


@pytest.mark.parametrize("shift", [0.0, 3.0, 1000.0])
@pytest.mark.parametrize("d_model", [3, 32, 200])
def test_it_is_off_by_no_more_than_it_says(shift: float, d_model: int) -> None:
    """Also where the mean is so long that little is left of a row."""
    generator = torch.Generator().manual_seed(d_model)
    W = torch.randn(5000, d_model, generator=generator) + shift
    W[7] = W.double().mean(dim=0).float()
    W[8] *= 50
    embedding = Embedding.of(W, torch.device("cpu"))
    q = np.random.default_rng(0).standard_normal(d_model)
    found, off = CoarseVocabulary.of(embedding).cosines(q)
    centred = embedding.rows.astype(np.float64) - embedding.mean
    exact = centred @ q * embedding.inverse_norm / np.linalg.norm(q)
    assert (np.abs(found.numpy() - exact) <= off.numpy()).all()
    assert np.median(off) < 0.03


def test_tokens_without_a_direction_have_none() -> None:
    found, off = CoarseVocabulary.of(Embedding.of(torch.ones(10, 4), torch.device("cpu"))).cosines(np.ones(4))
    assert found.tolist() == [0.0] * 10
    assert (off < 0.01).all()
