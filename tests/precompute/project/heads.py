"""A head's matrix over a small vocabulary, and what brute force says of it: for the tests of the pair search."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project import exact
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.pairs.factor import Factor
from lexiscope.precompute.project.pairs.head_pairs import Matrix
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard, PairList
from lexiscope.precompute.project.pairs.masks import Masks
from tests.precompute.project.vocabularies import vocabulary
from tests.support import brute

Array = NDArray[Any]
CPU = torch.device("cpu")
# Factors for W_left and W_right: scores that float32 holds, of rows whose squares it does not.
SMALL_WEIGHTS = [(6e-35, 1700), (2e5, 4e-34), (8e-34, 0.25), (4e-11, 1.5e-31), (1e-28, 5e-8)]


@dataclass(frozen=True)
class Head:
    source: Array
    target: Array
    W_left: Array
    W_right: Array
    surface: Array
    words: Array

    @classmethod
    def of(
        cls, kind: str, d_vocab: int, d_head: int, seed: int, *, d_model: int = 20, tied: bool = True, **masks: Any
    ) -> "Head":
        """A random head; as `masks`: `surfaces`, how many there are, and `words`, the share of whole words."""
        random = np.random.default_rng(seed)
        source = vocabulary(kind, d_vocab, d_model, seed)
        target = source if tied else vocabulary(kind, d_vocab, d_model, seed + 1)
        W = [random.standard_normal((d_model, d_head)).astype(np.float32) for _ in range(2)]
        if kind in ("integers", "signed zeros"):
            W = [random.integers(-1, 2, (d_model, d_head)).astype(np.float32) for _ in range(2)]
        surface = random.integers(0, masks.get("surfaces", max(1, d_vocab // 2)), d_vocab)
        surface = np.unique(surface, return_inverse=True)[1].astype(np.int32)
        return cls(source, target, W[0], W[1], surface, random.random(d_vocab) < masks.get("words", 0.4))

    def scaled(self, left: float, right: float) -> "Head":
        return replace(self, W_left=self.W_left * np.float32(left), W_right=self.W_right * np.float32(right))

    def matrix(self) -> Matrix:
        source = Embedding.of(torch.from_numpy(self.source), CPU)
        target = source if self.target is self.source else Embedding.of(torch.from_numpy(self.target), CPU)
        left, right = self.W_left.T @ self.source.T, self.W_right.T @ self.target.T
        return Matrix(source, target, self.W_left, self.W_right, torch.from_numpy(left), torch.from_numpy(right))

    def masks(self) -> Masks:
        return Masks.of(self.surface, self.words)

    def factors(self, lens: str) -> tuple[Factor, Factor]:
        m = self.matrix()
        return Factor.of(m.left, m.W_left, m.source, lens), Factor.of(m.right, m.W_right, m.target, lens)

    def board(self, lens: str, n: int) -> Leaderboard:
        m = self.matrix()
        return Leaderboard(n, lambda i, j: exact.pair_scores(m.source, m.target, m.W_left, m.W_right, lens, i, j))

    def true_scores(self, lens: str) -> Array:
        return brute.pair_matrix(self.source, self.target, self.W_left, self.W_right, lens)

    def brute(self, lens: str, n: int) -> dict[str, brute.Ends]:
        return brute.top_pairs(self.source, self.target, self.W_left, self.W_right, lens, self.surface, self.words, n)


def same(found: tuple[PairList, PairList], true: brute.Ends) -> None:
    """Both ends, ids and scores, bit for bit."""
    for end, (pairs, scores) in zip(found, true, strict=True):
        np.testing.assert_array_equal(end.scores, scores)
        np.testing.assert_array_equal(end.pairs, pairs)
        assert not (np.signbit(end.scores) & (end.scores == 0)).any()
