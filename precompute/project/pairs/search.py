"""Searches a rectangle of the token x token matrix for its largest and smallest entries, on the CPU.

Goes through the rows from large norms to small, so that the floors of the board rise early. For each chunk of rows a
sample tells what is cheapest: to scan what bounds leave, or to sift a product, of some leading coordinates, of all of
them, or a coarse one in bytes.
"""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.project.pairs import coarse as pair_coarse
from precompute.project.pairs.board import Board, nth_bounds
from precompute.project.pairs.kernel import PREFIXES, STRIP, Columns, Found, Rows
from precompute.project.pairs.scan import ROWS, scan, strips_worth_a_look
from precompute.project.pairs.sift import needs, open_strips, outline, score_strips, sift
from precompute.project.pairs.space import Side

FIRST_CHUNK, LARGEST_CHUNK = 512, 8192  # rows
TILE = (512, 16 * STRIP)  # rows and columns of a product
SMALL = 1 << 20  # pairs that are not worth a plan
SAMPLE = (24, 512)  # rows and columns that a chunk's plan is made from
REACH_SAMPLE = 6  # likewise, groups of rows
# Costs per pair in about nanoseconds, as measured on one machine; they choose the way, never the result.
LOOK, LOOK_CLOSER, FINISH_LOOKED = 0.4, 1.2, 45.0  # of scan: a pair, again with more coordinates, to the end
DRAWN = 4.0  # pairs that are looked at more closely because of one with hope
MULTIPLY, PRODUCT, SIFT, FINISH_SIFTED = 0.024, 0.15, 0.2, 50.0  # of a product: by coordinate, and around it
EXTREMES, SCORE_STRIP = 0.1, 12.0  # of a coarse product: around it, and of a pair in an opened strip
MAKE_COARSE = 600.0  # of coarse coordinates: by column, if every row has as much
AHEAD = 8  # chunks as long as this one that coarse coordinates, once made, are taken to serve
SCAN, COARSE = 0, -1  # ways through a chunk; any other number is how many leading coordinates are multiplied
LARGEST_SCORE = 1e37  # weights that could give more are refused


