"""Add up the coverage of one text after the other and keep the sums on disk, so that a measurement that was killed can
be continued. There are a few numbers for each lens, kind, layer and state, however many texts there are.
"""

import hashlib
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from lexiscope.precompute.files import canonical_json, open_regular, write_beside
from lexiscope.precompute.project.embedding import Float64

STATES = ("own", "own_random", "last", "last_random")
PARTIAL_COVERAGE = "lab-coverage.partial"
MOST_BYTES = 1 << 26


class _Kept(BaseModel):
    """The content of the file PARTIAL_COVERAGE."""

    made_from: str
    texts: int
    positions: int
    shape: tuple[int, ...]
    total: list[float]
    of_texts: list[float]
    squares: list[float]


class CoverageSums:
    """The sums of coverage over texts, as arrays (L, kinds, n_layers, STATES); L is the number of lenses."""

    def __init__(self, made_from: object, shape: tuple[int, int, int]) -> None:
        """Start with empty sums. `made_from` is all that decides the numbers: sums made from something else are never
        continued."""
        self.made_from = hashlib.sha256(canonical_json(made_from)).hexdigest()
        self.shape = (*shape, len(STATES))
        self.texts = self.positions = 0
        self.total, self.of_texts, self.squares = (np.zeros(self.shape) for _ in range(3))

    def add(self, shares: Float64) -> None:
        """Add the shares (..., T) of all positions of one text."""
        mean = shares.mean(axis=-1)
        self.texts += 1
        self.positions += shares.shape[-1]
        self.total += shares.sum(axis=-1)
        self.of_texts += mean
        self.squares += mean**2

    def means(self) -> Float64:
        """Return the means over all positions."""
        return np.clip(self.total / self.positions, 0, 1)

    def spreads(self) -> Float64:
        """Return the standard deviation of the means of texts (n - 1 in the divisor); NaN for one text."""
        if self.texts < 2:
            return np.full(self.shape, np.nan)
        variance = (self.squares - self.of_texts**2 / self.texts) / (self.texts - 1)
        return np.sqrt(np.clip(variance, 0, None))

    def save(self, folder: Path) -> None:
        kept = _Kept(
            made_from=self.made_from, texts=self.texts, positions=self.positions, shape=self.shape,
            total=self.total.ravel().tolist(), of_texts=self.of_texts.ravel().tolist(),
            squares=self.squares.ravel().tolist(),
        )  # fmt: skip
        write_beside(folder / PARTIAL_COVERAGE, [kept.model_dump_json().encode()])

    def go_on(self, folder: Path) -> None:
        """Continue with what a killed measurement of the same kind has kept; ignore a file that is anything else."""
        try:
            with open_regular(folder / PARTIAL_COVERAGE) as file:
                kept = _Kept.model_validate_json(file.read(MOST_BYTES))
            if kept.made_from != self.made_from or kept.shape != self.shape:
                return
            total, of_texts, squares = (
                np.array(numbers, np.float64).reshape(self.shape)
                for numbers in (kept.total, kept.of_texts, kept.squares)
            )
        except (OSError, ValidationError, ValueError):
            return
        self.texts, self.positions = kept.texts, kept.positions
        self.total, self.of_texts, self.squares = total, of_texts, squares


def forget(folder: Path) -> None:
    """Remove the file: a finished measurement is in lab.json."""
    (folder / PARTIAL_COVERAGE).unlink(missing_ok=True)
