"""Declare what readers get from a layer's file: lists of a vector, lists of a head's pairs, and numbers about them."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from typing_extensions import TypedDict

from lexiscope.precompute.index.layout import LOOKS
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import Shape

CLEAR_SHARE = 0.5  # least share of attention that names a place: then no other has more


@dataclass(frozen=True, slots=True, eq=False)
class VectorLists:
    ids: Array  # (ends, k): of the top and of the bottom
    scores: Floats
    norm: float
    coherence_top: float  # NaN if too few tokens are left to compare
    coherence_bottom: float

    @property
    def top_ids(self) -> Array:
        return np.asarray(self.ids[0])

    @property
    def top_scores(self) -> Floats:
        return np.asarray(self.scores[0])

    @property
    def bottom_ids(self) -> Array:
        return np.asarray(self.ids[1])

    @property
    def bottom_scores(self) -> Floats:
        return np.asarray(self.scores[1])


class Moments(TypedDict):
    """How the scores of a vector are distributed over all tokens; a number is None if all scores are equal."""

    mean: float | None
    sd: float | None
    skew: float | None
    kurtosis: float | None  # excess kurtosis: 0 for a normal distribution
    z: float | None  # (score - mean) / sd of the first token at the top
    z_bottom: float | None  # that of the first token at the bottom


@dataclass(frozen=True, slots=True)
class Chance:
    """The z of the first token that random vectors reach under a lens: 95 and 99 % of them stay under these lines.
    The higher of two sources counts; a source is None if none of its vectors has scores that differ."""

    gaussian: tuple[float, float] | None  # (95 %, 99 %) of Gaussian vectors
    mixtures: tuple[float, float] | None  # of random mixtures of a layer's own vectors
    line95: float
    line99: float

    @classmethod
    def of(cls, line: Floats) -> "Chance | None":
        """Make it of the stored numbers (sources, quantiles); return None if neither source has any."""
        gaussian, mixtures = (None if np.isnan(of_source).any() else tuple(of_source.tolist()) for of_source in line)
        known = [of_source for of_source in (gaussian, mixtures) if of_source]
        return cls(gaussian, mixtures, *map(max, zip(*known, strict=True))) if known else None

    def standing(self, z: float) -> Literal["above", "near", "within"]:
        """Say where a z stands: above what 99 % of random vectors reach, near (between 95 and 99 %), or within what
        they reach."""
        return "above" if z > self.line99 else "near" if z > self.line95 else "within"


class HeadPositions(TypedDict):
    """Where a head looks by position alone, with content left out: shares of its attention."""

    by: Literal["position", "distance"]  # learned positions, or rotary ones
    words: str | None  # the place that has at least half; None where attention is spread
    share: float | None  # the share of that place
    shares: dict[str, float]  # of the places that are told apart, and what is left (`spread`)
    distances: list[int]  # how far back; below 0 are later positions
    by_distance: list[float]  # the share at each distance


def are_shares(numbers: Floats) -> bool:
    """Return True if no number is below 0 or, but for rounding, above 1; NaN stands for a share that there is not."""
    return not bool(((numbers < 0) | (numbers > 1 + 1e-6)).any())


def head_positions(shape: Shape, shares: Floats, by_distance: Floats) -> HeadPositions:
    """Return where a head looks, from its stored shares (4,) and shares by distance."""
    named = {name: share for name, share in zip(LOOKS, shares.tolist(), strict=True) if math.isfinite(share)}
    clear = next((name for name, share in named.items() if share >= CLEAR_SHARE), None)
    start = 0 if shape.causal else -(len(by_distance) // 2)
    return {
        "by": "distance" if shape.positions == "rotary" else "position",
        "words": clear and LOOKS[clear],
        "share": named[clear] if clear else None,
        "shares": named | {"spread": max(0.0, 1 - sum(named.values()))},
        "distances": [*range(start, start + len(by_distance))],
        "by_distance": by_distance.tolist(),
    }


@dataclass(frozen=True, slots=True)
class Similarity:
    """How much the top of one list shares with each end of another: the paper's Sim_100, from 0 to 1."""

    top: float
    bottom: float


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    ids: Array  # (n, 2): from, to
    scores: Floats  # (n,)
    coherence: float
