"""Two real encoders of one vocabulary, the first made from every second layer of a model like the other."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lexiscope.precompute.compare.job import CompareOptions, compare
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.comparisons import CompareListener


def projected(model: Model, layer: int) -> NDArray[np.float64]:
    """A layer's values over the vocabulary, each with mean 0 and length 1, so that their products are correlations."""
    rows: NDArray[np.float64] = model.vectors(layer, "ff_value").double().numpy() @ model.W_U.double().numpy().T
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


@pytest.mark.all_families
def test_minilm_with_gte_small(minilm: Checkpoint, gte_small: Checkpoint, tmp_path: Path) -> None:
    a, b = describe(minilm), describe(gte_small)
    listener = CompareListener()
    comparison = Comparison.open(compare(a, b, tmp_path, CompareOptions(("ff_value",)), listener))
    assert "have 30522 tokens in common: their ids mean the same" in listener.text.getvalue()
    assert comparison.assignment("ff_value") == [(0, 0), (1, 2), (2, 4), (3, 6), (4, 8), (5, 11)]
    r = projected(a, 3) @ projected(b, 6).T
    assert abs(np.abs(r).mean() - comparison.similarity("ff_value")[3, 6]) < 1e-6
    stored = [
        (index, other, value)
        for index in range(len(r))
        for layer, other, value in comparison.matches("a", "ff_value", 3, index)
        if layer == 6
    ]
    assert len(stored) > len(r)  # chance gives 10 in 12
    assert max(abs(r[index, other] - value) for index, other, value in stored) < 1e-6
