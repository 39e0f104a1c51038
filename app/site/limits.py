"""Limit how many answers of a kind are made at once."""

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

RETRY_SECONDS = 5


class RunningLimit:
    """Limit how many answers are being made at once; `full` says it to a visitor who gets none."""

    def __init__(self, limit: int, full: str) -> None:
        self._limit = limit
        self._full = full
        self._running = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count one answer while the context lasts; answer 503 if the limit is reached."""
        if self._running >= self._limit:
            raise HTTPException(503, f"{self._full}: ask again soon", {"retry-after": str(RETRY_SECONDS)})
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1


class StreamLimit(RunningLimit):
    """Limit how many streamed answers run at once, because a slow reader of an answer holds its memory for any length
    of time."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, f"{limit} long answers are on their way already (the setting streams)")

    def response(
        self, content: Iterable[bytes] | AsyncIterable[bytes], media_type: str, headers: Mapping[str, str]
    ) -> StreamingResponse:
        """Return a StreamingResponse that holds a slot while it is sent."""
        response = _LimitedResponse(content, 200, headers, media_type)
        response.streams = self
        return response


class _LimitedResponse(StreamingResponse):
    streams: StreamLimit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.streams.slot():
            await super().__call__(scope, receive, send)
