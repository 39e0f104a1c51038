"""A lane of the worker and its one thread: who leaves together, who is refused, who is forgotten; and how long a cost
is expected to take."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from lexiscope.app.settings import Settings
from lexiscope.app.worker import lane
from lexiscope.app.worker.jobs import Job, Pace
from lexiscope.app.worker.lane import Lane
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import LiveDown, LiveFull

pytestmark = pytest.mark.anyio
ASK = PromptAsk(text="x", k=5)
HOURS, PATIENCE = 36_000, 120  # seconds


class Computer:
    """Takes jobs down; answers with the size of the batch once it may."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.batches: list[list[Any]] = []

    def __call__(self, batch: Sequence[Job]) -> list[bytes | Exception]:
        self.batches.append([job.key for job in batch])
        self.free.wait()
        return [b"%d" % len(batch) for _ in batch]


def limits(**changes: Any) -> Settings:
    return Settings(**{"queue": 8, "batch_wait_ms": 50, "batch_size": 4, **changes})


class Line:
    """A lane that runs as long as the block; what costs 1 takes a second, by its estimate."""

    def __init__(self, batch_seconds: float = 1000, batch_wait: float | None = None, **changes: Any) -> None:
        """`batch_wait`: longer than the settings allow, so that a busy machine makes no difference."""
        self.computer = Computer()
        self._pace = Pace(speed=1)
        self._limits, self._batch_seconds = limits(**changes), batch_seconds
        if batch_wait is not None:
            self._limits = self._limits.model_copy(update={"batch_wait_ms": 1000 * batch_wait})

    async def __aenter__(self) -> "Line":
        self.lane = Lane(self.computer, self._limits, self._pace, self._batch_seconds)
        self._task = asyncio.create_task(self.lane.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.computer.free.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def put(self, key: Any, cost: float = 0, visitor: str = "anybody") -> Job:
        job = Job(ASK, key, cost, [visitor])
        self.lane.put(job)
        return job

    async def busy(self) -> None:
        """Until something is computed, which takes until `computer.free` is set."""
        self.computer.free.clear()
        self.put("first")
        while self.lane.busy_seconds is None:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(("arriving", "batches"), [
    ("aaa", ["aaa"]), ("ababa", ["aaa", "bb"]),
    ("aaaaaa", ["aaaa", "aa"]),  # batch_size 4
    ("baaaaa", ["b", "aaaa", "a"]),
])  # fmt: skip
async def test_those_of_one_key_leave_together(arriving: str, batches: list[str]) -> None:
    async with Line() as line:
        await line.busy()
        jobs = [line.put(key) for key in arriving]
        line.computer.free.set()
        await asyncio.gather(*(job.answer for job in jobs))
    assert ["".join(batch) for batch in line.computer.batches[1:]] == batches


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are about."""
    monkeypatch.setattr(lane, "CROWDED_SECONDS", float("inf"))


@pytest.mark.usefixtures("crowd")
async def test_those_who_come_soon_after_are_waited_for() -> None:
    async with Line(batch_wait=HOURS, batch_size=2) as line:
        first = line.put("a")
        await asyncio.sleep(0)
        assert await line.put("a").answer == await first.answer == b"2"


@pytest.mark.usefixtures("crowd")
async def test_nobody_is_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "QUIET_SHARE", 0.3 / HOURS)
    async with Line(batch_wait=HOURS) as line, asyncio.timeout(PATIENCE):
        await line.put("a").answer  # not after the whole wait: nobody else came


async def test_who_is_alone_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "CROWDED_SECONDS", HOURS)
    async with Line(batch_wait=HOURS, batch_size=2) as line, asyncio.timeout(PATIENCE):
        await line.put("a").answer
        await line.busy()
        second = line.put("a")  # there is somebody else: from here on others are waited for
        line.computer.free.set()
        for _ in range(100):  # turns of the event loop
            await asyncio.sleep(0)
        assert not second.answer.done()
        assert await line.put("a").answer == await second.answer == b"2"


async def test_a_batch_ends_in_time_by_its_estimate() -> None:
    """Whoever takes longer is computed alone."""
    async with Line(batch_seconds=2) as line:
        await line.busy()
        jobs = [line.put("a", seconds) for seconds in (0.8, 0.8, 0.8, 5, 0.2)]
        line.computer.free.set()
        assert [int(await job.answer) for job in jobs] == [3, 3, 1, 1, 3]  # cheap ones first: 0.2, 0.8, 0.8


async def test_the_line_is_bounded() -> None:
    async with Line(queue=3) as line:
        await line.busy()
        for key in "abc":
            line.put(key)
        with pytest.raises(LiveFull, match="3 requests wait already") as caught:
            line.put("d")
        assert 1 <= (caught.value.retry_after or 0) <= 60
        assert line.lane.waiting == 3


@pytest.mark.usefixtures("crowd")
async def test_all_may_leave_while_they_are_gathered() -> None:
    async with Line(batch_wait_ms=50) as line:
        job = line.put("a")
        await asyncio.sleep(0)  # one turn of the event loop, in which the lane begins to wait for others
        line.lane.drop(job)
        assert await line.put("b").answer == b"1"
    assert line.computer.batches == [["b"]]


async def test_whoever_waits_when_it_ends_is_told() -> None:
    async with Line() as line:
        await line.busy()
        job = line.put("a")
    with pytest.raises(LiveDown, match="ending"):
        await job.answer
    with pytest.raises(LiveDown, match="ending"):
        line.put("a")


def test_it_begins_with_the_speed_that_was_measured() -> None:
    assert Pace(speed=200).seconds(100) == 0.5


@pytest.mark.parametrize(("took", "learned"), [(1.0, 1.0), (2.0, 2.0), (0.5, 0.5), (100.0, 4.0), (0.001, None)])
def test_it_learns_what_batches_take(took: float, learned: float | None) -> None:
    """Very short batches hardly change the estimate; a batch that hung does not make the lane refuse everything."""
    pace = Pace(speed=1)
    for _ in range(50):
        pace.learn(1, took)
    if learned is None:
        assert 0.95 < pace.seconds(1) < 1
    else:
        assert pace.seconds(1) == pytest.approx(learned, rel=0.01)


@pytest.mark.parametrize(("took", "at_best"), [(3.0, 1.0), (0.5, 0.5)])
def test_what_others_do_makes_nothing_dearer(took: float, at_best: float) -> None:
    """A machine that was busy when its speed was measured is found to be faster later."""
    pace = Pace(speed=1)
    for _ in range(50):
        pace.learn(1, took)
    assert pace.seconds_at_best(1) == pytest.approx(at_best, rel=0.01)
