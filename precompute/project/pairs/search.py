"""Search a rectangle of the token x token matrix of a head for its largest and smallest entries, on the CPU.

Rows are searched in order of falling norm, so that the floors (the scores that still matter) rise early. For each chunk
of rows, plan.py chooses the cheapest way: to scan only pairs that bounds do not rule out, or to multiply and sift the
product of some leading coordinates, of all coordinates, or of coordinates rounded to bytes.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project.pairs.coarse import multiply_bytes
from lexiscope.precompute.project.pairs.coordinates import SearchSide, float_product
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard, nth_bounds
from lexiscope.precompute.project.pairs.plan import COARSE, SCAN, TILE_COLUMNS, TILE_ROWS, cheapest_way
from lexiscope.precompute.project.pairs.scan import scan, strips_within_reach
from lexiscope.precompute.project.pairs.sift import open_strips, row_needs, score_strips, sift, strip_limits
from lexiscope.precompute.project.pairs.strips import PREFIXES, STRIP, Candidates, Columns, Rows

ChooseWay = Callable[[Rows, Columns, int, int, float, float, bool], int]

FIRST_CHUNK, LARGEST_CHUNK = 512, 8192  # rows of a chunk
FIRST_FLOOR_ROWS = 512  # rows that, with the first shell of columns, give the first floors
LEAST_ROOM = 1 << 16  # least number of candidates that there is memory for
LARGEST_SCORE = 1e37  # weights that could give larger scores are refused


class Search:
    """A search of some rows against some columns. Each leaderboard in `boards` receives the pairs that may be on its
    lists."""

    def __init__(
        self,
        rows: SearchSide[Rows],
        columns: SearchSide[Columns],
        boards: list[Leaderboard],
        exhaustive: bool = False,  # multiply everything, without bounds: the search is compared with this
        choose_way: ChooseWay = cheapest_way,
    ) -> None:
        self.rows, self.columns, self.boards, self.exhaustive = rows.arrays, columns.arrays, boards, exhaustive
        self.d = int(self.rows.coords.shape[1])
        self.candidates = Candidates.with_room(max(LEAST_ROOM, len(self.columns.tokens)))
        self.ways: list[int] = []  # how each chunk was searched, in order: see plan.py
        self._sides = rows, columns
        self._choose_way = choose_way
        self._product_memory = torch.empty(TILE_ROWS * TILE_COLUMNS)

    def run(self) -> None:
        n = len(self.rows.tokens)
        if not n or not len(self.columns.tokens):
            return
        self._raise_first_floors()
        start, size = 0, FIRST_CHUNK
        while start < n:
            stop = min(start + size, n)
            way = self.d if self.exhaustive else self._choose(start, stop)
            self.ways.append(way)
            if way == SCAN:
                self._scan(start, stop)
            else:
                self._multiply(start, stop, way)
            start, size = stop, min(2 * size, LARGEST_CHUNK)

    def _choose(self, start: int, stop: int) -> int:
        return self._choose_way(self.rows, self.columns, start, stop, *self._floors(), COARSE in self.ways)

    def _raise_first_floors(self) -> None:
        """Give floors, which pairs must reach, to the leaderboards that have none, from the scores of the first rows
        and columns, whose norms are largest."""
        new = [board for board in self.boards if not np.isfinite(board.top + board.bottom)]
        if not new:
            return
        rows, columns = self.rows, self.columns
        r, c = min(FIRST_FLOOR_ROWS, len(rows.tokens)), int(columns.starts[1])
        scores = float_product(rows.coords[:r], columns.coords[:c])
        scores = scores + rows.shift[:r, None] + columns.shift.reshape(-1)[:c]
        error = np.broadcast_to((rows.error[:r] @ columns.error[0])[:, None], scores.shape)
        pairs = rows.surface[:r, None] != columns.surface[:c]
        scores, error = scores[pairs].astype(np.float64), error[pairs].astype(np.float64)
        for board in new:
            if len(scores) >= board.n:
                board.raise_floors(*nth_bounds(scores, error, board.n))

    def _floors(self) -> tuple[float, float]:
        """Return the top and bottom floors that pairs must reach for at least one of the leaderboards. They are finite,
        because kernels calculate with them."""
        top, bottom = min(board.top for board in self.boards), max(board.bottom for board in self.boards)
        return max(top, -LARGEST_SCORE), min(bottom, LARGEST_SCORE)

    def _scan(self, start: int, stop: int) -> None:
        scan(self.rows, self.columns, start, stop, *self._floors(), self.candidates)
        if self._overflowed():  # search in halves: the first may raise the floors of the second
            middle = (start + stop) // 2
            self._scan(start, middle)
            self._scan(middle, stop)
        else:
            self._report()

    def _multiply(self, start: int, stop: int, way: int) -> None:
        for i0 in range(start, stop, TILE_ROWS):
            i1 = min(i0 + TILE_ROWS, stop)
            tiles = self._tiles(i0, i1)
            if way == COARSE:
                self._multiply_coarse(i0, i1, tiles)
            else:
                for j0, j1 in tiles:
                    self._sift_tile(i0, i1, j0, j1, way)

    def _tiles(self, i0: int, i1: int) -> list[tuple[int, int]]:
        """Return the ranges of columns, in whole strips of STRIP columns, with which rows i0 to i1 must be compared."""
        if self.exhaustive:
            ranges = np.array([[0, len(self.columns.shift)]])
        else:
            ranges = strips_within_reach(self.rows, self.columns, i0, i1, *self._floors())
        return [
            (j0, min(j0 + TILE_COLUMNS, stop))
            for start, stop in (ranges * STRIP).tolist()
            for j0 in range(start, stop, TILE_COLUMNS)
        ]

    def _sift_tile(self, i0: int, i1: int, j0: int, j1: int, prefix: int) -> None:
        rows, columns = self.rows, self.columns
        shells = np.searchsorted(columns.starts, (j0, j1 - 1), side="right") - 1
        error = rows.error[i0:i1] @ columns.error[shells[0] : shells[1] + 1].max(axis=0)
        product = self._empty_product(i1 - i0, j1 - j0)
        a, b = torch.from_numpy(rows.coords[i0:i1, :prefix]), torch.from_numpy(columns.coords[j0:j1, :prefix])
        torch.mm(a, b.T, out=product)
        level = PREFIXES.index(prefix) if prefix in PREFIXES else 0
        sift(product.numpy(), rows, columns, i0, j0, level, prefix, *self._floors(), error, self.candidates)
        if self._overflowed():
            middle = (i0 + i1) // 2
            self._sift_tile(i0, middle, j0, j1, prefix)
            self._sift_tile(middle, i1, j0, j1, prefix)
        else:
            self._report()

    def _multiply_coarse(self, i0: int, i1: int, tiles: list[tuple[int, int]]) -> None:
        """Compare rows with ranges of columns by products of bytes, then score all columns of the strips (groups of
        neighbouring columns) that have large products."""
        a, b = (side.coarse for side in self._sides)
        error = self.rows.error[i0:i1] @ self.columns.error.max(axis=0)
        needs, n_opened = row_needs(self.rows, a, slice(i0, i1), *self._floors(), error), 0
        for j0, j1 in tiles:
            product = self._empty_product(i1 - i0, j1 - j0).view(torch.int32)
            multiply_bytes(a.bytes[i0:i1], b.bytes[j0:j1], product)
            n_opened = open_strips(product.numpy(), j0 // STRIP, self._limits, needs, self._opened, n_opened)
        self._score_opened(i0, self._opened[:n_opened], error)

    def _score_opened(self, i0: int, opened: NDArray[np.int32], error: NDArray[np.float32]) -> None:
        score_strips(self.rows, self.columns, i0, opened, *self._floors(), error, self.candidates)
        if self._overflowed():
            middle = len(opened) // 2
            self._score_opened(i0, opened[:middle], error)
            self._score_opened(i0, opened[middle:], error)
        else:
            self._report()

    @cached_property
    def _opened(self) -> NDArray[np.int32]:
        """Return an empty array with room for each pair [row, strip] of the rows of a tile and all strips of
        columns."""
        return np.empty((TILE_ROWS * len(self.columns.shift), 2), np.int32)

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        return strip_limits(self.columns, self._sides[1].coarse)

    def _empty_product(self, n: int, m: int) -> torch.Tensor:
        return self._product_memory[: n * m].view(n, m)

    def _overflowed(self) -> bool:
        return bool(self.candidates.total[0] > len(self.candidates.i))

    def _report(self) -> None:
        """Add the candidates that a kernel has found to the leaderboards."""
        candidates, count = self.candidates, self.candidates.total[0]
        if not count:
            return
        tokens = self.rows.tokens[candidates.i[:count]], self.columns.tokens[candidates.j[:count]]
        for board in self.boards:
            board.add(*tokens, candidates.score[:count], candidates.error[:count])
