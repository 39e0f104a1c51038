"""How long a cost takes: measured at first, then learned, and never far from what was measured."""

import pytest

from lexiscope.app.worker.jobs import Pace


def test_it_begins_with_the_speed_that_was_measured() -> None:
    assert Pace(speed=200).seconds(100) == 0.5


@pytest.mark.parametrize(("took", "learned"), [(1.0, 1.0), (2.0, 2.0), (0.5, 0.5), (100.0, 4.0), (0.001, None)])
def test_it_learns_what_batches_take(took: float, learned: float | None) -> None:
    """Of very short ones hardly anything; one that hung does not have everything refused."""
    pace = Pace(speed=1)
    for _ in range(50):
        pace.learn(1, took)
    if learned is None:
        assert 0.95 < pace.seconds(1) < 1
    else:
        assert pace.seconds(1) == pytest.approx(learned, rel=0.01)


@pytest.mark.parametrize(("took", "at_best"), [(3.0, 1.0), (0.5, 0.5)])
def test_what_others_do_makes_nothing_dearer(took: float, at_best: float) -> None:
    """But a machine that was busy when it was measured is found to be faster."""
    pace = Pace(speed=1)
    for _ in range(50):
        pace.learn(1, took)
    assert pace.seconds_at_best(1) == pytest.approx(at_best, rel=0.01)
