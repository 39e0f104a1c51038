"""Jobs: each is one computation that is waiting or under way, for one request and all visitors who wait for its answer.
Pace estimates how long jobs take on this machine."""

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from lexiscope.precompute.live.wire.fields import Ask

Report = Callable[[str, float], None]  # called by the computing thread with stage and share
LEARNED_SHARE = 0.3  # how much one batch of a second or more changes the estimate; a shorter one changes it less
MOST_TIMES = 4.0  # the estimate stays within this factor of the first: one odd batch must not have all requests refused


@dataclass(eq=False)
class Job:
    ask: Ask[Any]
    key: Hashable  # jobs with the same key may be computed together
    cost: float  # the cost in multiplications
    visitors: list[str]  # the visitors who wait for the answer; one who asked twice is here twice
    reports: list[Report] = field(default_factory=list)
    answer: "asyncio.Future[bytes]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    arrived: float = field(default_factory=time.monotonic)
    entered: float = 0.0  # when the job was queued, by the clock of turns.py

    def __post_init__(self) -> None:
        # Reading the error here keeps asyncio from logging one that comes when nobody waits any more.
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
        """Return True if anybody still waits for the answer; the computing thread reads this, too."""
        return not self.answer.done()

    @property
    def has_answer(self) -> bool:
        return self.answer.done() and not self.answer.cancelled() and self.answer.exception() is None

    def report(self, stage: str, share: float) -> None:
        """Report the progress of the computation. The computing thread calls this while visitors come and go."""
        for report in tuple(self.reports):
            report(stage, share)


class Pace:
    """Estimate how long a computation takes from its cost: first by the speed, in multiplications a second, that was
    measured when the model was loaded, then by the times of finished jobs."""

    def __init__(self, speed: float) -> None:
        self._first = self._seconds = 1 / speed  # how many seconds one multiplication takes

    def seconds(self, cost: float) -> float:
        return cost * self._seconds

    def seconds_at_best(self, cost: float) -> float:
        """Return how long a computation takes on a machine that does nothing else: whether a request is refused should
        not depend on what other visitors are computing now."""
        return cost * min(self._seconds, self._first)

    def learn(self, cost: float, seconds: float) -> None:
        """Note that a computation of this cost has taken so many seconds."""
        if cost:
            seen = min(max(seconds / cost, self._first / MOST_TIMES), self._first * MOST_TIMES)
            self._seconds += LEARNED_SHARE * min(1.0, seconds) * (seen - self._seconds)
