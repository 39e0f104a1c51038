"""The top pairs of a head against its full matrix, bit for bit: presets, ends, lenses; with heads made to be hard."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.project.pairs.head_pairs import top_pairs
from lexiscope.precompute.project.pairs.masks import LARGE_GROUP, Masks
from lexiscope.precompute.shape import LENSES, PRESETS
from tests.precompute.project.heads import SMALL_WEIGHTS, Head, same
from tests.precompute.project.vocabularies import KINDS
from tests.support import brute

pytestmark = pytest.mark.slow


def check(head: Head, n: int, exhaustive: bool = False) -> None:
    for lens in LENSES:
        found, true = top_pairs(head.matrix(), head.masks(), lens, n, exhaustive), head.brute(lens, n)
        assert found.keys() == set(PRESETS)
        for preset in PRESETS:
            same(found[preset], true[preset])


@given(
    kind=st.sampled_from(KINDS),
    d_vocab=st.integers(1, 200),
    d_model=st.integers(1, 30),
    d_head=st.integers(1, 80),
    n=st.integers(1, 600),
    seed=st.integers(0, 1000),
    tied=st.booleans(),
    exhaustive=st.booleans(),
)
def test_pairs_are_those_of_the_full_matrix(
    kind: str, d_vocab: int, d_model: int, d_head: int, n: int, seed: int, tied: bool, exhaustive: bool
) -> None:
    check(Head.of(kind, d_vocab, d_head, seed, d_model=d_model, tied=tied), n, exhaustive)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_vocabulary(kind: str) -> None:
    check(Head.of(kind, 400, 24, 3, tied=False), 200)


@pytest.mark.parametrize(("d_vocab", "words"), [(255, 0), (256, 1), (257, 0), (511, 1), (512, 0), (513, 1)])
def test_vocabularies_at_the_edges_of_strips_and_shells(d_vocab: int, words: int) -> None:
    """With words alone, or none, all of the vocabulary is one part of the search."""
    check(Head.of("heavy tail", d_vocab, 40, d_vocab, words=words), 50)


@pytest.mark.parametrize(("kind", "d_vocab", "d_head", "tied"), [
    ("heavy tail", 2100, 64, True), ("random", 1537, 64, False), ("integers", 1025, 8, True),
])  # fmt: skip
def test_vocabularies_of_several_shells_and_chunks(kind: str, d_vocab: int, d_head: int, tied: bool) -> None:
    check(Head.of(kind, d_vocab, d_head, 1, tied=tied, words=0.6), 300)


@pytest.mark.parametrize("d_head", [1, 7, 8, 9, 31, 32, 33, 64, 65])
def test_sizes_of_heads(d_head: int) -> None:
    check(Head.of("heavy tail", 300, d_head, d_head, d_model=70), 40)


@pytest.mark.parametrize(
    ("surfaces", "words"), [(1, 0.5), (1, 1), (2, 0.5), (2, 0), (2, 1), (10**6, 0.5), (40, 0.02), (40, 0.98)]
)
def test_masks(surfaces: int, words: float) -> None:
    """One surface for all: nothing is distinct. No words, or none but words. Hardly any two of one surface."""
    for kind in ("random", "integers"):
        check(Head.of(kind, 200, 12, 0, surfaces=surfaces, words=words), 30)


@pytest.mark.parametrize("n", [1, 143, 144, 145, 10_000])
def test_lists_longer_than_there_are_pairs(n: int) -> None:
    check(Head.of("random", 12, 5, 0, surfaces=5), n)


@pytest.mark.parametrize("side", ["W_left", "W_right"])
@pytest.mark.parametrize("n", [1, 40, 10**5])
def test_a_zero_matrix_lists_the_smallest_ids(side: str, n: int) -> None:
    head = Head.of("random", 60, 5, 0)
    check(replace(head, **{side: np.zeros_like(getattr(head, side))}), n)


@pytest.mark.parametrize("d_head", [1, 20])
def test_rank_one(d_head: int) -> None:
    head = Head.of("random", 500, d_head, 0)
    head.W_left[:, 1:] = 0
    check(head, 100)


def test_opposite_and_equal_factors() -> None:
    """Symmetric matrices: every pair ties with its mirror image."""
    head = Head.of("random", 300, 16, 0)
    check(replace(head, W_right=head.W_left), 99)
    check(replace(head, W_right=-head.W_left), 99)


@pytest.mark.parametrize("scale", [(1e-25, 1e-25), (1e-15, 1e-7), (1e12, 1e-12), (1e9, 1e9), (1e14, 1e14)])
def test_scales_of_weights(scale: tuple[float, float]) -> None:
    """Down to where all scores round to nothing, up to near the largest float32."""
    check(Head.of("random", 150, 10, 0, tied=False).scaled(*scale), 60)


@pytest.mark.parametrize("scale", SMALL_WEIGHTS)
def test_small_weights(scale: tuple[float, float]) -> None:
    check(Head.of("heavy tail", 79, 63, 0, tied=False).scaled(*scale), 20)


@pytest.mark.parametrize(("embedding", "left", "right"), [
    (1e-25, 1e-25, 1e5), (0.05, 3e-45, 1e12), (1e-30, 1e-10, 1e12), (1e-30, 1e10, 1e-30), (1e-36, 1e14, 1e-20),
    (1e30, 1e-44, 1e-31), (1e-38, 1e5, 1e5), (1e-42, 1e12, 1e12), (1.0, 1e-40, 1e-3),
    (1.0, 1e-22, 1e-22),  # scores at the least that float32 holds
    (1.0, 1e-23, 3e-23), (1.0, 1e-24, 1e-24), (1e-20, 1e-20, 1e-20),
])  # fmt: skip
def test_factors_that_vanish_in_float32(embedding: float, left: float, right: float) -> None:
    """Each score is a float32 all the same, computed in float64: only where that is 0 the list is."""
    head = Head.of("heavy tail", 150, 20, 3, tied=False)
    E = np.float32(embedding)
    small = replace(head, source=head.source * E, target=head.target * E)
    for W, size in ((small.W_left, left), (small.W_right, right)):
        W[:] = (W.astype(np.float64) * size).astype(np.float32)
    check(small, 40)


def test_one_side_vanishes_by_structure_alone() -> None:
    """The embedding has nothing where the weights have something."""
    head = Head.of("random", 80, 6, 0, d_model=10)
    head.W_left[:5] = 0
    head.source[:, 5:] = 0
    check(head, 30)


@pytest.mark.parametrize("scale", [(1e19, 1e19), (1e30, 1e5), (1e30, 1e-30), (1e5, 1e36)])
@pytest.mark.parametrize("lens", LENSES)
def test_weights_beyond_float32_are_refused(scale: tuple[float, float], lens: str) -> None:
    head = Head.of("random", 50, 10, 0).scaled(*scale)
    with pytest.raises(BadWeights, match="overflow") as caught:
        top_pairs(head.matrix(), head.masks(), lens, 10)
    its_scores_fit = scale == (1e30, 1e-30)
    assert ("its scores may be small" in str(caught.value)) == its_scores_fit


def test_masks_know_all_pairs_of_one_surface() -> None:
    surface = np.array([2, 0, 1, 0, 2, 2], np.int32)
    masks = Masks.of(surface, np.zeros(6, bool))
    pairs = set(zip(masks.same_from.tolist(), masks.same_to.tolist(), strict=True))
    assert len(pairs) == len(masks.same_from) == 9 + 4 + 1
    assert pairs == {(i, j) for i in range(6) for j in range(6) if surface[i] == surface[j]}


def test_masks_do_not_write_out_the_pairs_of_large_groups() -> None:
    surface = np.array([0] * LARGE_GROUP + [1] * (LARGE_GROUP + 1) + [2], np.int32)
    masks = Masks.of(surface, np.zeros(len(surface), bool))
    assert len(masks.same_from) == LARGE_GROUP**2 + 1
    assert [group.tolist() for group in masks.large] == [list(range(LARGE_GROUP, 2 * LARGE_GROUP + 1))]


def with_empty_rows(kind: str, n_empty: int, equal: int = 0) -> Head:
    """A head whose vocabulary has so many rows of one surface among some words; `equal` of these are the same."""
    head = Head.of(kind, n_empty + 200, 6, 1, d_model=8, tied=False)
    surface = np.arange(len(head.surface), dtype=np.int32)
    empty = np.random.default_rng(0).permutation(len(surface))[:n_empty]
    surface[empty] = 7
    for E in (head.source, head.target):
        E[empty[:equal]] = 3 * E[empty[0]]
    return replace(head, surface=surface, words=head.words & (surface != 7))


@pytest.mark.parametrize(
    ("kind", "equal"), [("random", 0), ("heavy tail", 0), ("random", 900), ("integers", 0), ("integers", 900)]
)
@pytest.mark.parametrize("exhaustive", [False, True])
def test_large_groups_of_one_surface(kind: str, equal: int, exhaustive: bool) -> None:
    check(with_empty_rows(kind, 1000, equal), 60, exhaustive)


def test_thousands_of_empty_rows_need_little_memory() -> None:
    head = with_empty_rows("heavy tail", 4000, equal=2000)
    matrix = head.matrix()
    tracemalloc.start()
    found = top_pairs(matrix, head.masks(), "dot", 100)["all"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # the pairs alone would be 128 MB
    scores = brute.rounded(head.true_scores("dot"))
    same(found, brute.best_pairs(scores, np.ones_like(scores, bool), 100))
