"""The geometry of line charts and of other plots."""

import re
from typing import Any

import pytest

from lexiscope.app.html.charts import (
    LABEL_CHARACTERS,
    WINDOW,
    attention_squares,
    axis_labels,
    coverage_charts,
    histogram_path,
    most_attended,
    shown_positions,
)
from lexiscope.app.html.line_chart import COLOURS, HEIGHT, LABEL_LINE, MARKS, WIDTH, Level, Line, LineChart, spread
from lexiscope.app.html.numbers import percent


def chart(*lines: Line, along: Any = None, **fields: Any) -> LineChart:
    return LineChart("t", "layer", along or range(len(lines[0].values)), lines, fields.pop("text", percent), **fields)


def line(*values: float | None, **fields: Any) -> Line:
    return Line("mean", "mean", values, "first", **fields)


@pytest.mark.parametrize(("values", "ticks"), [
    ((0.0, 0.14), ["0%", "5%", "10%", "15%"]),
    ((0.0, 0.2), ["0%", "5%", "10%", "15%", "20%"]),
    ((0.0, 0.009), ["0.00%", "0.25%", "0.50%", "0.75%", "1.00%"]),
    ((0.0, 0.0), ["0%", "25%"]),
    ((0.0, 5e-324), ["0%", "25%"]),
    ((1e-310, 0.0), ["0%", "25%"]),
    ((1.0, 0.5), ["0%", "25%", "50%", "75%", "100%"]),
])  # fmt: skip
def test_the_axis_goes_from_0_to_the_next_round_number(values: tuple[float, ...], ticks: list[str]) -> None:
    drawn = chart(line(*values)).ticks
    assert [text for text, _ in drawn] == ticks
    assert [y for _, y in drawn] == pytest.approx(
        [HEIGHT * (1 - at / (len(ticks) - 1)) for at in range(len(ticks))], abs=0.06
    )


def test_numbers_below_0_have_room_and_a_line_at_0() -> None:
    drawn = chart(line(-0.2, 0.6), text=lambda value: f"{value:.2f}")
    assert [text for text, _ in drawn.ticks] == ["−0.2", "0.0", "0.2", "0.4", "0.6"]
    assert drawn.zero == pytest.approx(HEIGHT * 0.75)
    assert chart(line(0.2, 0.6)).zero is None


def test_several_charts_can_have_one_scale() -> None:
    assert chart(line(0.01, 0.02), top=0.4).ticks[-1][0] == "40%"
    assert chart(line(0.01, 0.02), levels=[Level("5%", 0.05)]).ticks[-1][0] == "6%"
    assert chart(line(0.01, 0.02, low=(0.0, 0.0), high=(0.3, 0.1))).ticks[-1][0] == "30%"


def test_a_line_goes_over_the_axis_and_is_broken_where_a_number_is_missing() -> None:
    drawn = chart(line(0.0, 0.5, None, 1.0, 0.25))
    step = WIDTH / 4
    assert drawn.path(drawn.lines[0]) == f"M0.0 {HEIGHT}.0L{step} {HEIGHT / 2}M{3 * step} 0.0L{WIDTH}.0 {HEIGHT * 0.75}"
    assert drawn.marks(drawn.lines[0]).count(MARKS["circle"]) == 4
    nothing = chart(line(None, None))
    assert (nothing.path(nothing.lines[0]), nothing.labels, nothing.band(nothing.lines[0])) == ("", [], "")


def test_a_band_goes_there_and_back() -> None:
    drawn = chart(line(0.5, 0.5, low=(0.25, 0.0), high=(0.75, 1.0)))
    quarter = HEIGHT / 4
    assert drawn.band(drawn.lines[0]) == f"0.0,{quarter} {WIDTH}.0,0.0 {WIDTH}.0,{HEIGHT}.0 0.0,{3 * quarter}"
    assert chart(line(0.5, 0.5)).band(line(0.5, 0.5)) == ""


@pytest.mark.parametrize(("n_layers", "numbers"), [
    (1, "0"), (6, "0 1 2 3 4 5"), (12, "0 2 4 6 8 10"), (30, "0 5 10 15 20 25"), (80, "0 10 20 30 40 50 60 70"),
])  # fmt: skip
def test_as_many_layers_have_a_number_as_have_room(n_layers: int, numbers: str) -> None:
    assert " ".join(text for text, _ in chart(line(*[0.5] * n_layers)).numbers) == numbers


def test_a_logarithmic_axis_has_powers_of_ten() -> None:
    drawn = chart(line(0.1, 0.2, 0.3), along=(10, 1000, 100_000), logarithmic=True, levels=[Level("there", 0.2, 1000)])
    assert drawn.numbers == [
        (text, at * WIDTH / 4) for at, text in enumerate(("10", "100", "1,000", "10,000", "100,000"))
    ]
    assert drawn.level(drawn.levels[0])[0] == WIDTH / 2
    assert drawn.level(Level("everywhere", 0.3)) == (0.0, 0.0)


def test_what_stands_under_the_pointer() -> None:
    drawn = chart(line(0.04, 0.5, low=(0.03, None), high=(0.05, None)), Line("other", "o", (None, 0.1), "second"))
    assert [area.title for area in drawn.hover_areas] == [
        "layer 0\nmean: 4.0% (3.0% to 5.0%)",
        "layer 1\nmean: 50%\nother: 10%",
    ]
    assert sum(area.width for area in drawn.hover_areas) == WIDTH


@pytest.mark.parametrize(("heights", "expected"), [
    ([], []), ([50], [50]), ([10, 60], [10, 60]), ([50, 52], [50, 63]), ([50, 51, 52], [50, 63, 76]),
    ([98, 99], [87, 100]), ([-20, 5], [0, 13]), ([99, 99, 99], [74, 87, 100]),
])  # fmt: skip
def test_labels_do_not_cover_each_other(heights: list[float], expected: list[float]) -> None:
    assert spread(heights, LABEL_LINE, 0, 100) == expected


def test_labels_stand_at_the_ends_of_their_lines() -> None:
    first, second = line(0.0, 1.0), Line("lower", "lower", (1.0, 0.0), "second")
    labels = chart(second, first).labels
    assert [(label.text, label.y, label.colour) for label in labels] == [
        ("mean", 0.0, "first"),
        ("lower", HEIGHT, "second"),
    ]


def luminance(colour: str) -> float:
    """Relative, as WCAG has it."""
    parts = [int(part, 16) / 255 for part in re.findall("..", colour.removeprefix("#"))]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colour", COLOURS.values(), ids=COLOURS)
def test_labels_in_a_figure_can_be_read_on_white(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


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
    assert axis_labels(few) == [(0, "␣<b>"), (1, "a" * (LABEL_CHARACTERS - 1) + "…")]  # type: ignore[arg-type]
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
