"""Numbers as people read them, and the steps that bars and heat come in."""

import re

import pytest

from app.html.figures import BAR_STEPS, formats, heat, number, ratio, size, steps_per, strip


@pytest.mark.parametrize(("value", "text"), [(1.5, "1.500"), (-0.25, "−0.250"), (0.0, "0.000"), (123.4567, "123.457")])
def test_number(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("peak", "value", "text"),
    [
        (9.9, 1.23456, "1.235"),
        (9.9, -1.23456, "−1.235"),
        (99, 1.23456, "1.23"),
        (999, 12.3456, "12.3"),
        (1e4, 12.3, "12"),
    ],
)
def test_formats(peak: float, value: float, text: str) -> None:
    plus, minus = formats(peak)
    assert (plus % value if value >= 0 else minus % -value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.123, ".12"), (1.0, "1.00"), (None, "–"), (-0.2, "−.20"), (-0.001, ".00"), (0.999, "1.00")]
)
def test_ratio(value: float | None, text: str) -> None:
    assert ratio(value) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1e3, "1 kB"), (999_999, "1 MB"), (1.234e9, "1.23 GB"), (5e12, "5 TB")],
)
def test_size(n_bytes: float, text: str) -> None:
    assert size(n_bytes) == text


@pytest.mark.parametrize(
    ("value", "hottest", "step"),
    [(0, 1, 0), (1, 1, 8), (0.5, 1, 4), (2, 1, 8), (-1, 1, 0), (None, 1, 0), (0.3, 0.3, 8)],
)
def test_heat(value: float | None, hottest: float, step: int) -> None:
    assert heat(value, hottest) == step


def test_bars() -> None:
    assert steps_per(2.0) * 2.0 == BAR_STEPS
    assert steps_per(0.0) == 0  # a vector of zeros


@pytest.mark.parametrize("counts", [(), (0, 0), (1,), (100, 1, 0, 25)])
def test_strip(counts: tuple[int, ...]) -> None:
    heights = [float(h) for h in re.findall(r"v-([\d.]+)", strip(counts, 80, 18))]
    assert len(heights) == sum(count > 0 for count in counts)
    if heights:
        assert max(heights) == 18
        assert min(heights) >= 1
