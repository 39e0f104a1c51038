"""Compute the geometry of a line chart: where its lines, bands, ticks and labels are. templates/_line_chart.html draws
it, on a page and in a figure to download.

Lines differ in colour, marks and dashes, so that nobody needs to tell colours apart.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

WIDTH, HEIGHT = 244, 132  # size of the plot between the axes, in pixels
# Pixels around the plot: left for numbers, right for labels of lines, above for a title, below for numbers and titles.
LEFT, RIGHT, TOP, BOTTOM = 44, 82, 24, 36
LABEL_LINE = 13  # pixels between two labels above each other
MOST_NUMBERS = 8  # most numbers along the horizontal axis
NAME_ROOM = 22  # pixels that a name takes on the horizontal axis
MARK = 2.6  # half the size of a mark
# Pixels of a figure: above its charts, below them, between them, and for each line of a legend.
TITLE_ROOM, FOOT_ROOM, GAP, LEGEND_LINE = 36, 24, 14, 16
DRAWN_AS_ZERO = 1e-9  # a number nearer to 0 is drawn as 0
ROUND_STEPS = (1, 2, 2.5, 5, 10)  # possible steps between ticks, times a power of ten

# Colours of a figure on white paper.
COLOURS = {"first": "#0067a6", "second": "#b34700", "third": "#8b3a7e", "plain": "#5a626b"}

Colour = Literal["first", "second", "third", "plain"]  # names of classes in lexiscope.css
Mark = Literal["circle", "square", "triangle", "none"]
Numbers = Sequence[float | None]  # None where nothing was measured


@dataclass(frozen=True)
class Line:
    """A line of a chart: its numbers along the axis, and its colour, marks and dashes."""

    name: str  # the name in the legend
    label: str  # the label at the end of the line
    values: Numbers
    colour: Colour
    mark: Mark = "circle"
    dashed: bool = False
    low: Numbers | None = None  # the lower edge of the band
    high: Numbers | None = None


@dataclass(frozen=True)
class Level:
    """A number to compare the lines with, drawn as a line all along the axis or as a cross at one place."""

    label: str  # the label at the end of the line, or beside the cross
    value: float
    at: float | None = None
    solid: bool = False


@dataclass(frozen=True)
class Label:
    text: str
    y: float
    colour: Colour


@dataclass(frozen=True)
class HoverArea:
    """An area above one number of the horizontal axis; pointing at it shows the values of all lines there."""

    x: float
    width: float
    title: str


@dataclass(frozen=True)
class LineChart:
    title: str
    x_name: str
    along: Sequence[float]  # numbers of the horizontal axis: layers, or values of k
    lines: Sequence[Line]
    text: Callable[[float], str]  # returns a number of the horizontal axis as text for the tooltip
    levels: Sequence[Level] = ()
    # Names of places on the horizontal axis that have no number.
    names: Mapping[float, str] = field(default_factory=dict)
    logarithmic: bool = False
    top: float | None = None  # the vertical axis reaches at least up to this number

    @cached_property
    def view_box(self) -> str:
        return f"{-LEFT} {-TOP} {self.full_width} {self.full_height}"

    full_width, full_height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM

    @cached_property
    def ticks(self) -> list[tuple[str, float]]:
        """Return round numbers of the vertical axis, each with its height in the plot."""
        low, high, step = self._scale
        count = round((high - low) / step)
        return [(self._tick(low + at * step, step), self._y(low + at * step)) for at in range(count + 1)]

    @cached_property
    def numbers(self) -> list[tuple[str, float]]:
        """Return the numbers of the horizontal axis that fit beside each other, with their positions in the plot."""
        if self.logarithmic:
            low, high = self.along[0], self.along[-1]
            tens = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
            return [(f"{number:,.0f}", self._x(number)) for number in tens]
        every = -(-len(self.along) // MOST_NUMBERS)
        every = next((step for step in (1, 2, 5, 10, 20, 50, 100) if step >= every), every)
        named = [(name, self._x(at)) for at, name in self.names.items()]
        numbered = [(f"{at:.0f}", self._x(at)) for at in self.along if at not in self.names and at % every == 0]
        return named + [(text, x) for text, x in numbered if all(abs(x - other) >= NAME_ROOM for _, other in named)]

    @cached_property
    def zero(self) -> float | None:
        """Return the height in the plot of the value 0, or None if 0 is at the bottom."""
        return self._y(0.0) if self._scale[0] < 0 else None

    @cached_property
    def labels(self) -> list[Label]:
        """Return the labels at the ends of the lines, moved apart so that they do not overlap."""
        ends = [Label(level.label, self._y(level.value), "plain") for level in self.levels if level.at is None]
        for line in self.lines:
            if points := self._points(line.values):
                ends.append(Label(line.label, points[-1][1], line.colour))
        ends.sort(key=lambda label: label.y)
        heights = spread([label.y for label in ends], LABEL_LINE, -LABEL_LINE / 2, HEIGHT + LABEL_LINE / 2)
        return [replace(label, y=y) for label, y in zip(ends, heights, strict=True)]

    @cached_property
    def hover_areas(self) -> list[HoverArea]:
        xs = [self._x(number) for number in self.along]
        edges = [0.0, *((a + b) / 2 for a, b in pairwise(xs)), float(WIDTH)]
        return [
            HoverArea(round(left, 1), round(right - left, 1), self._told(at))
            for at, (left, right) in enumerate(pairwise(edges))
        ]

    def path(self, line: Line) -> str:
        """Return the SVG path of a line, broken where a number is missing."""
        pieces, open_piece = [], False
        for number, value in zip(self.along, line.values, strict=True):
            if value is None:
                open_piece = False
                continue
            pieces.append(f"{'L' if open_piece else 'M'}{self._x(number)} {self._y(value)}")
            open_piece = True
        return "".join(pieces)

    def band(self, line: Line) -> str:
        """Return the SVG path around a line's band of deviation; "" if the line has none."""
        if line.low is None or line.high is None:
            return ""
        high, low = self._points(line.high), self._points(line.low)
        return " ".join(f"{x},{y}" for x, y in [*high, *reversed(low)]) if high and low else ""

    def marks(self, line: Line) -> str:
        return "".join(f"M{x} {y}{MARKS[line.mark]}" for x, y in self._points(line.values))

    def level(self, level: Level) -> tuple[float, float]:
        """Return the point at which a number to compare with is drawn: at its own place on the axis, or at the left
        end."""
        return (0.0 if level.at is None else self._x(level.at)), self._y(level.value)

    def _told(self, at: int) -> str:
        """Return the text of a tooltip: the values of all lines at one place of the axis."""
        rows = [self.names.get(self.along[at]) or f"{self.x_name.split(' (')[0]} {self.along[at]:,.0f}"]
        for line in self.lines:
            value = line.values[at]
            if value is None:
                continue
            low, high = (band[at] if band else None for band in (line.low, line.high))
            between = f" ({self.text(low)} to {self.text(high)})" if low is not None and high is not None else ""
            rows.append(f"{line.name}: {self.text(value)}{between}")
        return "\n".join(rows)

    @cached_property
    def _scale(self) -> tuple[float, float, float]:
        """Return the lowest and the highest number of the vertical axis, and the step between two ticks."""
        shown = [level.value for level in self.levels]
        for line in self.lines:
            shown += [value for of in (line.values, line.low, line.high) for value in of or () if value is not None]
        if self.top is not None:
            shown.append(self.top)
        return scale_of(shown)

    def _tick(self, value: float, step: float) -> str:
        """Write the number at a tick with enough digits to tell it from the next one."""
        percent = "%" in self.text(0.5)
        return tick_text(100 * value, 100 * step) + "%" if percent else tick_text(value, step)

    def _x(self, number: float) -> float:
        low, high = self.along[0], self.along[-1]
        if self.logarithmic:
            number, low, high = math.log(number), math.log(low), math.log(high)
        return round(WIDTH * (number - low) / (high - low), 1) if high > low else WIDTH / 2

    def _y(self, value: float) -> float:
        low, high, _ = self._scale
        return round(HEIGHT * (high - value) / (high - low), 1)

    def _points(self, values: Numbers) -> list[tuple[float, float]]:
        pairs = zip(self.along, values, strict=True)
        return [(self._x(number), self._y(value)) for number, value in pairs if value is not None]


