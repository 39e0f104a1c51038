"""The geometry of a line chart: where lines, bands, ticks and labels stand. templates/_line_chart.html draws it, on a
page and in a figure that leaves the site.

Lines differ in colour, in their marks and in their dashes, so that nobody needs to tell colours apart."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

WIDTH, HEIGHT = 244, 132  # of the room between the axes
LEFT, RIGHT, TOP, BOTTOM = 44, 82, 24, 36  # around it: numbers, labels of lines, a title, numbers and what they are
LABEL_LINE = 13  # between two labels
MOST_NUMBERS = 8  # along an axis from left to right
NAME_ROOM = 22  # that a name takes there
MARK = 2.6  # half the size of a mark
TITLE_ROOM, FOOT_ROOM, GAP, LEGEND_LINE = 36, 24, 14, 16  # of a figure: above and below its charts, and between them
SMALLEST = 1e-9  # what is nearer to 0 is drawn as 0
STEPS = (1, 2, 2.5, 5, 10)  # between two numbers of the upright axis, times a power of ten

COLOURS = {"first": "#0067a6", "second": "#b34700", "third": "#8b3a7e", "plain": "#5a626b"}  # of a figure, on white

Colour = Literal["first", "second", "third", "plain"]  # classes of lexiscope.css
Mark = Literal["circle", "square", "triangle", "none"]
Numbers = Sequence[float | None]  # None: not measured there


@dataclass(frozen=True)
class Line:
    """Numbers along the axis, and how they look."""

    name: str  # in the legend
    label: str  # at its end
    values: Numbers
    colour: Colour
    mark: Mark = "circle"
    dashed: bool = False
    low: Numbers | None = None  # of its band
    high: Numbers | None = None


@dataclass(frozen=True)
class Level:
    """A number to compare with, all along the axis, or at one place: there it is a cross."""

    label: str  # at its end, or beside the cross
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
    """Everything that stands above one number of the axis: shown under the pointer."""

    x: float
    width: float
    title: str


@dataclass(frozen=True)
class LineChart:
    title: str
    x_name: str
    along: Sequence[float]  # the numbers of the axis: layers, or values of k
    lines: Sequence[Line]
    text: Callable[[float], str]  # of a number, as under the pointer
    levels: Sequence[Level] = ()
    names: Mapping[float, str] = field(default_factory=dict)  # of what stands on the axis and is no number
    logarithmic: bool = False
    top: float | None = None  # a number that the upright axis reaches at least

    @cached_property
    def view_box(self) -> str:
        return f"{-LEFT} {-TOP} {self.full_width} {self.full_height}"

    full_width, full_height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM

    @cached_property
    def ticks(self) -> list[tuple[str, float]]:
        """Of the upright axis: round numbers and their heights."""
        low, high, step = self._scale
        count = round((high - low) / step)
        return [(self._tick(low + at * step, step), self._y(low + at * step)) for at in range(count + 1)]

    @cached_property
    def numbers(self) -> list[tuple[str, float]]:
        """Along the axis: as many as have room, and where they stand."""
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
        """The height of 0, where it is not the bottom."""
        return self._y(0.0) if self._scale[0] < 0 else None

    @cached_property
    def labels(self) -> list[Label]:
        """At the ends of lines and levels, apart from each other."""
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
        """Broken where a number is missing."""
        pieces, open_piece = [], False
        for number, value in zip(self.along, line.values, strict=True):
            if value is None:
                open_piece = False
                continue
            pieces.append(f"{'L' if open_piece else 'M'}{self._x(number)} {self._y(value)}")
            open_piece = True
        return "".join(pieces)

    def band(self, line: Line) -> str:
        """Along its top, and back below; "" where there is none."""
        if line.low is None or line.high is None:
            return ""
        high, low = self._points(line.high), self._points(line.low)
        return " ".join(f"{x},{y}" for x, y in [*high, *reversed(low)]) if high and low else ""

    def marks(self, line: Line) -> str:
        return "".join(f"M{x} {y}{MARKS[line.mark]}" for x, y in self._points(line.values))

    def level(self, level: Level) -> tuple[float, float]:
        """Where a level stands: at a place, or at the left end."""
        return (0.0 if level.at is None else self._x(level.at)), self._y(level.value)

    def _told(self, at: int) -> str:
        """All numbers at one place."""
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
        """The lowest and the highest number of the upright axis, and the step between two."""
        shown = [level.value for level in self.levels]
        for line in self.lines:
            shown += [value for of in (line.values, line.low, line.high) for value in of or () if value is not None]
        if self.top is not None:
            shown.append(self.top)
        low, high = min([0.0, *shown]), max([0.0, *shown])
        step = round_step((high - low) / 4) if high - low > SMALLEST else 0.25
        return math.floor(low / step + 1e-9) * step, max(math.ceil(high / step - 1e-9), 1) * step, step

    def _tick(self, value: float, step: float) -> str:
        """As many figures as tell two steps apart."""
        percent = "%" in self.text(0.5)
        value, step = (100 * value, 100 * step) if percent else (value, step)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        digits += abs(step * 10**digits - round(step * 10**digits)) > 1e-6
        return f"{value:.{digits}f}".replace("-", "−") + ("%" if percent else "")

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
    """The lines of several charts, those of one name once."""
    named: dict[str, Line] = {}
    for line in (line for chart in charts for line in chart.lines):
        named.setdefault(line.name, line)
    return list(named.values())


@dataclass(frozen=True)
class Panel:
    """A chart of a figure, and where it stands."""

    chart: LineChart
    x: int
    y: int


@dataclass(frozen=True)
class Figure:
    """Rows of charts under a title, each row with a legend below it."""

    panels: Sequence[Panel]
    legends: Sequence[tuple[int, Sequence[Line]]]  # and how far down each stands
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


def round_step(least: float) -> float:
    """The next round number: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def spread(heights: Sequence[float], apart: float, top: float, bottom: float) -> list[float]:
    """Rising heights, moved as little as needed to be so far apart, between top and bottom."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart if moved else top))
    limit = bottom
    for at in reversed(range(len(moved))):
        moved[at] = min(moved[at], limit)
        limit = moved[at] - apart
    return [round(height, 1) for height in moved]
