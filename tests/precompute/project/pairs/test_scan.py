"""What a scan passes over without a look holds nothing that is looked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.project.pairs.coordinates import as_columns, as_rows, balance
from lexiscope.precompute.project.pairs.scan import strips_within_reach
from lexiscope.precompute.project.pairs.strips import STRIP
from lexiscope.precompute.shape import LENSES
from tests.precompute.project.heads import Head
from tests.precompute.project.vocabularies import KINDS


@given(
    kind=st.sampled_from(KINDS),
    d_vocab=st.integers(1, 1200),
    lens=st.sampled_from(LENSES),
    share=st.sampled_from([1e-5, 1e-3, 0.1]),
    together=st.sampled_from([1, 8, 512]),
    first=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_ranges_hold_every_large_score(
    kind: str, d_vocab: int, lens: str, share: float, together: int, first: float, seed: int
) -> None:
    head = Head.of(kind, d_vocab, 6, seed)
    a, b = balance(*head.factors(lens))
    tokens = np.arange(d_vocab, dtype=np.int32)
    rows, columns = as_rows(a, tokens, head.surface).arrays, as_columns(b, tokens, head.surface).arrays
    i0 = int(first * (d_vocab - 1))
    i1 = min(i0 + together, d_vocab)
    # In float64 from the very coordinates that the bounds are of: what they are off by is tested elsewhere.
    coords = [side.coords[:d_vocab].astype(np.float64) for side in (rows, columns)]
    scores = rows.shift[:, None].astype(np.float64) + columns.shift.reshape(-1)[:d_vocab] + coords[0] @ coords[1].T
    top, bottom = np.quantile(scores, [1 - share, share])
    ranges = strips_within_reach(rows, columns, i0, i1, top, bottom)
    assert (np.diff(ranges.reshape(-1)) >= 0).all()
    assert (ranges[:, 0] < ranges[:, 1]).all()
    looked = np.zeros(len(columns.shift), bool)
    for start, stop in ranges:
        looked[start:stop] = True
    wanted = ((scores[i0:i1] >= top) | (scores[i0:i1] <= bottom)).any(axis=0)
    assert not wanted[~np.repeat(looked, STRIP)[:d_vocab]].any()


def test_most_columns_are_passed_over_where_norms_differ() -> None:
    head = Head.of("heavy tail", 3000, 16, 0)
    a, b = balance(*head.factors("dot"))
    tokens = np.arange(3000, dtype=np.int32)
    rows, columns = as_rows(a, tokens, head.surface).arrays, as_columns(b, tokens, head.surface).arrays
    scores = rows.coords @ columns.coords[:3000].T
    ranges = strips_within_reach(rows, columns, 2500, 2508, float(scores.max()), float(scores.min()))
    assert np.diff(ranges).sum() < len(columns.shift) / 4
