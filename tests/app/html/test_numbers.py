"""Numbers as people read them, and the steps that bars and heat come in."""

import pytest

from app.html.numbers import BAR_STEPS, bar, heat, number, percent, rank_heat, ratio, score, short_rank, size


@pytest.mark.parametrize(("value", "text"), [(1.5, "1.500"), (-0.25, "−0.250"), (0.0, "0.000"), (123.4567, "123.457")])
def test_number(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(("peak", "value", "text"), [
    (9.9, 1.23456, "1.235"), (9.9, -1.23456, "−1.235"), (99, 1.23456, "1.23"), (999, 12.3456, "12.3"),
    (1e4, 12.3, "12"),
])  # fmt: skip
def test_score(peak: float, value: float, text: str) -> None:
    assert score(value, peak) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.123, ".12"), (1.0, "1.00"), (None, "–"), (-0.2, "−.20"), (-0.001, ".00"), (0.999, "1.00")]
)
def test_ratio(value: float | None, text: str) -> None:
    assert ratio(value) == text


@pytest.mark.parametrize(("n_bytes", "text"), [
    (0, "0 B"), (999, "999 B"), (1e3, "1 kB"), (999_999, "1 MB"), (1.234e9, "1.23 GB"), (5e12, "5 TB"),
])  # fmt: skip
def test_size(n_bytes: float, text: str) -> None:
    assert size(n_bytes) == text


@pytest.mark.parametrize(("value", "hottest", "step"), [
    (0, 1, 0), (1, 1, 8), (0.5, 1, 4), (2, 1, 8), (-1, 1, 0), (None, 1, 0), (0.3, 0.3, 8),
])  # fmt: skip
def test_heat(value: float | None, hottest: float, step: int) -> None:
    assert heat(value, hottest) == step


@pytest.mark.parametrize(
    ("value", "peak", "step"), [(2, 2, BAR_STEPS), (-2, 2, BAR_STEPS), (1, 2, 25), (0, 2, 0), (0, 0, 0)]
)
def test_bar(value: float, peak: float, step: int) -> None:
    assert bar(value, peak) == step


@pytest.mark.parametrize(("rank", "step"), [(1.0, 8), (0.5, 8), (50.0, 3), (500.0, 0), (9999.0, 0)])
def test_rank_heat(rank: float, step: int) -> None:
    """A twentieth of 10,000 tokens is 500."""
    assert rank_heat(rank, 10_000) == step


@pytest.mark.parametrize(("p", "text"), [
    (1.0, "100%"), (0.9996, "100%"), (0.9, "90%"), (0.0995, "10%"), (0.0512, "5.1%"), (0.0004, "<0.1%"),
    (0.0, "<0.1%"),
])  # fmt: skip
def test_percent(p: float, text: str) -> None:
    assert percent(p) == text


@pytest.mark.parametrize(
    ("rank", "text"), [(1.0, "1"), (7.5, "7.5"), (43.4, "43"), (999.6, "1.0k"), (1234, "1.2k"), (23456, "23k")]
)
def test_short_rank(rank: float, text: str) -> None:
    assert short_rank(rank) == text
