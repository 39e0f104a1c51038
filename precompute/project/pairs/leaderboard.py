"""Keep the best pairs that a search has found so far, at both ends: those that may be on the final list, and the floors
that a new pair must reach.

Scores are kept as intervals (score ± error). The pairs that are left are scored exactly when the list is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.project.embedding import Float32, Float64, Int32
from lexiscope.precompute.project.rounding import TINY, UNIT

ExactScores = Callable[[Int32, Int32], Float32]  # from-tokens and to-tokens (n,) -> (n,)

MOST_INTERVALS = 200_000  # pairs kept before they are scored exactly: limits memory where very many pairs tie


@dataclass(frozen=True)
class PairList:
    """The list of one end, top or bottom, of one matrix: pairs (n, 2) of token ids [from, to], best first, and their
    scores (n,)."""

    pairs: Int32
    scores: Float32


class Leaderboard:
    def __init__(self, n: int, exact_scores: ExactScores, scale: float = 1.0) -> None:
        """Start empty lists of n pairs. Scores that are given to `add` are `scale` times those that `exact_scores`
        returns."""
        self.n = n
        self.scale = scale
        self.top = -np.inf  # floor of the top end: at least n pairs score this or more
        self.bottom = np.inf  # floor of the bottom end: at least n pairs score this or less
        self._exact_scores = exact_scores
        self._from = self._to = np.empty(0, np.int32)
        self._score = self._error = np.empty(0, np.float64)

    def add(self, i: Int32, j: Int32, score: Float64 | Float32, error: Float64 | Float32) -> None:
        """Add pairs (i[n], j[n]) whose true scores lie within score ± error. No pair may be added twice."""
        if not len(i):
            return
        self._from = np.concatenate([self._from, i])
        self._to = np.concatenate([self._to, j])
        self._score = np.concatenate([self._score, score.astype(np.float64)])
        self._error = np.concatenate([self._error, error.astype(np.float64)])
        self._raise_floors_by_candidates()
        self._drop_hopeless()
        if len(self._from) > MOST_INTERVALS:
            self._replace_by_exact()

    def raise_floors(self, top: float, bottom: float) -> None:
        """Raise the floors, which pairs must reach to be kept, to these numbers if they are stricter; the caller has
        proved that n pairs reach them."""
        self.top, self.bottom = max(self.top, top), min(self.bottom, bottom)

    def candidates(self) -> tuple[Int32, Int32, Float64, Float64]:
        """Return the from-tokens, to-tokens, scores and errors of all pairs that may be on the final lists."""
        return self._from, self._to, self._score, self._error

    def best(self) -> tuple[PairList, PairList]:
        """Return the final top and bottom lists, with exact scores; ties are ordered by the smaller ids."""
        scores = self._exact_scores(self._from, self._to)
        top, bottom = (self._order(scores, sign) for sign in (1, -1))
        pairs = np.stack([self._from, self._to], axis=1)
        return PairList(pairs[top], scores[top]), PairList(pairs[bottom], scores[bottom])

    def _order(self, scores: Float32, sign: int) -> NDArray[np.int64]:
        """Return the positions of the n largest of sign * scores."""
        return np.lexsort((self._to, self._from, -sign * scores))[: self.n]

    def _raise_floors_by_candidates(self) -> None:
        if len(self._from) >= self.n:
            self.raise_floors(*nth_bounds(self._score, self._error, self.n))

    def _drop_hopeless(self) -> None:
        self._keep((self._score + self._error >= self.top) | (self._score - self._error <= self.bottom))

    def _keep(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> None:
        self._from, self._to = self._from[keep], self._to[keep]
        self._score, self._error = self._score[keep], self._error[keep]

    def _replace_by_exact(self) -> None:
        """Replace the intervals (score ± error) by exact scores, and keep only the n best pairs of each end."""
        scores = self._exact_scores(self._from, self._to)
        best = np.union1d(self._order(scores, 1), self._order(scores, -1))
        self._score = scores.astype(np.float64) * self.scale
        self._error = UNIT * np.abs(self._score) + TINY * self.scale  # exact scores are rounded once
        self._keep(best)
        self._raise_floors_by_candidates()


def nth_bounds(score: Float64, error: Float64, n: int) -> tuple[float, float]:
    """Return two floors, one for the top and one for the bottom: scores that at least n of the pairs surely reach. At
    least n pairs must be given."""
    lower, upper = score - error, score + error
    return float(np.partition(lower, len(lower) - n)[len(lower) - n]), float(np.partition(upper, n - 1)[n - 1])