MARKS: dict[Mark, str] = {
    "circle": f"m{-MARK} 0a{MARK} {MARK} 0 1 0 {2 * MARK} 0a{MARK} {MARK} 0 1 0 {-2 * MARK} 0z",
    "square": f"m{-MARK} {-MARK}h{2 * MARK}v{2 * MARK}h{-2 * MARK}z",
    "triangle": f"m0 {-1.3 * MARK:.2f}l{1.2 * MARK:.2f} {2.1 * MARK:.2f}h{-2.4 * MARK:.2f}z",
    "none": "",
}


def legend(charts: Iterable[LineChart]) -> list[Line]:
    """Return the lines of several charts for a legend, each name once."""
    named: dict[str, Line] = {}
    for line in (line for chart in charts for line in chart.lines):
        named.setdefault(line.name, line)
    return list(named.values())


@dataclass(frozen=True)
class Panel:
    """A chart and its position in a figure."""

    chart: LineChart
    x: int
    y: int


@dataclass(frozen=True)
class Figure:
    """A figure: rows of charts under a title, each row with a legend below it."""

    panels: Sequence[Panel]
    legends: Sequence[tuple[int, Sequence[Line]]]  # the lines in each legend, and the legend's distance from the top
    width: int
    height: int


def figure(rows: Iterable[Sequence[LineChart]]) -> Figure:
    panels, legends, y, columns = [], [], TITLE_ROOM, 1
    for charts in rows:
        columns = max(columns, len(charts))
        for at, chart in enumerate(charts):
            panels.append(Panel(chart, LEFT + at * (chart.full_width + GAP), y + TOP))
        if charts:
            y += charts[0].full_height + LEGEND_LINE
            legends.append((y, legend(charts)))
            y += LEGEND_LINE * len(legends[-1][1]) + GAP
    return Figure(panels, legends, columns * (LEFT + WIDTH + RIGHT + GAP) + GAP, y + FOOT_ROOM)


def scale_of(values: Iterable[float]) -> tuple[float, float, float]:
    """Return the lowest and the highest number of an axis for these values and 0, and the step between two ticks."""
    shown = [0.0, *values]
    low, high = min(shown), max(shown)
    step = round_step((high - low) / 4) if high - low > DRAWN_AS_ZERO else 0.25
    return math.floor(low / step + 1e-9) * step, max(math.ceil(high / step - 1e-9), 1) * step, step


def tick_text(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += abs(step * 10**digits - round(step * 10**digits)) > 1e-6
    return f"{value:.{digits}f}".replace("-", "−")


def round_step(least: float) -> float:
    """Return the next round number from `least` on: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in ROUND_STEPS if step * power >= least * (1 - 1e-9))


def spread(heights: Sequence[float], apart: float, top: float, bottom: float) -> list[float]:
    """Move rising heights as little as needed to keep them at least `apart` from each other and between top and
    bottom."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart if moved else top))
    limit = bottom
    for at in reversed(range(len(moved))):
        moved[at] = min(moved[at], limit)
        limit = moved[at] - apart
    return [round(height, 1) for height in moved]
