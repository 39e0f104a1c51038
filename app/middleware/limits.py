"""Limits on what visitors may send and hold: size and time of request bodies, and the number of streamed answers."""

import asyncio
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

RETRY_SECONDS = 5


class BodyLimit:
    """Answer 413 to a body of more than `limit` bytes, and 408 to one that has not arrived within `seconds`.

    An answer that is sent before the body was read ends the connection.
    """

    def __init__(self, app: ASGIApp, limit: int, seconds: float) -> None:
        self.app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _announces_body(scope):
            await self.app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._seconds
        n_bytes, complete, answered = 0, False, False

        async def receive_in_time() -> Message:
            nonlocal n_bytes, complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                if answered:
                    return {"type": "http.disconnect"}
                late = f"the body of this request did not arrive within {self._seconds:g} s (the setting body_seconds)"
                raise HTTPException(408, late) from None
            n_bytes += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if n_bytes > self._limit and not answered:
                detail = f"the body of this request has more than {self._limit} bytes (the setting body_limit)"
                raise HTTPException(413, detail)
            return message

        async def send_and_close(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                if not complete:
                    message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self.app(scope, receive_in_time, send_and_close)


def _announces_body(scope: Scope) -> bool:
    return any(
        (name == b"content-length" and value != b"0") or name == b"transfer-encoding"
        for name, value in scope["headers"]
    )


class StreamLimit:
    """Bound how many streamed answers run at once: a slow reader of one holds its memory for as long as it likes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count one stream; answer 503 if as many as are allowed run already."""
        if self._running >= self._limit:
            detail = f"{self._limit} long answers are on their way already (the setting streams): ask again soon"
            raise HTTPException(503, detail, {"retry-after": str(RETRY_SECONDS)})
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    def response(
        self, content: Iterable[bytes] | AsyncIterable[bytes], media_type: str, headers: Mapping[str, str]
    ) -> StreamingResponse:
        """Return a StreamingResponse that has a slot while it is sent."""
        return _LimitedResponse(self, content, media_type=media_type, headers=headers)


class _LimitedResponse(StreamingResponse):
    def __init__(
        self,
        streams: StreamLimit,
        content: Iterable[bytes] | AsyncIterable[bytes],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, 200, headers, media_type)
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.slot():
            await super().__call__(scope, receive, send)
