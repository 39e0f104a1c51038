"""Compute the geometry of the pictures of a run: where all heads look. The SVG around it is in templates/."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexiscope.app.html.numbers import HEAT_STEPS

CELLS = 32  # most cells of a strip: of longer texts, a cell is several positions
CELL, SHORTEST_STRIP, LONGEST_STRIP = 9, 36, 96  # pixels: of a cell and of a strip
STRIP, ROW, STRIP_GAP = 10, 14, 8  # pixels: height of a strip, of a row of strips, and between two strips

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

    @property
    def width(self) -> float:
        return self.x(len(self.looks[0])) - STRIP_GAP

    @property
    def height(self) -> int:
        return len(self.looks) * ROW

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
    return StripMap(looks, together, cells, min(LONGEST_STRIP, max(SHORTEST_STRIP, cells * CELL)))
