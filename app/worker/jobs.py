"""A job: one computation that is waiting or under way, for one ask and for all visitors who wait for its answer; and
how long jobs take on this machine."""

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from lexiscope.precompute.live.wire.fields import Ask

Report = Callable[[str, float], None]  # stage and share; the computing thread calls it
LEARNED_SHARE = 0.3  # by how much a batch of a second or more changes the estimate; a shorter one changes it less
MOST_TIMES = 4.0  # largest factor between the first estimate and a later one: one odd batch must not have all refused


@dataclass(eq=False)
class Job:
    ask: Ask[Any]
    key: Hashable  # jobs of one key may be computed together
    cost: float  # cost in multiplications
    visitors: list[str]  # who waits for it; a visitor who asked twice is here twice
    reports: list[Report] = field(default_factory=list)
    answer: "asyncio.Future[bytes]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    arrived: float = field(default_factory=time.monotonic)
    entered: float = 0.0  # when it was queued, by the clock of turns.py

    def __post_init__(self) -> None:
        # The log need not name an error that came when nobody waited any more.
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
        """Whether anybody still waits for the answer; the computing thread reads this, too."""
        return not self.answer.done()

    def report(self, stage: str, share: float) -> None:
        """Say how far the computation is. The computing thread calls this while visitors come and go."""
        for report in tuple(self.reports):
            report(stage, share)


class Pace:
    """How long a cost takes: first by the speed, in multiplications a second, that was measured when the model was
    loaded, then by what jobs took."""

    def __init__(self, speed: float) -> None:
        self._first = self._seconds = 1 / speed  # seconds of one multiplication

    def seconds(self, cost: float) -> float:
        return cost * self._seconds

    def seconds_at_best(self, cost: float) -> float:
        """Return how long it takes on a machine that does nothing else: whether an ask is refused should not depend on
        what others ask just now."""
        return cost * min(self._seconds, self._first)

    def learn(self, cost: float, seconds: float) -> None:
        """Note that a cost has taken so many seconds."""
        if cost:
            seen = min(max(seconds / cost, self._first / MOST_TIMES), self._first * MOST_TIMES)
            self._seconds += LEARNED_SHARE * min(1.0, seconds) * (seen - self._seconds)
