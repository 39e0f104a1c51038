"""The geometry of the plots."""

import re
from typing import Any

import pytest

from lexiscope.app.html.charts import (
    LABEL,
    WINDOW,
    attention_squares,
    axis_labels,
    coverage_charts,
    histogram_path,
    most_attended,
    shown_positions,
)


@pytest.mark.parametrize("counts", [(), (0, 0), (1,), (100, 1, 0, 25)])
def test_histogram(counts: tuple[int, ...]) -> None:
    heights = [float(height) for height in re.findall(r"v-([\d.]+)", histogram_path(counts, 80, 18))]
    assert len(heights) == sum(count > 0 for count in counts)
    if heights:
        assert max(heights) == 18
        assert min(heights) >= 1


def test_attention() -> None:
    """One path for each step of heat; weights that round to no colour have no square."""
    assert attention_squares([[1.0], [0.001, 0.25]]) == [(4, "M1 1h1v1h-1z"), (8, "M0 0h1v1h-1z")]
    assert most_attended([0.2, 0.5, 0.2, 0.1], 3) == [(1, 0.5), (0, 0.2), (2, 0.2)]


def test_labels() -> None:
    few = [{"id": 1, "token": " <b>"}, {"id": 2, "token": "a" * 20}]
    assert axis_labels(few) == [(0, "␣<b>"), (1, "a" * (LABEL - 1) + "…")]  # type: ignore[arg-type]
    many = [{"id": 1, "token": "a"}] * (2 * WINDOW)
    assert axis_labels(many)[:3] == [(0, "0"), (2, "2"), (4, "4")]  # type: ignore[arg-type]


def test_the_band_of_a_coverage_stays_between_0_and_1() -> None:
    shares = [(0.5, 0.25), (0.1, 0.2), (0.9, 0.2)]
    rows: list[Any] = [
        {"layer": layer, "covered": 0.5, "shuffled": share, "shuffled_sd": sd}
        for layer, (share, sd) in enumerate(shares)
    ]
    (chart,) = coverage_charts([("ff_key", rows)])
    assert chart.lines[1].low == pytest.approx([0.25, 0.0, 0.7])
    assert chart.lines[1].high == pytest.approx([0.75, 0.3, 1.0])
    assert chart.ticks[-1] == ("100%", 0.0)


@pytest.mark.parametrize(("n_tokens", "chosen", "expected"), [
    (5, 4, range(5)), (100, 0, range(24)), (100, 50, range(38, 62)), (100, 99, range(76, 100)),
    (100, None, range(24)),
])  # fmt: skip
def test_positions(n_tokens: int, chosen: int | None, expected: range) -> None:
    assert shown_positions(n_tokens, chosen) == expected
