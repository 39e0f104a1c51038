"""The running best of a pair search, both ends: what is found so far, and the score below which nothing matters.

Keeps intervals (score ± error); whoever may be on the final list is scored exactly when the list is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from precompute.project.embedding import Float32, Float64
from precompute.project.rounding import TINY, UNIT

Int32 = NDArray[np.int32]
Exact = Callable[[Int32, Int32], Float32]

ROOM = 200_000  # intervals kept before they are settled exactly: bounds memory where very many pairs tie


@dataclass(frozen=True)
class PairList:
    """One end of one matrix: pairs (n, 2) of token ids [from, to], best first, and their scores (n,)."""

    pairs: Int32
    scores: Float32


class Board:
    def __init__(self, n: int, exact: Exact, scale: float = 1.0) -> None:
        """The scores it is given are `scale` times those that `exact` gives."""
        self.n = n
        self.scale = scale
        self.top = -np.inf  # at least n pairs score this or more
        self.bottom = np.inf  # at least n pairs score this or less
        self._exact = exact
        self._from = self._to = np.empty(0, np.int32)
        self._score = self._error = np.empty(0, np.float64)

    def add(self, i: Int32, j: Int32, score: Float64 | Float32, error: Float64 | Float32) -> None:
        """Takes pairs whose true score lies in score ± error. No pair may be given twice."""
        if not len(i):
            return
        self._from = np.concatenate([self._from, i])
        self._to = np.concatenate([self._to, j])
        self._score = np.concatenate([self._score, score.astype(np.float64)])
        self._error = np.concatenate([self._error, error.astype(np.float64)])
        self._raise_floors()
        self._drop_hopeless()
        if len(self._from) > ROOM:
            self._settle()

    def know(self, top: float, bottom: float) -> None:
        """Takes floors that were proved elsewhere."""
        self.top, self.bottom = max(self.top, top), min(self.bottom, bottom)

    def contents(self) -> tuple[Int32, Int32, Float64, Float64]:
        return self._from, self._to, self._score, self._error

    def best(self) -> tuple[PairList, PairList]:
        """The top and the bottom list, exact."""
        scores = self._exact(self._from, self._to)
        return self._ranked(scores, 1), self._ranked(scores, -1)

    def _ranked(self, scores: Float32, sign: int) -> PairList:
        order = np.lexsort((self._to, self._from, -sign * scores))[: self.n]
        return PairList(np.stack([self._from[order], self._to[order]], axis=1), scores[order])

    def _raise_floors(self) -> None:
        if len(self._from) >= self.n:
            self.know(*nth_bounds(self._score, self._error, self.n))

    def _drop_hopeless(self) -> None:
        self._keep((self._score + self._error >= self.top) | (self._score - self._error <= self.bottom))

    def _keep(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> None:
        self._from, self._to = self._from[keep], self._to[keep]
        self._score, self._error = self._score[keep], self._error[keep]

    def _settle(self) -> None:
        """Replaces intervals by exact scores and keeps the n best of each end, ties by the smaller ids."""
        scores = self._exact(self._from, self._to)
        ends = [np.lexsort((self._to, self._from, -sign * scores))[: self.n] for sign in (1, -1)]
        self._score = scores.astype(np.float64) * self.scale
        self._error = UNIT * np.abs(self._score) + TINY * self.scale  # exact scores are rounded once
        self._keep(np.union1d(*ends))
        self._raise_floors()


def nth_bounds(score: Float64, error: Float64, n: int) -> tuple[float, float]:
    """Floors that at least n of the pairs reach, at the top and at the bottom. Needs n pairs."""
    lower, upper = score - error, score + error
    return float(np.partition(lower, len(lower) - n)[len(lower) - n]), float(np.partition(upper, n - 1)[n - 1])