class Search:
    """Rows against columns; every board in `boards` receives the pairs that may matter to it."""

    def __init__(self, rows: Side[Rows], columns: Side[Columns], boards: list[Board], exhaustive: bool = False) -> None:
        self.rows, self.columns, self.boards, self.exhaustive = rows.arrays, columns.arrays, boards, exhaustive
        self.d = int(self.rows.coords.shape[1])
        self.found = Found.room(max(1 << 16, len(self.columns.tokens)))
        self._sides = rows, columns
        self._product = torch.empty(TILE[0] * TILE[1])
        self.ways: list[int] = []  # of the chunks, in order

    def run(self) -> None:
        n = len(self.rows.tokens)
        if not n or not len(self.columns.tokens):
            return
        self._first_floors()
        start, size = 0, FIRST_CHUNK
        while start < n:
            stop = min(start + size, n)
            way = self.d if self.exhaustive else self._plan(start, stop)
            self.ways.append(way)
            if way == SCAN:
                self._scan(start, stop)
            else:
                self._multiply(start, stop, way)
            start, size = stop, min(2 * size, LARGEST_CHUNK)

    def _plan(self, start: int, stop: int) -> int:
        """The cheapest way through these rows."""
        rows, columns = self.rows, self.columns
        if (stop - start) * len(columns.tokens) < SMALL:
            return self.d
        i = np.unique(np.linspace(start, stop - 1, SAMPLE[0]).astype(int))
        j = np.unique(np.linspace(0, len(columns.tokens) - 1, SAMPLE[1]).astype(int))
        top, bottom = self._floors()
        base = rows.shift[i, None] + columns.shift.reshape(-1)[j]
        shell = np.searchsorted(columns.starts, j, side="right") - 1
        error = rows.error[i] @ columns.error[shell].T

        def left(prefix: int, rest: NDArray[np.float32]) -> float:
            """The share of pairs that a bound from so many coordinates leaves."""
            score = base + _product(rows.coords[i, :prefix], columns.coords[j, :prefix])
            return float(((score + rest + error >= top) | (score - rest - error <= bottom)).mean())

        coarse = pair_coarse.cost(self.d)
        levels = PREFIXES if coarse >= 1 else PREFIXES[:2]  # where bytes are fast, no prefix is faster
        looked, reached = (self._reached(start, stop, together) for together in (ROWS, TILE[0]))
        rests = columns.rest.reshape(len(PREFIXES), -1)[:, j]
        passing = [left(prefix, rows.rest[i, level, None] * rests[level]) for level, prefix in enumerate(levels)]
        costs: dict[int, float] = {
            SCAN: looked * LOOK + min(looked, passing[0] * DRAWN) * LOOK_CLOSER + passing[1] * FINISH_LOOKED
        }
        plain = PRODUCT + self.d * MULTIPLY
        costs[self.d] = reached * (SIFT + plain)
        if coarse < 1:
            share = left(self.d, 2 * pair_coarse.USUAL_LOSS * rows.norm[i, None] * columns.reach[shell])
            making = 0 if COARSE in self.ways else MAKE_COARSE / min(AHEAD * (stop - start), len(rows.tokens) - start)
            costs[COARSE] = reached * (EXTREMES + coarse * plain) + min(1.0, share * STRIP) * SCORE_STRIP + making
        for prefix, share in zip(levels, passing, strict=True):
            if prefix < self.d:
                costs[prefix] = reached * (SIFT + PRODUCT + prefix * MULTIPLY) + share * FINISH_SIFTED
        return min(costs, key=costs.__getitem__)

    def _reached(self, start: int, stop: int, together: int) -> float:
        """The share of columns that so many rows together must be compared with."""
        starts = np.unique(np.linspace(start, max(start, stop - together), REACH_SAMPLE).astype(int)).tolist()
        columns = [self._worth_a_look(i0, min(i0 + together, stop)) for i0 in starts]
        return sum(float(np.diff(ranges).sum()) for ranges in columns) / len(starts) / len(self.columns.shift)

    def _worth_a_look(self, i0: int, i1: int) -> NDArray[np.int64]:
        if self.exhaustive:
            return np.array([[0, len(self.columns.shift)]])
        return strips_worth_a_look(self.rows, self.columns, i0, i1, *self._floors())

    def _first_floors(self) -> None:
        """Floors from the first shells, where norms are largest, for boards that have none."""
        new = [board for board in self.boards if not np.isfinite(board.top + board.bottom)]
        if not new:
            return
        rows, columns = self.rows, self.columns
        r, c = min(512, len(rows.tokens)), int(columns.starts[1])
        scores = _product(rows.coords[:r], columns.coords[:c]) + rows.shift[:r, None] + columns.shift.reshape(-1)[:c]
        error = np.broadcast_to((rows.error[:r] @ columns.error[0])[:, None], scores.shape)
        pairs = rows.surface[:r, None] != columns.surface[:c]
        scores, error = scores[pairs].astype(np.float64), error[pairs].astype(np.float64)
        for board in new:
            if len(scores) >= board.n:
                board.know(*nth_bounds(scores, error, board.n))

    def _floors(self) -> tuple[float, float]:
        """What must be found: whatever matters to any board. Finite, for the kernels' arithmetic."""
        top, bottom = min(board.top for board in self.boards), max(board.bottom for board in self.boards)
        return max(top, -LARGEST_SCORE), min(bottom, LARGEST_SCORE)

    def _scan(self, start: int, stop: int) -> None:
        scan(self.rows, self.columns, start, stop, *self._floors(), self.found)
        if self._overflowed():  # too many at once: in halves, with floors that rise between
            middle = (start + stop) // 2
            self._scan(start, middle)
            self._scan(middle, stop)
        else:
            self._report()

    def _multiply(self, start: int, stop: int, way: int) -> None:
        for i0 in range(start, stop, TILE[0]):
            i1 = min(i0 + TILE[0], stop)
            tiles = self._tiles(i0, i1)
            if way == COARSE:
                self._open(i0, i1, tiles)
            else:
                for j0, j1 in tiles:
                    self._tile(i0, i1, j0, j1, way)

    def _tiles(self, i0: int, i1: int) -> list[tuple[int, int]]:
        """Ranges of columns, whole strips, that these rows can need."""
        return [
            (j0, min(j0 + TILE[1], stop))
            for start, stop in (self._worth_a_look(i0, i1) * STRIP).tolist()
            for j0 in range(start, stop, TILE[1])
        ]

    def _open(self, i0: int, i1: int, tiles: list[tuple[int, int]]) -> None:
        """Rows against tiles of columns by coarse products: scores what the strips with large ones hold."""
        a, b = (side.coarse for side in self._sides)
        floors, error = self._floors(), self.rows.error[i0:i1] @ self.columns.error.max(axis=0)
        need, count = needs(self.rows, a, slice(i0, i1), *floors, error), 0
        for j0, j1 in tiles:
            product = self._room(i1 - i0, j1 - j0).view(torch.int32)
            pair_coarse.multiply(a.bytes[i0:i1], b.bytes[j0:j1], product)
            count = open_strips(product.numpy(), j0 // STRIP, self._outline, need, self._opened, count)
        self._score(i0, self._opened[:count], error)

    def _score(self, i0: int, opened: NDArray[np.int32], error: NDArray[np.float32]) -> None:
        score_strips(self.rows, self.columns, i0, opened, *self._floors(), error, self.found)
        if self._overflowed():
            middle = len(opened) // 2
            self._score(i0, opened[:middle], error)
            self._score(i0, opened[middle:], error)
        else:
            self._report()

    @cached_property
    def _opened(self) -> NDArray[np.int32]:
        return np.empty((TILE[0] * len(self.columns.shift), 2), np.int32)

    def _room(self, n: int, m: int) -> torch.Tensor:
        return self._product[: n * m].view(n, m)

    @cached_property
    def _outline(self) -> NDArray[np.float64]:
        return outline(self.columns, self._sides[1].coarse)

    def _tile(self, i0: int, i1: int, j0: int, j1: int, prefix: int) -> None:
        rows, columns = self.rows, self.columns
        shells = np.searchsorted(columns.starts, (j0, j1 - 1), side="right") - 1
        error = rows.error[i0:i1] @ columns.error[shells[0] : shells[1] + 1].max(axis=0)
        product = self._room(i1 - i0, j1 - j0)
        a, b = torch.from_numpy(rows.coords[i0:i1, :prefix]), torch.from_numpy(columns.coords[j0:j1, :prefix])
        torch.mm(a, b.T, out=product)
        level = PREFIXES.index(prefix) if prefix in PREFIXES else 0
        sift(product.numpy(), rows, columns, i0, j0, level, prefix, *self._floors(), error, self.found)
        if self._overflowed():
            middle = (i0 + i1) // 2
            self._tile(i0, middle, j0, j1, prefix)
            self._tile(middle, i1, j0, j1, prefix)
        else:
            self._report()

    def _overflowed(self) -> bool:
        return bool(self.found.total[0] > len(self.found.i))

    def _report(self) -> None:
        found, count = self.found, self.found.total[0]
        if not count:
            return
        tokens = self.rows.tokens[found.i[:count]], self.columns.tokens[found.j[:count]]
        for board in self.boards:
            board.add(*tokens, found.score[:count], found.error[:count])


def _product(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """a bᵀ by torch: numpy's own thread pool would get in the way of the build's."""
    return (torch.from_numpy(a) @ torch.from_numpy(b).T).numpy()
