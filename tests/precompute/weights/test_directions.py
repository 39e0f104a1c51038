"""Singular directions of heads, against a whole decomposition of the whole matrix by numpy; degenerate heads."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lexiscope.precompute.shape import DIRECTIONS, MATRICES
from lexiscope.precompute.weights import directions
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference, Parameters
from lexiscope.precompute.weights.directions import Directions, find_directions
from tests.support.differences import UNCHANGED_HEAD, UNCHANGED_LAYER, difference_of, fine_tune, nudged, tuned_from
from tests.support.directions import Float64, by_full_svd
from tests.support.models import tiny_gpt2, tiny_llama

Make = Callable[[Path], Parameters]


def plain(make: Callable[[Path], Path], folder: Path) -> Parameters:
    return describe(Checkpoint.open(make(folder / "model")))


def difference(make: Callable[[Path], Path], size: float, folder: Path) -> Parameters:
    base = make(folder / "base")
    tuned = tuned_from(base, folder / "tuned", lambda name, tensor: nudged(tensor, len(name), size))
    return difference_of(tuned, base)


MODELS: dict[str, Make] = {
    "gpt2": partial(plain, tiny_gpt2),
    "gpt2 untied": partial(plain, partial(tiny_gpt2, tied=False)),
    "llama gated, grouped, untied": partial(plain, tiny_llama),
    "difference": partial(difference, tiny_gpt2, 0.3),
    "small difference": partial(difference, tiny_llama, 1e-4),
}


def matrix_of(model: Parameters, layer: int, matrix: str, head: int) -> Float64:
    models = (model.tuned, model.base) if isinstance(model, Difference) else (model,)
    M, *base = (np.multiply(1.0, _multiplied_out(each, layer, matrix, head)) for each in models)
    return M - base[0] if base else M


def _multiplied_out(model: Parameters, layer: int, matrix: str, head: int) -> Float64:
    s = model.shape
    kinds = {"vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}[matrix]
    left, right = (model.vectors(layer, kind).double().numpy().reshape(-1, s.d_head, s.d_model) for kind in kinds)
    return np.asarray(left[head * len(left) // s.n_heads].T @ right[head * len(right) // s.n_heads])


@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_of_the_whole_matrix(tmp_path: Path, name: str) -> None:
    model = MODELS[name](tmp_path)
    s = model.shape
    for layer in range(s.n_layers):
        for matrix in MATRICES:
            W = (model.W_U if matrix == "vo" else model.W_E).double().numpy()
            singular = model.directions.of(layer, matrix).singular.double().numpy()
            ins, outs = (model.vectors(layer, kind) for kind in DIRECTIONS[matrix])
            assert ins.dtype == outs.dtype == torch.float32
            assert ins.shape == outs.shape == (s.n_heads * s.d_head, s.d_model)
            for head in range(s.n_heads):
                expected = by_full_svd(matrix_of(model, layer, matrix, head), W, s.d_head)
                rows = slice(head * s.d_head, (head + 1) * s.d_head)
                np.testing.assert_allclose(singular[head], expected[2], rtol=1e-6)
                np.testing.assert_allclose(ins[rows].numpy(), expected[0], atol=2e-6)
                np.testing.assert_allclose(outs[rows].numpy(), expected[1], atol=2e-6)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


VOCABULARY = random(50, 12, seed=9).float()


def of_one_head(left: Tensor, right: Tensor, W: Tensor = VOCABULARY) -> tuple[Directions, Tensor]:
    """Of the head left rightᵀ; and what they add up to."""
    found = find_directions([(left, right)], W, left.shape[1])
    return found, (found.left.T.double() * found.singular[0].double()) @ found.right.double()


def test_a_head_with_fewer_directions_than_channels() -> None:
    left, right = random(12, 6), random(12, 6, seed=1)
    left[:, 2] = left[:, 3]
    right[:, 5] = 0
    found, total = of_one_head(left, right)
    torch.testing.assert_close(total, left @ right.T, atol=1e-5, rtol=1e-5)
    assert (found.singular[0] > 0).tolist() == [True] * 4 + [False] * 2  # two channels are one, and one is none
    for vectors in (found.left, found.right):
        lengths = torch.linalg.vector_norm(vectors, dim=1)
        assert lengths[:4].tolist() == pytest.approx([1] * 4)
        assert lengths[4:].tolist() == [0, 0]


def test_a_head_of_zeros_and_one_with_more_channels_than_d_model() -> None:
    nothing, _ = of_one_head(random(12, 6), torch.zeros(12, 6, dtype=torch.float64))
    assert not any(part.any() for part in (nothing.left, nothing.right, nothing.singular))
    left, right = random(12, 20), random(12, 20, seed=1)
    found, total = of_one_head(left, right)
    assert found.left.shape == (20, 12)
    assert (found.singular[0] > 0).sum() == 12
    torch.testing.assert_close(total, left @ right.T, atol=1e-5, rtol=1e-5)


def test_equal_singular_values_span_what_they_must() -> None:
    """Any basis of it will do; pairs belong together."""
    (ins, _), (outs, _) = torch.linalg.qr(random(12, 5)), torch.linalg.qr(random(12, 5, seed=1))
    sigma = torch.tensor([3.0, 2.0, 2.0, 2.0, 1.0], dtype=torch.float64)
    found, total = of_one_head(ins * sigma, outs)
    torch.testing.assert_close(found.singular[0].double(), sigma)
    torch.testing.assert_close(total, (ins * sigma) @ outs.T, atol=1e-6, rtol=1e-6)
    for vectors, exact in ((found.left, ins), (found.right, outs)):
        torch.testing.assert_close((vectors[1:4].T @ vectors[1:4]).double(), exact[:, 1:4] @ exact[:, 1:4].T)


def test_what_is_below_the_rounding_of_float32_is_no_direction() -> None:
    (ins, _), (outs, _) = torch.linalg.qr(random(12, 4)), torch.linalg.qr(random(12, 4, seed=1))
    sigma = torch.tensor([1e20, 1e18, 1e14, 1e10], dtype=torch.float64)
    found, _ = of_one_head(ins * sigma, outs)
    torch.testing.assert_close(found.singular[0].double(), torch.tensor([1e20, 1e18, 1e14, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("turned", [False, True])
def test_of_scores_that_tie_the_first_is_positive(turned: bool) -> None:
    """Every token has its opposite: the largest score is there with both signs."""
    W = torch.cat([VOCABULARY, -VOCABULARY])
    found, _ = of_one_head(random(12, 6), random(12, 6, seed=1), -W if turned else W)
    scores = found.right.double() @ (-W if turned else W).double().T
    first = scores[torch.arange(6), scores.abs().argmax(dim=1) % len(VOCABULARY)]
    assert (first > 0).all()


def test_an_unchanged_head_of_a_difference_has_none(tmp_path: Path) -> None:
    base = tiny_gpt2(tmp_path / "base", n_layers=2)
    found = difference_of(tuned_from(base, tmp_path / "tuned", fine_tune), base)
    for matrix in MATRICES:
        assert not found.directions.of(UNCHANGED_LAYER, matrix).singular.any()
        of_heads = found.directions.of(1, matrix).singular
        assert (of_heads > 0).all(dim=1).tolist() == [head != UNCHANGED_HEAD for head in range(found.shape.n_heads)]
    assert not found.vectors(UNCHANGED_LAYER, "vo_out").any()


def test_only_the_last_ones_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = plain(tiny_gpt2, tmp_path)
    one = model.directions.of(0, "vo")
    assert model.directions.of(0, "vo") is one
    monkeypatch.setattr(directions, "KEPT_DIRECTIONS_BYTES", 2 * one.n_bytes)
    model.directions.of(0, "qk")
    assert model.directions.of(0, "vo") is one
    model.directions.of(1, "vo")
    model.directions.of(1, "qk")
    assert model.directions.of(0, "vo") is not one
