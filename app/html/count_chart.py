"""Compute the geometry of a chart of counts side by side: dots above and below a line, or bars with other counts as an
outline over them. templates/_count_chart.html draws it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from lexiscope.app.html.numbers import ratio
from lexiscope.app.urls import link, turned

WIDTH, HEIGHT = 460, 118  # size of the plot between the axes, in pixels
TICKS_APART = 16  # pixels that the text of a tick takes
NAMES_APART = 22


@dataclass(frozen=True)
class Column:
    name: str  # "layer 29", for tooltips and the table
    up: int
    other: int
    link: str = ""
    is_chosen: bool = False


@dataclass(frozen=True)
class CountChart:
    """Counts side by side, with other counts below them if it `is_mirrored`. Otherwise the other counts are an outline
    over the first, and heights are square roots of counts, so that small ones remain visible."""

    columns: Sequence[Column]
    marks: Sequence[tuple[float, str]]  # numbers of the horizontal axis: after how many columns, and the text
    is_mirrored: bool

    @cached_property
    def step(self) -> float:
        return WIDTH / len(self.columns)

    @cached_property
    def zero(self) -> float:
        """Return the height in the plot of the value 0, from above."""
        return HEIGHT - self._length(self._lowest)

    @cached_property
    def ticks(self) -> list[tuple[str, float]]:
        """Return round numbers of the vertical axis, as far apart as their texts need, each with its height."""
        series = [digit * 10**power for power in range(10) for digit in (1, 2, 5)]
        ticks = [("0", self.zero)]
        for most, sign in ((self._highest, 1), (self._lowest, -1)):
            last = 0.0
            for number in takewhile(most.__ge__, series):
                if (length := self._length(number)) >= last + TICKS_APART:
                    ticks.append((f"{number:,}", round(self.zero - sign * length, 1)))
                    last = length
        return ticks

    def x(self, at: float) -> float:
        return round(at * self.step, 1)

    def y(self, number: int, sign: int = 1) -> float:
        return round(self.zero - sign * self._length(number), 1)

    @cached_property
    def outline(self) -> str:
        """Return the SVG path of the other counts, as steps."""
        steps = (f"V{self.y(column.other)}H{self.x(at)}" for at, column in enumerate(self.columns, 1))
        return f"M0 {self.y(0)}{''.join(steps)}V{self.y(0)}"

    @cached_property
    def _highest(self) -> int:
        return max(column.up if self.is_mirrored else max(column.up, column.other) for column in self.columns)

    @cached_property
    def _lowest(self) -> int:
        return max(column.other for column in self.columns) if self.is_mirrored else 0

    def _size(self, number: int) -> float:
        return number if self.is_mirrored else math.sqrt(number)

    def _length(self, number: int) -> float:
        return HEIGHT * self._size(number) / (self._size(self._highest) + self._size(self._lowest) or 1)


def writers_chart(view: Any) -> CountChart | None:
    """Chart by layer how many vectors write the token of a TokenView and how many suppress it; None if none does."""
    columns, has_neurons = [], {"ff_key", "ff_value"} & {role.kind for role in view.roles}
    for layer, counts in enumerate(zip(view.by_layer("writes"), view.by_layer("suppresses"), strict=True)):
        has_table = has_neurons and layer not in view.missing
        href = link("layer", view.model, layer, lens=view.lens, token=view.token["id"]) if has_table else ""
        columns.append(Column(f"layer {layer}", *counts, href))
    if not any(column.up or column.other for column in columns):
        return None
    every = next(step for step in (1, 2, 5, 10, 20, 50) if step * WIDTH >= NAMES_APART * len(columns))
    marks = [(layer + 0.5, str(layer)) for layer in range(0, len(columns), every)]
    return CountChart(columns, marks, is_mirrored=True)


def similarity_chart(view: Any, address: str) -> CountChart:
    """Chart how many neurons of a LayerView have a similarity between two numbers, and how many have one by chance. A
    bin leads to a table of its neurons."""
    columns = []
    for each in view.histogram or ():
        low, high = each["min_similarity"], each["max_similarity"]
        is_chosen = (low or None, high) == (view.min_similarity or None, view.max_similarity)
        href = turned(address, min_similarity=low or None, max_similarity=high, page=None)
        name = f"{ratio(low)} to {ratio(high or 1.0)}"
        columns.append(Column(name, each["neurons"], each["shuffled"], href, is_chosen))
    marks = [(at, ratio(at / len(columns))) for at in range(0, len(columns) + 1, 4)]
    return CountChart(columns, marks, is_mirrored=False)
