"""The geometry of charts of counts."""

import pytest

from lexiscope.app.html.count_chart import HEIGHT, WIDTH, Column, CountChart


def chart(*counts: tuple[int, int], is_mirrored: bool) -> CountChart:
    return CountChart([Column(str(at), *both) for at, both in enumerate(counts)], [], is_mirrored)


@pytest.mark.parametrize(("counts", "is_mirrored", "zero", "ticks"), [
    ([(0, 0)], True, HEIGHT, ["0"]),
    ([(2, 0), (0, 2)], True, HEIGHT / 2, ["0", "1", "2", "1", "2"]),
    ([(100, 0)], True, HEIGHT, ["0", "20", "50", "100"]),
    ([(0, 100)], True, 0, ["0", "20", "50", "100"]),
    ([(978, 1514), (4, 0)], False, HEIGHT, ["0", "50", "200", "500", "1,000"]),
])  # fmt: skip
def test_ticks_are_round_numbers_with_room(
    counts: list[tuple[int, int]], is_mirrored: bool, zero: float, ticks: list[str]
) -> None:
    drawn = chart(*counts, is_mirrored=is_mirrored)
    assert (drawn.zero, [text for text, _ in drawn.ticks]) == (zero, ticks)


def test_heights_are_counts_or_their_roots() -> None:
    both = chart((30, 10), (0, 0), is_mirrored=True)
    assert (both.y(30), both.zero, both.y(10, -1)) == (0, 0.75 * HEIGHT, HEIGHT)
    bars = chart((25, 100), (0, 4), is_mirrored=False)
    assert (bars.y(25), bars.y(100), bars.x(2)) == (HEIGHT / 2, 0, WIDTH)
    assert bars.outline == f"M0 {HEIGHT}.0V0.0H230.0V{0.8 * HEIGHT:.1f}H460.0V{HEIGHT}.0"
