"""The queue of asks, and the one thread that computes: asks that can share a computation are computed together."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil

from app.worker.limits import Limits
from app.workers.errors import LiveDown, LiveFailed, LiveFull
from app.workers.protocol import Ask

CROWDED_SECONDS = 1.0  # after two jobs were here at once, a batch waits for others: who is alone need not wait
UNTRIED = 4  # prompts of a kind in one batch before it is known how long one takes
PATIENCE = 1 / 3  # the share of the time limit that a batch may take, as far as is known
ENDING = "the worker is ending: ask again soon"
RESTART_SECONDS = 5  # until the next worker may be there
QUIET = 0.5  # the share of the wait after which, if nobody else came, a batch waits no longer


@dataclass(eq=False)
class Job:
    ask: Ask
    key: Hashable  # jobs of one key may be computed together
    cost: int = 0  # tokens of a prompt
    report: Callable[[str, float], None] | None = None  # stage and share; called by the computing thread
    answer: "asyncio.Future[bytes]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    arrived: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        # An error that came when nobody waited any more is no news for the log.
        self.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())

    def settle(self, result: bytes | Exception) -> None:
        if self.answer.done():
            return
        if isinstance(result, Exception):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)

    @property
    def wanted(self) -> bool:
        """Whether anybody still waits; the computing thread asks this, too."""
        return not self.answer.done()


# One result per job. What it raises ends the computing thread.
Compute = Callable[[Sequence[Job]], Sequence[bytes | Exception]]


class Batcher:
    """`cost_limit`: the most that the costs of a batch may add up to, unless it is of a single job."""

    def __init__(self, compute: Compute, limits: Limits, cost_limit: int) -> None:
        self._compute = compute
        self._limits = limits
        self._cost_limit = cost_limit
        self._waiting: list[Job] = []
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "compute")
        self._job_seconds = 0.1  # about what one took lately
        self._seconds_of: dict[Hashable, float] = {}  # the same, of prompts, by their key
        self._busy_since: float | None = None
        self._running: Sequence[Job] = ()
        self._crowded_at = float("-inf")  # when somebody came while another was here
        self._ended = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def busy_seconds(self) -> float | None:
        """How long the batch under way has been computed; None: there is none."""
        return None if self._busy_since is None else time.monotonic() - self._busy_since

    def put(self, job: Job) -> None:
        if self._ended:
            raise LiveDown(ENDING, RESTART_SECONDS)
        if len(self._waiting) >= self._limits.queue:
            seconds = min(60, max(1, ceil(len(self._waiting) * self._job_seconds)))
            raise LiveFull(f"{len(self._waiting)} requests wait already (the setting queue)", seconds)
        if self._waiting or self._running:
            self._crowded_at = job.arrived
        self._waiting.append(job)
        self._news.set()

    def drop(self, job: Job) -> None:
        """Nobody waits for it: it is not computed, or if it is under way alone, stops between layers."""
        job.answer.cancel()
        with suppress(ValueError):
            self._waiting.remove(job)

    async def run(self) -> None:
        """Computes batches for as long as the worker lives; raises what ended the computing thread."""
        try:
            while True:
                await self._compute_batch(await self._next_batch())
        finally:
            self._ended = True
            for job in (*self._waiting, *self._running):
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
        self._learn_speed(batch, time.monotonic() - self._busy_since)
        self._running, self._busy_since = (), None
        for job, result in zip(batch, results, strict=True):
            job.settle(result)

    def _learn_speed(self, batch: Sequence[Job], seconds: float) -> None:
        per_job = seconds / len(batch)
        self._job_seconds += 0.2 * (per_job - self._job_seconds)
        if batch[0].cost:
            known = self._seconds_of.get(batch[0].key, per_job)
            self._seconds_of[batch[0].key] = known + 0.5 * (per_job - known)

    async def _next_batch(self) -> list[Job]:
        """The oldest job and those that may go with it; where many are about, it waits for such, but not long."""
        while True:
            self._news.clear()
            if not self._waiting:
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
            for job in batch:
                self._waiting.remove(job)
            if batch:
                return batch

    def _batch(self) -> tuple[list[Job], bool]:
        """What would leave now, and whether no more would fit."""
        batch: list[Job] = []
        longest = 0
        for job in self._waiting:
            if batch and job.key != batch[0].key:
                continue
            longest = max(longest, job.cost)
            most = self._most_together(job)
            if len(batch) >= most or (batch and longest * (len(batch) + 1) > self._cost_limit):
                return batch, True
            batch.append(job)
        return batch, bool(batch) and len(batch) >= self._most_together(batch[0])

    def _most_together(self, job: Job) -> int:
        """How many such jobs one batch may hold so that all of them are answered in time."""
        if not job.cost:
            return self._limits.batch_size
        seconds = self._seconds_of.get(job.key)
        fit = UNTRIED if seconds is None else int(PATIENCE * self._limits.seconds / max(seconds, 1e-6))
        return max(1, min(self._limits.batch_size, fit))
