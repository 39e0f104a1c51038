"""Inverted lists against the loop that says what they are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lexiscope.precompute.build.inverted import invert_lists, invert_pairs

SMALL = st.integers(1, 4)


def slices(offsets: NDArray[Any]) -> list[tuple[tuple[int, ...], slice]]:
    n_lenses, n_ends, n_tokens = offsets.shape
    places = np.ndindex(n_lenses, n_ends, n_tokens - 1)
    return [((a, b, token), slice(offsets[a, b, token], offsets[a, b, token + 1])) for a, b, token in places]


@given(
    counts=st.lists(SMALL, min_size=1, max_size=3),
    k=SMALL,
    d_vocab=st.integers(1, 6),
    dtype=st.sampled_from(["uint16", "uint32"]),
    seed=st.integers(0, 1000),
)
def test_lists(counts: list[int], k: int, d_vocab: int, dtype: str, seed: int) -> None:
    """A token may even repeat in a list here; real ones hold a token once."""
    random = np.random.default_rng(seed)
    ids = [random.integers(0, d_vocab, (n, 2, 2, k)).astype(dtype) for n in counts]
    inverted = invert_lists(ids, d_vocab)
    everything = np.concatenate(ids)
    for (lens, end, token), part in slices(inverted["inverted.offsets"]):
        naive = sorted(
            (rank, vector)
            for vector in range(len(everything))
            for rank in range(k)
            if everything[vector, lens, end, rank] == token
        )
        found = zip(inverted["inverted.rank"][part].tolist(), inverted["inverted.vector"][part].tolist(), strict=True)
        assert list(found) == naive
    assert inverted["inverted.offsets"][-1, -1, -1] == everything.size == len(inverted["inverted.rank"])


@given(n_heads=SMALL, n_pairs=SMALL, n_presets=SMALL, d_vocab=st.integers(1, 6), seed=st.integers(0, 1000))
def test_pairs(n_heads: int, n_pairs: int, n_presets: int, d_vocab: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    grid = (n_heads, 2, n_presets, 2)
    ids = {m: random.integers(0, d_vocab, (*grid, n_pairs, 2)).astype(np.uint16) for m in ("vo", "qk")}
    counts = {m: random.integers(0, n_pairs + 1, grid).astype(np.uint32) for m in ("vo", "qk")}
    paired = invert_pairs(ids, counts, d_vocab)
    total = 0
    for (lens, end, token), part in slices(paired["paired.offsets"]):
        naive = sorted(
            (rank, head, matrix, preset, side)
            for matrix, name in enumerate(("vo", "qk"))
            for head in range(n_heads)
            for preset in range(n_presets)
            for rank in range(counts[name][head, lens, preset, end])
            for side in range(2)
            if ids[name][head, lens, preset, end, rank, side] == token
        )
        found = np.column_stack([paired["paired.rank"][part], paired["paired.place"][part]]).tolist()
        assert [tuple(row) for row in found] == naive
        total += len(naive)
    assert total == len(paired["paired.rank"]) == len(paired["paired.place"])


@pytest.mark.parametrize(("n", "k", "vector", "rank"), [
    (10, 3, "uint16", "uint8"), (1 << 16, 1, "uint16", "uint8"), ((1 << 16) + 1, 1, "uint32", "uint8"),
    (2, 257, "uint16", "uint16"),
])  # fmt: skip
def test_numbers_have_the_smallest_type_that_holds_them(n: int, k: int, vector: str, rank: str) -> None:
    ids = np.broadcast_to(np.arange(k, dtype=np.uint16), (n, 2, 2, k))
    inverted = invert_lists([ids], d_vocab=300)
    assert inverted["inverted.vector"].dtype == vector
    assert inverted["inverted.rank"].dtype == rank
    assert inverted["inverted.vector"].max() == n - 1
    assert inverted["inverted.rank"].max() == k - 1


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="token id 7 in a list over 7 tokens"):
        invert_lists([np.full((1, 2, 2, 1), 7, np.uint16)], 7)


def test_a_layer_of_gpt2_small_has_every_entry() -> None:
    """2 * 3072 neurons' and 4 * 768 subheads' vectors, 400 entries each; half of them in the first thousand tokens."""
    random = np.random.default_rng(0)
    ids = (random.random((9216, 2, 2, 100)) ** 6 * 50257).astype(np.uint16)
    inverted = invert_lists([ids], 50257)
    assert len(inverted["inverted.vector"]) == ids.size
