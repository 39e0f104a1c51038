"""Printed lists in ours: exactly, up to the space, one for one; against plain counting."""

import itertools
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from lexiscope.precompute.paper.matching import Ranks, ranks_in_ours

OURS = [(" dog", "Dog"), ("dog", " Dog"), (" cat", " cats"), ("x", "y")]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ((" dog", "Dog"), Ranks(1, 1)),
        (("dog", " Dog"), Ranks(2, 1)),
        (("dog", "Dog"), Ranks(None, 1)),
        ((" dog", "dog"), Ranks()),
        (("Dog", " dog"), Ranks()),  # the other way round
        (("cat", " cats"), Ranks(None, 3)),
        (("  cat", " cats"), Ranks()),  # two spaces are one too many
    ],
)
def test_where_one_entry_is(printed: tuple[str, str], expected: Ranks) -> None:
    assert ranks_in_ours([printed], OURS) == [expected]


def test_no_entry_of_ours_stands_for_two() -> None:
    three = [("dog", "Dog"), (" dog", "Dog"), (" dog", " Dog")]
    assert [entry.up_to_space for entry in ranks_in_ours(three, OURS)] == [1, 2, None]
    assert [entry.up_to_space for entry in ranks_in_ours(three, OURS, doubtful={0})] == [None, 1, 2]
    assert [entry.exactly for entry in ranks_in_ours(three, OURS)] == [None, 1, None]


@pytest.mark.parametrize("seed", range(20))
def test_equal_to_counting_by_groups(seed: int) -> None:
    """How many of the printed ones that differ in spaces alone can each have one of ours."""
    random = np.random.default_rng(seed)
    every = [
        (a + x, b + y) for x, y in itertools.product("uvw", "uvw") for a, b in itertools.product(["", " "], [" ", ""])
    ]
    ours, printed = (
        [every[at] for at in random.permutation(len(every))[: random.integers(1, len(every))]] for _ in range(2)
    )
    first = int(random.integers(1, len(ours) + 1))
    found = ranks_in_ours(printed, ours)

    def among(ranks: Iterable[int | None]) -> int:
        return sum(rank is not None and rank <= first for rank in ranks)

    groups, own = (Counter((a.strip(), b.strip()) for a, b in each) for each in (printed, ours[:first]))
    assert among(entry.up_to_space for entry in found) == sum(min(count, own[group]) for group, count in groups.items())
    assert among(entry.exactly for entry in found) == len({*printed} & {*ours[:first]})
