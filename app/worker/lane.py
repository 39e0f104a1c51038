"""A lane of the worker: a queue of jobs, and one thread that computes jobs together if they can share a computation."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import ceil

from lexiscope.app.settings import Settings
from lexiscope.app.worker.jobs import Job, Pace
from lexiscope.app.worker.turns import Turns
from lexiscope.precompute.live.wire.errors import LiveDown, LiveFailed, LiveFull

CROWDED_SECONDS = 1.0  # batches wait for more jobs for so long after two jobs were last here at once
ENDING = "the worker is ending: ask again soon"
RESTART_SECONDS = 5  # after so many seconds the next worker may be ready
LONGEST_RETRY_SECONDS = 60
QUIET_SHARE = 0.5  # as a share of the longest wait: a batch stops waiting if no job comes for so long

# A function that returns one result per job. An error that it raises ends the computing thread.
Compute = Callable[[Sequence[Job]], Sequence[bytes | Exception]]


class Lane:
    """A queue of jobs and the thread that computes them. `batch_seconds` is the longest time that a batch of several
    jobs may take by its estimate."""

    def __init__(self, compute: Compute, settings: Settings, pace: Pace, batch_seconds: float) -> None:
        self._compute = compute
        self._queue, self._batch_size = settings.queue, settings.batch_size
        self._batch_wait = settings.batch_wait_ms / 1000  # longest time that a batch waits for more jobs, in seconds
        self._pace = pace
        self._batch_seconds = batch_seconds
        self._turns = Turns()
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "compute")
        self._busy_since: float | None = None
        self._running: Sequence[Job] = ()
        self._crowded_at = float("-inf")  # when a job last arrived while another was here
        self._ended = False

    @property
    def waiting(self) -> int:
        return len(self._turns)

    @property
    def busy_seconds(self) -> float | None:
        """Return how long the current batch has been computing, in seconds; None if there is none."""
        return None if self._busy_since is None else time.monotonic() - self._busy_since

    def seconds_ahead(self, visitor: str | None = None) -> float:
        """Return the estimated seconds of all jobs that are waiting or being computed, or of those of one visitor."""
        jobs = (*self._turns, *self._running)
        return self._pace.seconds(sum(job.cost for job in jobs if visitor is None or visitor in job.visitors))

    def put(self, job: Job) -> None:
        if self._ended:
            raise LiveDown(ENDING, RESTART_SECONDS)
        if len(self._turns) >= self._queue:
            raise LiveFull(
                f"{len(self._turns)} requests wait already (the setting queue)", retry_after(self.seconds_ahead())
            )
        if self._turns or self._running:
            self._crowded_at = job.arrived
        self._turns.add(job)
        self._news.set()

    def drop(self, job: Job) -> None:
        """Drop a job that nobody waits for any more. It is not computed or, if it is being computed alone, stops
        between layers."""
        job.answer.cancel()
        with suppress(ValueError):
            self._turns.remove(job)

    async def run(self) -> None:
        """Compute batches for as long as the worker lives; raise the error that ended the computing thread."""
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
        except BaseException:  # libraries in Rust raise a BaseException when they panic
            if len(batch) == 1:  # the same job would also end the next worker
                batch[0].settle(LiveFailed("this computation ended the worker, which is an error of the program"))
            raise
        if not any(
            isinstance(result, Exception) for result in results
        ):  # the time of a job that was abandoned is no measure of its cost
            self._pace.learn(sum(job.cost for job in batch), time.monotonic() - self._busy_since)
        self._running, self._busy_since = (), None
        for job, result in zip(batch, results, strict=True):
            job.settle(result)

    async def _next_batch(self) -> list[Job]:
        """Return the next job and those that may be computed with it. If two jobs were here at once a moment ago, wait
        briefly for more."""
        while True:
            self._news.clear()
            if not self._turns:
                await self._news.wait()
                continue
            batch, full = self._batch()
            now = time.monotonic()
            left = batch[0].arrived + self._batch_wait - now
            if not full and left > 0 and now - self._crowded_at <= CROWDED_SECONDS:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), min(left, QUIET_SHARE * self._batch_wait))
                    continue
                batch, _ = self._batch()
            self._turns.start(batch)
            if batch:
                return batch

    def _batch(self) -> tuple[list[Job], bool]:
        """Return the batch that would be computed now, and whether it is full."""
        batch: list[Job] = []
        seconds = 0.0
        for job in self._turns.in_turn():
            seconds += self._pace.seconds(job.cost)
            if batch and seconds > self._batch_seconds:
                return batch, True
            batch.append(job)
            if len(batch) == self._batch_size:
                return batch, True
        return batch, False


def retry_after(seconds: float) -> int:
    return min(LONGEST_RETRY_SECONDS, max(1, ceil(seconds)))
