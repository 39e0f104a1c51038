"""Comparisons against the direct way, on small random models: project both sides to the vocabulary, correlate, sort."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.compare.common_tokens import CommonTokens, common_tokens
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.comparison_record import MATCHES
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.comparisons import (
    change_weights,
    correlations,
    direct_feature_r,
    direct_r,
    layer_means,
    quick_compare,
    reorder_tokens,
)
from tests.support.models import tiny_gpt2, tiny_llama

pytestmark = pytest.mark.slow


def degenerate(tensors: dict[str, Tensor]) -> None:
    """Vectors of zeros, equal ones, opposite ones, one whose projection is constant, tiny and huge ones."""
    keys, values = tensors["transformer.h.0.mlp.c_fc.weight"], tensors["transformer.h.1.mlp.c_proj.weight"]
    keys[:, 0:5] = 0
    keys[:, 5:25] = keys[:, 5:6]
    keys[:, 25:40] = -keys[:, 5:6] * torch.arange(1, 16)
    keys[:, 40] *= 1e-30
    keys[:, 41] *= 1e30
    values[3:30] = values[2]
    values[30] = 0
    tensors["transformer.h.1.attn.c_attn.weight"].zero_()
    tensors["transformer.wte.weight"][:, 7] = 0.25  # the same for all tokens
    values[31] = torch.eye(32)[7]


def no_direction(tensors: dict[str, Tensor]) -> None:
    """All vectors of a kind but three are zeros: fewer than the matches that are stored."""
    for layer in (0, 1):
        tensors[f"transformer.h.{layer}.mlp.c_fc.weight"][:, 2 - layer :] = 0


def narrow(tensors: dict[str, Tensor]) -> None:
    """Embeddings of rank 20 of 32, whose Gram matrix has no inverse."""
    W_E = tensors["transformer.wte.weight"]
    W_E[:, 20:] = W_E[:, :12]


CASES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Path]]] = {
    "alike": (
        lambda folder: tiny_gpt2(folder, n_layers=3, d_mlp=48),
        lambda folder: tiny_gpt2(folder, n_layers=2, d_mlp=40, seed=1),
    ),
    "untied-gated-grouped": (
        lambda folder: tiny_llama(folder, tied=False),
        lambda folder: tiny_llama(folder, tied=False, n_kv_heads=1, d_mlp=56, seed=1),
    ),
    "wider-and-ungated": (
        lambda folder: tiny_llama(folder, tied=False, d_model=48, n_heads=4),
        lambda folder: tiny_gpt2(folder, d_model=24, n_heads=2, d_mlp=40),
    ),
    "narrower-and-more-tokens": (
        lambda folder: tiny_gpt2(folder, d_model=24, n_heads=2, d_mlp=40),
        lambda folder: tiny_llama(folder, d_model=40, d_vocab=700),
    ),
    "tokens-in-another-order": (
        lambda folder: reorder_tokens(tiny_gpt2(folder, d_mlp=48)),
        lambda folder: tiny_llama(folder, d_model=40, seed=2),
    ),
    "degenerate": (
        lambda folder: change_weights(tiny_gpt2(folder, d_mlp=48), degenerate),
        lambda folder: change_weights(tiny_gpt2(folder, d_mlp=48, seed=1), degenerate),
    ),
    "few-directions": (
        lambda folder: change_weights(tiny_gpt2(folder, d_mlp=48), no_direction),
        lambda folder: tiny_gpt2(folder, d_mlp=48, seed=1),
    ),
    "without-an-inverse": (
        lambda folder: change_weights(tiny_gpt2(folder, d_mlp=48), narrow),
        lambda folder: change_weights(tiny_gpt2(folder, d_mlp=48, seed=1), narrow),
    ),
    "few-vectors": (
        lambda folder: tiny_gpt2(folder, d_mlp=3, n_layers=1),
        lambda folder: tiny_gpt2(folder, d_mlp=2, n_layers=2, seed=1),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Model, Model]:
    folder = tmp_path_factory.mktemp("compared")
    make_one, make_other = CASES[request.param]
    one, other = make_one(folder / "one"), make_other(folder / "other")
    comparison = Comparison.open(quick_compare(one, other, folder / "data"))
    return comparison, describe(Checkpoint.open(one)), describe(Checkpoint.open(other))


def common(one: Model, other: Model) -> CommonTokens:
    a, b = (token_bytes(model.checkpoint.tokenizer_file(), model.shape.d_vocab) for model in (one, other))
    return common_tokens(a, b)


def direct(one: Model, other: Model, kind: str) -> NDArray[np.float64]:
    return direct_r(one, other, kind, common(one, other))


def test_similarity_and_assignment(case: tuple[Comparison, Model, Model]) -> None:
    comparison, one, other = case
    layers = one.shape.n_layers, other.shape.n_layers
    assert comparison.kinds == tuple(kind for kind in one.shape.kinds if kind in other.shape.kinds)
    for kind in comparison.kinds:
        expected = layer_means(direct(one, other, kind), *layers)
        assert np.abs(comparison.similarity(kind) - expected).max() < 1e-6
        assert _worth(comparison.assignment(kind), expected) >= _best_worth(expected) - 1e-6


def test_feature_space(case: tuple[Comparison, Model, Model]) -> None:
    comparison, one, other = case
    for kind in comparison.kinds:
        stored, assignment = comparison.feature_space(kind), comparison.feature_assignment(kind)
        if one.shape.d_model != other.shape.d_model:
            assert (stored, assignment) == (None, None)
            continue
        expected = layer_means(direct_feature_r(one, other, kind), one.shape.n_layers, other.shape.n_layers)
        assert stored is not None
        assert assignment is not None
        assert np.abs(stored - expected).max() < 1e-6
        assert _worth(assignment, expected) >= _best_worth(expected) - 1e-6


def test_matches(case: tuple[Comparison, Model, Model]) -> None:
    comparison, one, other = case
    for kind in comparison.kinds:
        r = direct(one, other, kind)
        _check_matches(comparison, "a", kind, r, other.shape.count(kind))
        _check_matches(comparison, "b", kind, r.T, one.shape.count(kind))


def test_strongest(case: tuple[Comparison, Model, Model]) -> None:
    comparison, one, other = case
    for kind in comparison.kinds:
        best = np.sort(np.abs(direct(one, other, kind)).max(axis=1))[::-1][:5]
        pairs = comparison.strongest(kind, 5)
        assert np.allclose([abs(pair.r) for pair in pairs], best, atol=1e-6)
        for pair in pairs:
            match = comparison.matches("a", kind, pair.a_layer, pair.a_index)[0]
            assert match == (pair.b_layer, pair.b_index, pair.r)


def test_chance(case: tuple[Comparison, Model, Model]) -> None:
    """Random vectors, projected and correlated."""
    comparison, one, other = case
    dice, tokens = np.random.default_rng(7), common(one, other)
    V_a, V_b = (dice.normal(size=(400, model.shape.d_model)) for model in (one, other))
    for kind, matrix in (("ff_key", "W_E"), ("w_o", "W_U")):
        W_a, W_b = (getattr(model, matrix).double().numpy() for model in (one, other))
        expected = np.abs(correlations(V_a @ W_a[tokens.a].T, V_b @ W_b[tokens.b].T)).mean()
        assert comparison.chance(kind) == pytest.approx(expected, rel=0.1)
    if one.shape.d_model == other.shape.d_model:
        assert comparison.feature_chance() == pytest.approx(np.abs(correlations(V_a, V_b)).mean(), rel=0.1)
    else:
        assert comparison.feature_chance() is None


def test_kernel(case: tuple[Comparison, Model, Model]) -> None:
    """E_A E_B⁺ by numpy's pseudo-inverse, over the common tokens."""
    comparison, one, other = case
    tokens = common(one, other)
    W_a, W_b = one.W_E.double().numpy()[tokens.a], other.W_E.double().numpy()[tokens.b]
    expected = W_a.T @ np.linalg.pinv(W_b.T, rcond=1e-6)
    assert np.allclose(comparison.kernel(), expected, atol=1e-5 * np.abs(expected).max())


