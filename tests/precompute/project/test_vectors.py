"""Vector lists against brute force, bit for bit: every k, both lenses and ends, with vocabularies made to be hard."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.vector_kernel import GROUP, kth_largest
from lexiscope.precompute.project.vectors import MARGIN, MOST_VECTORS, Lists, Projector
from tests.precompute.project.vocabularies import KINDS, vocabulary
from tests.support import brute

Array = NDArray[Any]
CPU = torch.device("cpu")


def projector(E: Array, k: int) -> Projector:
    return Projector(Embedding.of(torch.from_numpy(E), CPU), k)


def project(E: Array, V: Array, k: int, threads: int = 1) -> Lists:
    with ThreadPoolExecutor(threads) as pool:
        return projector(E, k).lists(torch.from_numpy(V), pool)


def project_on_device(E: Array, V: Array, k: int) -> tuple[Lists, Array]:
    """As on another device, and for which vectors its own top-k was proved to hold the lists."""
    p = projector(E, k)
    product = torch.from_numpy(V @ E.T)
    lists = Lists(np.empty((len(V), 2, 2, p.k), np.uint32), np.empty((len(V), 2, 2, p.k), np.float32))
    p.select_on_device(product, V, lists.ids, lists.scores)
    return lists, p.propose(product, p.vector_errors(V), p.mean_dots(V))[1]


def vectors(kind: str, n: int, d_model: int, seed: int) -> Array:
    """Of whole numbers where the vocabulary is, so that ties are ties; some of them zero, the last one large."""
    random = np.random.default_rng(seed + 1)
    V = random.standard_normal((n, d_model)).astype(np.float32)
    if kind in ("integers", "signed zeros"):
        V = random.integers(-2, 3, (n, d_model)).astype(np.float32)
    V[random.random(n) < 0.1] = 0
    V[-1] *= 2**20
    return V


def same(lists: Lists, E: Array, V: Array, k: int) -> None:
    ids, scores = brute.vector_lists(E, V, k)
    np.testing.assert_array_equal(lists.ids, ids)
    np.testing.assert_array_equal(lists.scores, scores)
    assert not (np.signbit(lists.scores) & (lists.scores == 0)).any()


@pytest.mark.slow
@given(
    kind=st.sampled_from(KINDS),
    d_vocab=st.integers(1, 3 * GROUP),
    d_model=st.integers(1, 70),
    n=st.integers(1, 9),
    k=st.integers(1, 200),
    seed=st.integers(0, 1000),
)
def test_lists_are_those_of_a_full_sort(kind: str, d_vocab: int, d_model: int, n: int, k: int, seed: int) -> None:
    E, V = vocabulary(kind, d_vocab, d_model, seed), vectors(kind, n, d_model, seed)
    same(project(E, V, k), E, V, k)
    same(project_on_device(E, V, k)[0], E, V, k)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d_vocab", [GROUP - 1, GROUP, 4 * GROUP + 1])
def test_every_k_at_the_edges_of_groups(kind: str, d_vocab: int) -> None:
    E, V = vocabulary(kind, d_vocab, 12, d_vocab), vectors(kind, 3, 12, d_vocab)
    for k in {1, 2, GROUP - 1, GROUP, GROUP + 1, d_vocab - 1, d_vocab, d_vocab + 1}:
        same(project(E, V, k), E, V, k)
        same(project_on_device(E, V, k)[0], E, V, k)


def test_every_k_of_a_small_vocabulary() -> None:
    E, V = vocabulary("integers", 80, 3, 0), vectors("integers", 4, 3, 0)
    for k in range(1, 82):
        same(project(E, V, k), E, V, k)


@pytest.mark.parametrize("n", [1, MOST_VECTORS - 1, MOST_VECTORS, MOST_VECTORS + 1, 2 * MOST_VECTORS + 7])
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks(n: int, threads: int) -> None:
    E, V = vocabulary("heavy tail", 130, 9, n), vectors("heavy tail", n, 9, n)
    same(project(E, V, 10, threads), E, V, 10)


def test_no_vectors_give_no_lists() -> None:
    assert project(vocabulary("random", 9, 4, 0), np.empty((0, 4), np.float32), 3).ids.shape == (0, 2, 2, 3)


@pytest.mark.parametrize(("kind", "proved"), [("random", True), ("all equal", False), ("equal halves", None)])
def test_a_device_proposes_and_where_that_proves_nothing_the_cpu_decides(kind: str, proved: bool | None) -> None:
    """Many ties: a device's top-k may hold any of them, so that the smallest ids are not sure to be among them."""
    E, V = vocabulary(kind, 4 * MARGIN + 100, 8, 0), vectors(kind, 12, 8, 5)
    V = V[V.any(axis=1)]
    lists, sure = project_on_device(E, V, 7)
    same(lists, E, V, 7)
    if proved is None:
        assert not sure.all()
    else:
        assert (sure == proved).all()


@given(kind=st.sampled_from(KINDS), d_vocab=st.integers(1, 150), d_model=st.integers(1, 300), seed=st.integers(0, 1000))
@example("huge outlier", 100, 64, 0)
@example("offset", 100, 2000, 0)
def test_scores_of_the_product_err_less_than_is_claimed(kind: str, d_vocab: int, d_model: int, seed: int) -> None:
    E, V = vocabulary(kind, d_vocab, d_model, seed), vectors(kind, 5, d_model, seed)
    p = projector(E, 1)
    product, claimed = V @ E.T, p.vector_errors(V).astype(np.float64)[:, None]
    shift = p.mean_dots(V).astype(np.float32)[:, None]
    cosine = (product - shift) * p.inverse_norm.astype(np.float32)
    for lens, (name, computed) in enumerate((("dot", product), ("cosine", cosine))):
        error = np.abs(computed - brute.vector_scores(E, V, name))
        assert (error <= claimed * p.slack[lens]).all()


@pytest.mark.parametrize(
    ("embedding", "vector"),
    [(1e20, 1e19), (1e19, 1e20), (3e38, 1e30), (3e38, 0.0), (3e38, 1e-30), (1.0, 3e38), (2e19, 1e19), (6e18, 6e18)],
)
def test_scores_beyond_float32_are_refused(embedding: float, vector: float) -> None:
    E = np.full((20, 4), embedding, np.float32) * np.array([[1], [-1]] * 10, np.float32)
    with pytest.raises(BadWeights, match="overflow"):
        project(E, np.full((2, 4), vector, np.float32), 3)


@pytest.mark.parametrize(("embedding", "vector"), [(1e19, 1e18), (1e18, 1e19), (1e-30, 3e37), (1e30, 1e-30)])
def test_large_scores_within_float32_are_listed(embedding: float, vector: float) -> None:
    E, V = vocabulary("random", 100, 3, 0) * np.float32(embedding), vectors("random", 3, 3, 0)
    V[-1] /= 2**20
    V *= np.float32(vector)
    same(project(E, V, 5), E, V, 5)
    same(project_on_device(E, V, 5)[0], E, V, 5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(BadWeights):
        project(vocabulary("random", 20, 2, 0), np.array([[0, value]], np.float32), 3)


@given(
    values=st.lists(st.floats(-3, 3, width=32) | st.sampled_from([0.0, -0.0, 1.0, -math.inf]), min_size=1, max_size=60),
    data=st.data(),
)
def test_the_kth_largest_of_any_values(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    assert kth_largest(np.array(values, np.float32), k) == sorted(values, reverse=True)[k - 1]
