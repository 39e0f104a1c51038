"""Nearest tokens equal brute force in float64, and reach the reader of an index."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.errors import NotFound, ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import NEAREST
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.nearest_tokens import nearest_tokens
from tests.support.builds import NEIGHBOURS, copy
from tests.support.models import load


def brute_force(W_E: NDArray[np.float32]) -> NDArray[np.float64]:
    centred = W_E.astype(np.float64) - W_E.astype(np.float64).mean(0)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    directions = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-9 * np.abs(W_E).max())
    return np.asarray(directions @ directions.T)


def check(ids: NDArray[np.int64], scores: NDArray[np.float32], cosines: NDArray[np.float64]) -> None:
    """Right scores, no token twice, none of itself, and nothing better left out."""
    for token, (row, values) in enumerate(zip(ids, scores, strict=True)):
        assert token not in row
        assert len(set(row.tolist())) == len(row)
        np.testing.assert_allclose(values, cosines[token][row], atol=1e-6)
        assert np.all(np.diff(values) <= 0)
        left = np.delete(cosines[token], [token, *row])
        assert not len(left) or left.max() <= values[-1] + 1e-6


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 6), st.integers(0, 40))
def test_equals_brute_force(seed: int, d_vocab: int, d_model: int, equal: int) -> None:
    W_E = np.random.default_rng(seed).normal(size=(d_vocab, d_model)).astype(np.float32)
    W_E[:equal] = W_E[-1]  # more equal tokens than a list has room for
    with ThreadPoolExecutor(1) as pool:
        arrays = nearest_tokens(Embedding.of(torch.from_numpy(W_E), torch.device("cpu")), pool)
    assert arrays["neighbours.ids"].shape == (d_vocab, min(NEAREST, d_vocab - 1))
    check(arrays["neighbours.ids"].astype(np.int64), arrays["neighbours.scores"], brute_force(W_E))


def test_an_index_has_them(source: Path, built: Path) -> None:
    index = Index.open(built)
    cosines = brute_force(load(source).transformer.wte.weight.detach().numpy())
    found = [index.neighbours(token) for token in range(index.shape.d_vocab)]
    ids, scores = (np.stack([pair[part] for pair in found if pair]) for part in (0, 1))
    check(ids.astype(np.int64), scores, cosines)
    with pytest.raises(NotFound):
        index.neighbours(index.shape.d_vocab)


def test_an_index_without_them_or_with_damaged_ones(built: Path, tmp_path: Path) -> None:
    path = copy(built, tmp_path) / NEIGHBOURS
    path.write_bytes(path.read_bytes()[:-4] + b"\xff\xff\xff\xff")  # no number
    index = Index.open(path.parent)
    with pytest.raises(ShardDamaged, match="neighbours"):
        index.neighbours(index.shape.d_vocab - 1)
    path.unlink()
    assert Index.open(path.parent).neighbours(0) is None
