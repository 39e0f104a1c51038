"""The worker's line and its one thread: who leaves together, who is refused, who is forgotten."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from app.worker import batching
from app.worker.batching import UNTRIED, Batcher, Job
from app.worker.limits import Limits
from app.workers.errors import LiveDown, LiveFailed, LiveFull
from precompute.live.wire import PromptAsk

pytestmark = pytest.mark.anyio
ASK = PromptAsk(text="x", k=5)


class Computer:
    """Takes jobs down; answers with the size of the batch once it may."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.batches: list[list[Any]] = []
        self.seconds = 0.0  # that each job takes

    def __call__(self, batch: Sequence[Job]) -> list[bytes | Exception]:
        self.batches.append([job.key for job in batch])
        self.free.wait(30)
        time.sleep(self.seconds * len(batch))
        return [b"%d" % len(batch) for _ in batch]


def limits(**changes: Any) -> Limits:
    chosen: dict[str, Any] = {"queue": 8, "seconds": 30.0, "batch_wait": 0.05, "batch_size": 4, **changes}
    return Limits(prompt_tokens=256, seeds=64, heads=512, **chosen)


class Line:
    """A batcher that runs as long as the block."""

    def __init__(self, cost_limit: int = 1000, **changes: Any) -> None:
        self.computer = Computer()
        self._limits, self._cost_limit = limits(**changes), cost_limit

    async def __aenter__(self) -> "Line":
        self.batcher = Batcher(self.computer, self._limits, self._cost_limit)
        self._task = asyncio.create_task(self.batcher.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.computer.free.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def put(self, key: Any, cost: int = 0) -> Job:
        job = Job(ASK, key, cost)
        self.batcher.put(job)
        return job

    async def busy(self) -> None:
        """Until something is computed, which takes until `computer.free` is set."""
        self.computer.free.clear()
        self.put("first")
        while self.batcher.busy_seconds is None:
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
    monkeypatch.setattr(batching, "CROWDED_SECONDS", float("inf"))


@pytest.mark.usefixtures("crowd")
async def test_those_who_come_soon_after_are_waited_for() -> None:
    async with Line(batch_wait=0.5) as line:
        first = line.put("a")
        await asyncio.sleep(0.02)
        assert await line.put("a").answer == await first.answer == b"2"


@pytest.mark.usefixtures("crowd")
async def test_nobody_is_waited_for_long() -> None:
    async with Line(batch_wait=1.0) as line:
        started = time.monotonic()
        await line.put("a").answer
        assert 0.4 < time.monotonic() - started < 0.9  # not the whole wait: nobody else came


async def test_who_is_alone_need_not_wait() -> None:
    async with Line(batch_wait=1.0) as line:
        started = time.monotonic()
        for _ in range(3):
            await line.put("a").answer
        assert time.monotonic() - started < 0.4
        first = line.put("a")
        await asyncio.sleep(0)
        await asyncio.gather(first.answer, line.put("b").answer)  # from here on others are waited for
        await line.put("a").answer
        assert time.monotonic() - started > 0.4


async def test_long_prompts_fill_a_batch() -> None:
    async with Line(cost_limit=100) as line:
        await line.busy()
        jobs = [line.put("a", cost) for cost in (40, 40, 40, 500, 10)]
        line.computer.free.set()
        assert [int(await job.answer) for job in jobs] == [2, 2, 1, 1, 1]


async def test_slow_prompts_leave_in_batches_that_end_in_time() -> None:
    """A few at first, as long as nobody knows how slow they are; then a third of the time limit at most."""

    async with Line(queue=40, batch_size=32, seconds=3.0) as line:
        line.computer.seconds = 0.2
        await line.busy()
        jobs = [line.put("a", 1) for _ in range(14)]
        line.computer.free.set()
        sizes = [int(await job.answer) for job in jobs]
        assert sizes[:UNTRIED] == [UNTRIED] * UNTRIED
        assert 1 <= max(sizes[UNTRIED:]) <= 5


async def test_the_line_is_bounded() -> None:
    async with Line(queue=3) as line:
        await line.busy()
        for key in "abc":
            line.put(key)
        with pytest.raises(LiveFull, match="3 requests wait already") as caught:
            line.put("d")
        assert 1 <= (caught.value.retry_after or 0) <= 60
        assert line.batcher.waiting == 3


async def test_who_leaves_is_not_computed() -> None:
    async with Line() as line:
        await line.busy()
        gone, stays = line.put("gone"), line.put("stays")
        line.batcher.drop(gone)
        line.computer.free.set()
        await stays.answer
        assert not gone.wanted
    assert line.computer.batches == [["first"], ["stays"]]


@pytest.mark.usefixtures("crowd")
async def test_all_may_leave_while_they_are_gathered() -> None:
    async with Line(batch_wait=0.05) as line:
        job = line.put("a")
        await asyncio.sleep(0.001)
        line.batcher.drop(job)
        await asyncio.sleep(0.1)
        assert await line.put("b").answer == b"1"
    assert line.computer.batches == [["b"]]


class Panic(BaseException):
    """As libraries in Rust raise it."""


@pytest.mark.parametrize(("batch", "error"), [("a", LiveFailed), ("aa", LiveDown)])
async def test_what_ends_the_thread_is_raised_and_everybody_is_told(batch: str, error: type[Exception]) -> None:
    """Whoever ended it alone is not told to ask again."""

    def panic(_: Sequence[Job]) -> list[bytes | Exception]:
        raise Panic

    batcher = Batcher(panic, limits(), 1000)
    jobs = [Job(ASK, key) for key in (*batch, "another")]
    for job in jobs:
        batcher.put(job)
    with pytest.raises(Panic):
        await batcher.run()
    for job in jobs[:-1]:
        with pytest.raises(error):
            await job.answer
    with pytest.raises(LiveDown):
        await jobs[-1].answer


async def test_whoever_waits_when_it_ends_is_told() -> None:
    async with Line() as line:
        await line.busy()
        job = line.put("a")
    with pytest.raises(LiveDown, match="ending"):
        await job.answer
    with pytest.raises(LiveDown, match="ending"):
        line.put("a")
