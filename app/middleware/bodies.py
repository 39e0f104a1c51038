"""Bounds on request bodies: how many bytes are read, and within which time."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """A body of more than `limit` bytes answers 413, one that has not arrived within `seconds` 408.

    An answer that leaves before the body was read ends the connection.
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
