"""Compute the geometry of the pictures of a run: where all heads look, the path to a word, and the rank of a word.
The SVG around it is in templates/."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lexiscope.app.html.line_chart import scale_of, spread, tick_text
from lexiscope.app.html.numbers import HEAT_STEPS
from lexiscope.precompute.live.wire.answers import EvolutionRow, PartTerm, SweptPart

CELLS = 32  # most cells of a strip: of longer texts, a cell is several positions
CELL, SHORTEST_STRIP, LONGEST_STRIP = 9, 36, 96  # pixels: of a cell and of a strip
STRIP, ROW, STRIP_GAP = 10, 14, 8  # pixels: height of a strip, of a row of strips, and between two strips
MAP_WIDTH = 860  # pixels: of all heads, unless strips would be too short

Looks = Sequence[Sequence[Sequence[float]]]  # by layer and head: attention weights from the chosen position


@dataclass(frozen=True)
class StripMap:
    """The attention of all heads from one position: a row of strips for each layer, the last layer at the top, a strip
    for each head, and in it a cell for each position or for a few of them. Weights of the first position are drawn
    apart, because most heads attend to it when they find nothing to look for."""

    looks: Looks
    together: int  # positions of one cell
    cells: int
    strip: float  # the width of a strip, in pixels

    def y(self, layer: int) -> int:
        return (len(self.looks) - 1 - layer) * ROW

    def x(self, head: int) -> float:
        return head * (self.strip + STRIP_GAP)

    def squares(self, first: bool) -> list[tuple[int, str]]:
        """Return the SVG paths of the cells, one path for each strength of colour, which grows with the weight: of the
        first cell of every strip, or of all others."""
        paths: dict[int, list[str]] = {}
        width = self.strip / self.cells
        for layer, heads in enumerate(self.looks):
            for head, weights in enumerate(heads):
                for cell in range(1) if first else range(1, self.cells):
                    weight = sum(weights[cell * self.together : (cell + 1) * self.together])
                    if step := min(HEAT_STEPS, round(HEAT_STEPS * weight)):
                        left = self.x(head) + cell * width
                        paths.setdefault(step, []).append(f"M{left:g} {self.y(layer)}h{width:g}v{STRIP}h{-width:g}z")
        return [(step, "".join(drawn)) for step, drawn in sorted(paths.items())]


def strip_map(looks: Looks) -> StripMap:
    positions = len(looks[0][0])
    together = -(-positions // CELLS)
    cells = -(-positions // together)
    room = min(LONGEST_STRIP, MAP_WIDTH / len(looks[0]) - STRIP_GAP)  # beside the map stands a list
    return StripMap(looks, together, cells, round(max(SHORTEST_STRIP, min(room, cells * CELL)), 1))


COLUMNS = 10  # most columns of tokens in a path: of a longer text, only those that heads look at
# Pixels: a token's column, a part's line, left out layers, between bands.
COLUMN, LINE, SKIPPED, BAND_GAP = 56, 19, 15, 3
DROP, LOOP = 17, 30  # pixels: from an arc's start up to its end, and how far one goes that ends where it starts
WIDEST_ARC, LARGEST_DOT, SMALLEST = 9.0, 7.0, 1.5  # pixels: width of an arc, radius of a dot, the least of either


@dataclass(frozen=True)
class PathPart:
    """A head or neuron of a path to a word: where it is drawn, and how large."""

    term: PartTerm
    y: float
    size: float  # the width of a head's arc, or the radius of a neuron's dot
    arc: str  # the SVG path from the position that a head looks at most to the chosen one; "" for a neuron

    @property
    def off(self) -> str:
        """Return the part's name in the argument `off`."""
        head = self.term["head"]
        return f"{self.term['layer']}.{self.term['neuron'] if head is None else f'h{head}'}"


@dataclass(frozen=True)
class Band:
    """A layer in which something is drawn, or several layers in which nothing is."""

    text: str
    y: float
    height: float
    is_empty: bool


@dataclass(frozen=True)
class TermPath:
    """The parts that added most to a logit: tokens below, layers upward, arcs from the positions that heads look at."""

    columns: Mapping[int, float]  # x of the shown positions
    gaps: Sequence[float]  # x between columns where positions are left out
    bands: Sequence[Band]
    parts: Sequence[PathPart]
    width: float  # up to the last column
    height: float


