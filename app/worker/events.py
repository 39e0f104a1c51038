"""A run that tells how far it has come: server-sent events, `progress` any number of times, then `result` or `fault`.
Errors before the first event are plain answers; they are for service.py."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.wire import Progress
from app.worker.batching import Job

PAUSE = 0.05  # seconds between two events at least
HEARTBEAT = 5.0  # seconds without news after which the last is repeated: who has left is noticed by writing


class Reports:
    """The latest of what the computing thread says, for the event loop: what nobody had time to read is skipped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._latest = Progress(stage="waiting", share=0.0)

    def __call__(self, stage: str, share: float) -> None:
        self._latest = Progress(stage=stage, share=min(max(share, 0.0), 1.0))
        self._loop.call_soon_threadsafe(self._news.set)

    async def events(self, job: Job) -> AsyncIterator[bytes]:
        """Until the job has an answer, or is cancelled."""
        job.answer.add_done_callback(lambda _: self._news.set())
        while not job.answer.done():
            yield event("progress", self._latest.model_dump_json().encode())
            try:
                await asyncio.wait_for(self._news.wait(), HEARTBEAT)
            except TimeoutError:
                continue
            self._news.clear()
            await asyncio.wait({job.answer}, timeout=PAUSE)


class EventStream(StreamingResponse):
    """`ended` is called when the stream is over, however it ends: a generator that never began has no `finally`."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
