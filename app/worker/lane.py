"""A lane of the worker: a queue of asks, and one thread that computes those together that can share a computation."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import ceil

from lexiscope.app.worker.jobs import Job
from lexiscope.app.worker.limits import Limits
from lexiscope.app.worker.pace import Pace
from lexiscope.app.worker.turns import Turns
from lexiscope.precompute.live.wire.errors import LiveDown, LiveFailed, LiveFull

CROWDED_SECONDS = 1.0  # after two jobs were here at once, a batch waits for others: who is alone need not wait
ENDING = "the worker is ending: ask again soon"
RESTART_SECONDS = 5  # until the next worker may be there
LONGEST_RETRY = 60  # seconds
QUIET = 0.5  # the share of the wait after which, if nobody else came, a batch waits no longer

# One result per job. What it raises ends the computing thread.
Compute = Callable[[Sequence[Job]], Sequence[bytes | Exception]]


class Lane:
    """`batch_seconds`: the longest that a batch may take by its estimate, unless it is of a single job."""

    def __init__(self, compute: Compute, limits: Limits, pace: Pace, batch_seconds: float) -> None:
        self._compute = compute
        self._limits = limits
        self._pace = pace
        self._batch_seconds = batch_seconds
        self._turns = Turns()
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "compute")
        self._busy_since: float | None = None
        self._running: Sequence[Job] = ()
        self._crowded_at = float("-inf")  # when somebody came while another was here
        self._ended = False

    @property
    def waiting(self) -> int:
        return len(self._turns)

    @property
    def busy_seconds(self) -> float | None:
        """How long the batch under way has been computed; None: there is none."""
        return None if self._busy_since is None else time.monotonic() - self._busy_since

    def seconds_ahead(self, visitor: str | None = None) -> float:
        """How long all that is here will take, by its estimate; with a visitor, what is theirs."""
        jobs = (*self._turns, *self._running)
        return self._pace.seconds(sum(job.cost for job in jobs if visitor is None or visitor in job.visitors))

    def put(self, job: Job) -> None:
        if self._ended:
            raise LiveDown(ENDING, RESTART_SECONDS)
        if len(self._turns) >= self._limits.queue:
            raise LiveFull(
                f"{len(self._turns)} requests wait already (the setting queue)", retry_after(self.seconds_ahead())
            )
        if self._turns or self._running:
            self._crowded_at = job.arrived
        self._turns.add(job)
        self._news.set()

    def drop(self, job: Job) -> None:
        """Nobody waits for it: it is not computed, or if it is under way alone, stops between layers."""
        job.answer.cancel()
        with suppress(ValueError):
            self._turns.remove(job)

    async def run(self) -> None:
        """Computes batches for as long as the worker lives; raises what ended the computing thread."""
        try:
            while True:
                await self._compute_batch(await self._next_batch())
        finally:
            self._ended = True
            for job in (*self._turns, *self._running):
                job.settle(LiveDown(ENDING, RESTART_SECONDS))
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _compute_batch(self, batch: Sequence[Job]) -> None:
        self._running, self._busy_since = batch, time.monotonic()
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._thread, self._compute, batch)
        except asyncio.CancelledError:
            raise
        except BaseException:  # a library that panics, in Rust, raises no Exception
            if len(batch) == 1:  # to ask for this again would end the next worker as well
                batch[0].settle(LiveFailed("this computation ended the worker, which is a fault of the program"))
            raise
        if not any(isinstance(result, Exception) for result in results):  # what was given up took less than it would
            self._pace.learn(sum(job.cost for job in batch), time.monotonic() - self._busy_since)
        self._running, self._busy_since = (), None
        for job, result in zip(batch, results, strict=True):
            job.settle(result)

    async def _next_batch(self) -> list[Job]:
        """The next job and those that may go with it; where many are about, it waits for such, but not long."""
        while True:
            self._news.clear()
            if not self._turns:
                await self._news.wait()
                continue
            batch, full = self._batch()
            now = time.monotonic()
            left = batch[0].arrived + self._limits.batch_wait - now
            if not full and left > 0 and now - self._crowded_at <= CROWDED_SECONDS:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), min(left, QUIET * self._limits.batch_wait))
                    continue
                batch, _ = self._batch()
            self._turns.start(batch)
            if batch:
                return batch

    def _batch(self) -> tuple[list[Job], bool]:
        """What would leave now, and whether no more would fit."""
        batch: list[Job] = []
        seconds = 0.0
        for job in self._turns.in_turn():
            seconds += self._pace.seconds(job.cost)
            if batch and seconds > self._batch_seconds:
                return batch, True
            batch.append(job)
            if len(batch) == self._limits.batch_size:
                return batch, True
        return batch, False


def retry_after(seconds: float) -> int:
    return min(LONGEST_RETRY, max(1, ceil(seconds)))
