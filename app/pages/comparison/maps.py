"""Draw heat maps of two models' layers, with numbers and colours, for the page and for a figure in a paper.

A map has the layers of B from left to right and the layers of A from bottom to top, as a plot has its axes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lexiscope.app.html.numbers import HEAT_STEPS
from lexiscope.app.pages.comparison.layers import KindView, LayerPair, as_set

LARGEST_TABLE = 400  # most cells of a table: a larger map is drawn, without its numbers
LOW, HIGH = (247, 250, 250), (0, 96, 116)  # colours of a figure, which must be readable on white paper
# pixels of a figure: the side of a map, the largest cell, the smallest cell with room for its number
MAP_SIDE, LARGEST_CELL, NUMBERED = 320, 26, 20
LEFT, RIGHT, TOP, BOTTOM = 52, 22, 34, 40  # pixels of a figure around each map
ABOVE, BELOW = 34, 30  # pixels above and below all maps of a figure

Name = Literal["similarity", "best", "feature"]
TITLES: dict[Name, str] = {
    "similarity": "mean |r| in embedding space",
    "best": "best matches, % of the row",
    "feature": "mean |r| in feature space",
}


@dataclass(frozen=True)
class LayerMap:
    """A map of one number for each layer of A and layer of B."""

    name: Name
    values: Sequence[Sequence[float]]  # (L_A, L_B)
    marked: Collection[LayerPair]  # the pairs of layers that are assigned to each other
    low: float  # a value from here down has no colour
    high: float  # a value from here up has full colour
    chance: float | None = None  # the value that random vectors give, if that was measured

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def is_table(self) -> bool:
        return len(self.values) * len(self.values[0]) <= LARGEST_TABLE

    def share(self, value: float) -> float:
        """Return where a value is between `low` and `high`, as a number from 0 to 1."""
        return max(0.0, (value - self.low) / (self.high - self.low)) if self.high > self.low else 0.0

    def step(self, value: float) -> int:
        """Return the strength of colour of a value as a step of lexiscope.css (data-heat)."""
        return round(HEAT_STEPS * self.share(value))

    def text(self, value: float) -> str:
        """Write a value with few characters: a similarity with three digits, a share of matches in per cent."""
        return f"{100 * value:.0f}" if self.name == "best" else f"{value:.3f}".removeprefix("0")

    def steps(self) -> list[tuple[int, str]]:
        """Return every second strength of colour and the value that it stands for, as a legend."""
        return [
            (step, self.text(self.low + (self.high - self.low) * step / HEAT_STEPS))
            for step in range(0, HEAT_STEPS + 1, 2)
        ]

    def squares(self) -> list[tuple[int, str]]:
        """Return the SVG paths of a map of very many cells as unit squares, one path for each strength of colour."""
        paths: dict[int, list[str]] = {}
        for y, row in enumerate(reversed(self.values)):
            for x, value in enumerate(row):
                paths.setdefault(self.step(value), []).append(f"M{x} {y}h1v1h-1z")
        return [(step, "".join(squares)) for step, squares in sorted(paths.items())]

    def is_dark(self, value: float) -> bool:
        return self.share(value) > 0.72

    def colour(self, value: float) -> str:
        """Return the colour of a value in a figure."""
        share = self.share(value)
        mixed = (round(low + (high - low) * share) for low, high in zip(LOW, HIGH, strict=True))
        return "#" + "".join(f"{part:02x}" for part in mixed)


def layer_maps(of: KindView) -> list[LayerMap]:
    """Return the maps of one kind of vectors: similarity, share of best matches and, if it was compared, similarity in
    feature space."""
    maps = [
        _map("similarity", of["similarity"], of["assignment"], of["chance"]),
        LayerMap("best", of["best"], as_set(of["assignment"]), 0.0, max(max(row) for row in of["best"])),
    ]
    if of["feature_space"] is not None and of["feature_assignment"] is not None:
        maps.append(_map("feature", of["feature_space"], of["feature_assignment"], of["feature_chance"]))
    return maps


def _map(
    name: Name, values: Sequence[Sequence[float]], assignment: Sequence[LayerPair], chance: float | None
) -> LayerMap:
    """Make a map. Its colours begin at the value that random vectors give, if that is known and some cell is above
    it."""
    cells = [value for row in values for value in row]
    low = min(cells) if chance is None or chance >= max(cells) else max(chance, min(cells))
    return LayerMap(name, values, as_set(assignment), low, max(cells), chance)


@dataclass(frozen=True)
class Panel:
    """A map and its position in a figure."""

    kind: str
    map: LayerMap
    x: int
    y: int


@dataclass(frozen=True)
class Figure:
    width: int
    height: int
    cell: int
    panels: Sequence[Panel]
    every: int  # one of so many layers has its number at the axes

    @property
    def has_numbers(self) -> bool:
        return self.cell >= NUMBERED


def figure(kinds: Mapping[str, KindView], n_layers_a: int, n_layers_b: int) -> Figure:
    """Make a figure with a row of maps for each kind of vectors."""
    cell = max(4, min(LARGEST_CELL, MAP_SIDE // max(n_layers_a, n_layers_b)))
    width, height = LEFT + n_layers_b * cell + RIGHT, TOP + n_layers_a * cell + BOTTOM
    panels = [
        Panel(kind, layer_map, at * width + LEFT, ABOVE + row * height + TOP)
        for row, (kind, of) in enumerate(kinds.items())
        for at, layer_map in enumerate(layer_maps(of))
    ]
    right = max((panel.x for panel in panels), default=LEFT) - LEFT + width
    return Figure(right, ABOVE + len(kinds) * height + BELOW, cell, panels, -(-10 // cell))
