"""The kernel between two embedding spaces, against least squares over the common tokens."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lexiscope.precompute.compare.common_tokens import CommonTokens
from lexiscope.precompute.compare.space import Grams

Ids = Sequence[int] | NDArray[np.int64]


def kernel(W_EA: torch.Tensor, W_EB: torch.Tensor, a_ids: Ids, b_ids: Ids) -> NDArray[np.float64]:
    common = CommonTokens(np.array(a_ids), np.array(b_ids), "ids")
    with ThreadPoolExecutor(2) as pool:
        return np.asarray(Grams.of(W_EA, W_EB, common, torch.device("cpu"), pool).kernel())


def embedding(d_vocab: int, d_model: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(d_vocab, d_model, generator=generator) + 0.5


@pytest.mark.parametrize(("d_a", "d_b"), [(8, 8), (5, 12), (12, 5)])
def test_a_kernel_is_the_product_with_the_pseudo_inverse(d_a: int, d_b: int) -> None:
    """K_AB = E_A E_B⁺, the paper's; over the tokens that both have, by whatever ids."""
    W_EA, W_EB = embedding(5000, d_a, 1), embedding(4700, d_b, 2)
    a_ids, b_ids = np.random.default_rng(0).permutation(5000)[:4500], np.random.default_rng(1).permutation(4700)[:4500]
    E_A, E_B = (W.double().numpy()[ids].T for W, ids in ((W_EA, a_ids), (W_EB, b_ids)))  # (d, tokens) as in the paper
    assert kernel(W_EA, W_EB, a_ids, b_ids) == pytest.approx(E_A @ np.linalg.pinv(E_B), abs=1e-12)


def test_a_model_with_itself_is_the_identity() -> None:
    W_E = embedding(300, 16, 3)
    assert kernel(W_E, W_E, range(300), range(300)) == pytest.approx(np.eye(16), abs=1e-12)


def test_tokens_that_do_not_span_the_space() -> None:
    """Five tokens in sixteen dimensions: the smallest kernel that maps them as well as can be."""
    W_EA, W_EB = embedding(5, 4, 4), embedding(5, 16, 5)
    found = kernel(W_EA, W_EB, range(5), range(5))
    assert found == pytest.approx(W_EA.double().numpy().T @ np.linalg.pinv(W_EB.double().numpy().T), abs=1e-12)