def term_path(parts: Sequence[PartTerm], positions: int, chosen: int, n_layers: int) -> TermPath:
    """Arrange the heads and neurons of a path in their layers, FF above attention, over `positions` tokens."""
    looks = {part["attends"][0]["position"] for part in parts if part["attends"]}
    shown = sorted(range(positions) if positions <= COLUMNS else looks | {chosen})
    columns = {position: at * COLUMN for at, position in enumerate(shown)}
    gaps = [columns[b] - COLUMN / 2 for a, b in pairwise(shown) if b - a > 1]
    most = max((abs(part["term"]) for part in parts), default=1.0)
    bands: list[Band] = []
    drawn: list[PathPart] = []
    y, above = 0.0, n_layers
    for layer in [*sorted({part["layer"] for part in parts}, reverse=True), -1]:
        if above - layer > 1:
            bands.append(Band(f"{layer + 1}–{above - 1}" if above - layer > 2 else str(above - 1), y, SKIPPED, True))
            y += SKIPPED + BAND_GAP
        here = sorted((part for part in parts if part["layer"] == layer), key=lambda part: part["head"] is not None)
        if here:
            bands.append(Band(str(layer), y, LINE * len(here) + BAND_GAP, False))
        for at, part in enumerate(here):
            middle, share = y + BAND_GAP / 2 + LINE * (at + 0.5), abs(part["term"]) / most
            if part["attends"]:
                source, end = (columns[each] for each in (part["attends"][0]["position"], chosen))
                low = middle + DROP
                curve = f"C{end - LOOP} {low} {end - LOOP} {middle}" if source == end else f"Q{source} {middle}"
                arc = f"M{source} {low}{curve} {end} {middle}"
                drawn.append(PathPart(part, middle, max(SMALLEST, WIDEST_ARC * share), arc))
            else:
                drawn.append(PathPart(part, middle, max(2 * SMALLEST, LARGEST_DOT * share**0.5), ""))
        y += LINE * len(here) + 2 * BAND_GAP if here else 0
        above = layer
    return TermPath(columns, gaps, bands, drawn, max(columns.values()), y)


JUMPS, LEAST_JUMP = 4, 1.5  # how many changes of rank are named, and the least factor of one
JUMP_LINE, NUMBER_ROOM = 13, 26  # pixels: between two names, and of the number of a layer


@dataclass(frozen=True)
class RankStep:
    """The rank of the word after a step of the stream, and one step earlier."""

    name: str  # embedding, L23 attention, L23 FF
    x: float
    y: float
    rank: int
    before: int


@dataclass(frozen=True)
class RankChart:
    """The rank of the word after every step of the stream, on a logarithmic axis with rank 1 at the top."""

    width, height = 340, 160  # pixels: the plot between its axes
    steps: Sequence[RankStep]
    ticks: Sequence[tuple[int, float]]  # ranks, and their heights
    layers: Sequence[tuple[int, float]]  # layers, and where they are
    jumps: Sequence[tuple[RankStep, float]]  # the steps that change the rank most, and the heights of their names


def rank_chart(rows: Sequence[EvolutionRow]) -> RankChart:
    ranks = [row["word"]["rank"] for row in rows]
    names = [f"L{row['layer']} {row['after']}".replace("L0 emb", "emb").replace("ff", "FF") for row in rows]
    powers = range(max(1, math.ceil(math.log10(max(ranks)))) + 1)
    across, down = RankChart.width / (len(rows) - 1), RankChart.height / powers[-1]
    steps = [
        RankStep(name, round(at * across, 1), round(math.log10(rank) * down, 1), rank, ranks[max(0, at - 1)])
        for at, (name, rank) in enumerate(zip(names, ranks, strict=True))
    ]
    every = next((step for step in (1, 2, 5, 10, 20) if 2 * step * across >= NUMBER_ROOM), 50)
    layers = [(layer, round((2 * layer + 1.5) * across, 1)) for layer in range(0, len(rows) // 2, every)]
    changes = {step: max(step.rank, step.before) / min(step.rank, step.before) for step in steps}
    named = [step for step in sorted(steps, key=lambda step: -changes[step])[:JUMPS] if changes[step] >= LEAST_JUMP]
    named.sort(key=lambda step: step.y)
    jumps = zip(named, spread([step.y for step in named], JUMP_LINE, 0, RankChart.height), strict=True)
    return RankChart(steps, [(10**power, round(power * down, 1)) for power in powers], layers, list(jumps))


@dataclass(frozen=True)
class SweepPlot:
    """The parts of a sweep as points: direct effects to the right, changes upward."""

    width, height = 300, 220  # pixels: the plot between its axes
    points: Sequence[tuple[float, float, SweptPart]]
    across: Sequence[tuple[str, float]]  # numbers of the horizontal axis, and where they are
    up: Sequence[tuple[str, float]]


def sweep_plot(parts: Sequence[SweptPart]) -> SweepPlot:
    xs, across = _axis([part["direct"] for part in parts], SweepPlot.width)
    ys, up = _axis([part["change"] for part in parts], SweepPlot.height)
    down = [(text, SweepPlot.height - y) for text, y in up]
    return SweepPlot([(x, SweepPlot.height - y, part) for x, y, part in zip(xs, ys, parts, strict=True)], across, down)


def _axis(values: Sequence[float], length: int) -> tuple[list[float], list[tuple[str, float]]]:
    """Return the places of values on an axis of this length, and its ticks with their places."""
    low, high, step = scale_of(values)
    unit = length / (high - low)
    ticks = [low + at * step for at in range(round((high - low) / step) + 1)]
    marks = [(tick_text(tick, step), round((tick - low) * unit, 1)) for tick in ticks]
    return [round((value - low) * unit, 1) for value in values], marks
