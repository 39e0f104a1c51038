"""Lengths of lists: what is on offer, and which of them reaches a rank."""

import pytest

from lexiscope.app.lists.checks import offered, reaching


@pytest.mark.parametrize(("usual", "stored", "expected"), [
    (25, 100, [25, 50, 100]), (50, 500, [50, 100, 500]), (25, 50, [25, 50]), (25, 30, [25, 30]), (25, 25, [25]),
    (25, 8, [8]),
])  # fmt: skip
def test_offered(usual: int, stored: int, expected: list[int]) -> None:
    assert offered(usual, stored) == expected


@pytest.mark.parametrize(("rank", "stored", "expected"), [
    (1, 100, None), (25, 100, None), (26, 100, 50), (50, 100, 50), (51, 100, 100), (100, 100, 100), (8, 8, None),
])  # fmt: skip
def test_reaching(rank: int, stored: int, expected: int | None) -> None:
    assert reaching(rank, 25, stored) == expected
