"""Whose turn it is: equal shares between visitors, cheap before dear, and nobody starves."""

import asyncio

import pytest

from lexiscope.app.worker.jobs import Job
from lexiscope.app.worker.turns import Turns
from lexiscope.precompute.live.wire.asks import PromptAsk

ASK = PromptAsk(text="x", k=5)
Coming = tuple[str, float]  # a visitor, and what their ask costs


def order(*arriving: Coming) -> list[Coming]:
    """All wait at once; who is computed after whom."""

    async def turns() -> list[Coming]:
        line = Turns()
        for visitor, cost in arriving:
            line.add(Job(ASK, object(), cost, [visitor]))
        served = []
        while line:
            job = next(line.in_turn())
            line.start([job])
            served.append((job.visitors[0], job.cost))
        return served

    return asyncio.run(turns())


@pytest.mark.parametrize(("arriving", "served"), [
    (["a1", "a1", "a1", "b1", "b1"], ["a1", "b1", "a1", "b1", "a1"]),  # in turn
    (["a5", "b1", "c3"], ["b1", "c3", "a5"]),  # cheap ones before dear ones
    (["a5", "a1", "a3"], ["a1", "a3", "a5"]),  # of one visitor, too
    (["a2", "a2", "a2", "a2", "b4", "b4"], ["a2", "a2", "b4", "a2", "a2", "b4"]),  # equal shares of the time
])  # fmt: skip
def test_turns(arriving: list[str], served: list[str]) -> None:
    found = order(*((one[0], float(one[1:])) for one in arriving))
    assert [f"{visitor}{cost:g}" for visitor, cost in found] == served


@pytest.mark.parametrize("same_visitor", [True, False])
def test_a_dear_one_is_not_passed_for_ever(same_visitor: bool) -> None:
    """Cheap ones keep coming, of the same visitor or each of another: they have as much of the time, no more."""

    async def cheap_before_dear() -> int:
        line = Turns()
        dear = Job(ASK, object(), 10, ["a"])
        line.add(dear)
        for number in range(100):
            line.add(Job(ASK, object(), 1, ["a" if same_visitor else str(number)]))
            job = next(line.in_turn())
            line.start([job])
            if job is dear:
                return number
        return 100

    assert asyncio.run(cheap_before_dear()) <= 11


def test_whoever_shares_a_batch_has_had_their_turn() -> None:
    async def served_after_batch() -> str:
        line = Turns()
        for visitor in ("a", "b"):
            line.add(Job(ASK, "shared", 1, [visitor]))
        line.start(list(line.in_turn()))
        for visitor in ("b", "c"):
            line.add(Job(ASK, object(), 1, [visitor]))
        return next(line.in_turn()).visitors[0]

    assert asyncio.run(served_after_batch()) in ("b", "c")


def test_the_first_takes_those_of_its_key_along() -> None:
    async def batch() -> str:
        line = Turns()
        for visitor, key in ("ax", "ay", "bx", "ax"):
            line.add(Job(ASK, key, 1, [visitor]))
        return "".join(str(job.key) + job.visitors[0] for job in line.in_turn())

    assert asyncio.run(batch()) == "xaxbxa"
