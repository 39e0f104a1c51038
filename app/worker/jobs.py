"""A job: one computation that is waiting or under way, for one ask, and for all who wait for its answer."""

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from lexiscope.precompute.live.wire.fields import Ask

Report = Callable[[str, float], None]  # stage and share; called by the computing thread


@dataclass(eq=False)
class Job:
    ask: Ask[Any]
    key: Hashable  # jobs of one key may be computed together
    cost: float  # in multiplications
    visitors: list[str]  # who waits for it; more than once, where a visitor asked more than once
    reports: list[Report] = field(default_factory=list)
    answer: "asyncio.Future[bytes]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    arrived: float = field(default_factory=time.monotonic)
    entered: float = 0.0  # by the clock of turns.py

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

    def report(self, stage: str, share: float) -> None:
        """Called by the computing thread, while visitors come and go."""
        for report in tuple(self.reports):
            report(stage, share)