def _check_matches(comparison: Comparison, side: str, kind: str, r: NDArray[np.float64], count: int) -> None:
    """Every list is in the order of the format by its own numbers, and as good as a full sort of the direct ones."""
    model = comparison.a if side == "a" else comparison.b
    for row in range(len(r)):
        matches = comparison.matches("a" if side == "a" else "b", kind, *divmod(row, model.kinds[kind]))
        others = [layer * count + index for layer, index, _ in matches]
        sizes = [abs(match[2]) for match in matches]
        assert len(set(others)) == len(others) == min(MATCHES, r.shape[1])
        assert np.allclose([match[2] for match in matches], r[row, others], atol=1e-6)
        assert sorted(zip([-size for size in sizes], others, strict=True)) == [
            (-size, other) for size, other in zip(sizes, others, strict=True)
        ]
        assert np.allclose(sizes, np.sort(np.abs(r[row]))[::-1][: len(sizes)], atol=1e-6)
        # of those that are surely equal, the smaller: copies, and vectors whose projection is constant
        rounded = np.abs(r[row]).astype(np.float32)
        if sizes[-1] in (0, 1):
            ties = np.flatnonzero(np.isclose(rounded, sizes[-1], atol=1e-6))
            assert [other for other, size in zip(others, sizes, strict=True) if size == sizes[-1]] == [
                *ties[: sizes.count(sizes[-1])]
            ]


def _worth(assignment: list[tuple[int, int]], similarity: NDArray[np.float64]) -> float:
    a, b = ([pair[side] for pair in assignment] for side in (0, 1))
    assert len(assignment) == min(similarity.shape)
    assert len({*a}) == len({*b}) == len(assignment)
    assert a == sorted(a)
    return float(similarity[a, b].sum())


def _best_worth(similarity: NDArray[np.float64]) -> float:
    """The largest sum by trying all ways."""
    S = similarity if similarity.shape[0] <= similarity.shape[1] else similarity.T
    ways = permutations(range(S.shape[1]), S.shape[0])
    return max(float(S[np.arange(len(S)), list(way)].sum()) for way in ways)
