"""How far a run has come, from the computing thread to the event loop."""

import asyncio
from collections.abc import AsyncIterator

from lexiscope.app.worker.jobs import Job
from lexiscope.precompute.live.wire.protocol import Progress

PAUSE = 0.05  # seconds between two reports at least
HEARTBEAT = 5.0  # seconds without news after which the last is repeated: who has left is noticed by writing


class ProgressReports:
    """The latest report of the computing thread: what nobody had time to read is skipped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._latest = Progress(stage="waiting", share=0.0)

    def __call__(self, stage: str, share: float) -> None:
        """Called by the computing thread."""
        self._latest = Progress(stage=stage, share=min(max(share, 0.0), 1.0))
        self._loop.call_soon_threadsafe(self._news.set)

    async def until_answered(self, job: Job, seconds: float) -> AsyncIterator[Progress]:
        """Reports until the job has an answer, is cancelled, or has taken so many seconds."""
        job.answer.add_done_callback(lambda _: self._news.set())
        deadline = self._loop.time() + seconds
        while not job.answer.done() and (left := deadline - self._loop.time()) > 0:
            yield self._latest
            try:
                await asyncio.wait_for(self._news.wait(), min(HEARTBEAT, left))
            except TimeoutError:
                continue
            self._news.clear()
            await asyncio.wait({job.answer}, timeout=PAUSE)
