"""Which of very many lists are damaged is what looking at each list tells."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.index.layer.checks import list_error, unsound

D_VOCAB = 6


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, D_VOCAB), min_size=4, max_size=4),
            st.lists(st.sampled_from([3.0, 2.0, 2.0, 1.0, float("nan"), float("inf")]), min_size=4, max_size=4),
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_unsound_lists_are_those_with_a_fault(lists: list[tuple[list[int], list[float], int]], sort: bool) -> None:
    ids = np.array([tokens for tokens, _, _ in lists], np.uint16)
    scores = np.array([sorted(values, reverse=True) if sort else values for _, values, _ in lists], np.float32)
    counts = np.array([count for _, _, count in lists])
    there = np.arange(4) < counts[:, None]
    pairs = np.stack([ids, ids[:, ::-1]], axis=-1)
    for entries in (ids, pairs):
        assert unsound(entries, scores, D_VOCAB).tolist() == [
            list_error(one, falling, D_VOCAB) is not None for one, falling in zip(entries, scores, strict=True)
        ]
        assert unsound(entries, scores, D_VOCAB, there).tolist() == [
            list_error(one[:count], falling[:count], D_VOCAB) is not None
            for one, falling, count in zip(entries, scores, counts, strict=True)
        ]
