"""Numbers as people read them, and the steps that bars and heat come in."""

from collections.abc import Callable

import pytest

from lexiscope.app.html.numbers import BAR_STEPS, bar, heat, number, percent, rank_heat, ratio, score, short_rank


@pytest.mark.parametrize(("write", "written"), [
    (number, {1.5: "1.500", -0.25: "−0.250", 0.0: "0.000", 123.4567: "123.457"}),
    (ratio, {0.123: ".12", 1.0: "1.00", None: "–", -0.2: "−.20", -0.001: ".00", 0.999: "1.00"}),
    (percent, {1.0: "100%", 0.9996: "100%", 0.9: "90%", 0.0995: "10%", 0.0512: "5.1%", 0.0004: "<0.1%", 0.0: "<0.1%"}),
    (short_rank, {1.0: "1", 7.5: "7.5", 43.4: "43", 999.6: "1.0k", 1234: "1.2k", 23456: "23k"}),
])  # fmt: skip
def test_numbers(write: Callable[[float | None], str], written: dict[float | None, str]) -> None:
    assert {value: write(value) for value in written} == written


@pytest.mark.parametrize(("write", "written"), [
    (score, {(0.006584, 0.006584): ".00658", (-0.0234, 0.05): "−.0234", (0.0, 0.0): "0.000",
             (1.23456, 9.9): "1.235", (-1.23456, 9.9): "−1.235", (1.23456, 99): "1.23", (12.3456, 999): "12.3",
             (12.3, 1e4): "12"}),
    (heat, {(0, 1): 0, (1, 1): 8, (0.5, 1): 4, (2, 1): 8, (-1, 1): 0, (None, 1): 0, (0.3, 0.3): 8}),
    (bar, {(2, 2): BAR_STEPS, (-2, 2): BAR_STEPS, (1, 2): 25, (0, 2): 0, (0, 0): 0}),
    (rank_heat, {(1.0, 10_000): 8, (0.5, 10_000): 8, (50.0, 10_000): 3, (500.0, 10_000): 0, (9999.0, 10_000): 0}),
])  # fmt: skip
def test_numbers_beside_their_peak(
    write: Callable[[float | None, float], object], written: dict[tuple[float | None, float], object]
) -> None:
    """Of ranks the bound is a twentieth of all tokens."""
    assert {(value, peak): write(value, peak) for value, peak in written} == written
