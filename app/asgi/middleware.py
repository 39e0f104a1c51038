"""Middleware of the site and of the worker: limit the bodies of requests, count requests, and answer where the app has
no answer of its own, after an error or while the server stops."""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexiscope.app.metrics import Metrics

STOPPING_RETRY_SECONDS = 10  # a stopping server tells its visitors to come back after so many seconds
LAST_ANSWERS_SECONDS = 1  # how long a process that ends stays to send its last answers
NO_ANSWER = 499  # the status that is counted if the visitor left before anything was sent

logger = logging.getLogger("lexiscope")
access_logger = logging.getLogger("lexiscope.access")

# A function that makes the page of an error from (request, status, detail, headers).
ErrorPage: TypeAlias = Callable[[Request, int, str, Mapping[str, str]], Awaitable[Response]]


class BodyLimit:
    """Answer 413 to a body of more than `limit` bytes, and 408 to one that has not arrived within `seconds`.

    If an answer is sent before the whole body was read, the connection is closed.
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


class RequestLog:
    """Count every request and, if logging is on, log its method, route and status, but never what a visitor typed."""

    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool) -> None:
        self.app = app
        self._metrics = metrics
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), NO_ANSWER

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "name", "none")
            self._metrics.count(route, status, time.perf_counter() - started)
            if self._access_log:
                access_logger.info("%s %s %d", scope["method"], route, status)


class CatchErrors:
    """Answer 500 in plain text after an unexpected error, and 503 to a request that is cancelled because the server
    stops."""

    def __init__(self, app: ASGIApp, error_page: ErrorPage) -> None:
        self.app = app
        self._error_page = error_page
        self._running: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, self._receive_lifespan(receive), send)
            return
        task = asyncio.current_task()
        assert task
        self._running.add(task)
        try:
            await self._answer(scope, receive, send)
        finally:
            self._running.discard(task)

    def _receive_lifespan(self, receive: Receive) -> Receive:
        """Delay the shutdown until the last answer is sent: uvicorn cancels requests and shuts down without waiting."""

        async def receive_after_answers() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and self._running:
                await asyncio.wait(self._running, timeout=LAST_ANSWERS_SECONDS)
            return message

        return receive_after_answers

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def note_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, note_start)
        except asyncio.CancelledError:
            if not started:
                retry = {"retry-after": str(STOPPING_RETRY_SECONDS)}
                page = await self._error_page(Request(scope), 503, "the server is stopping: ask again soon", retry)
                await page(scope, receive, send)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # libraries in Rust raise a BaseException when they panic
            log_error("a page", error)
            logger.debug("%r failed", scope["path"])
            if not started:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, send)


def log_error(what: str, error: BaseException) -> None:
    """Log where in the code an error happened. Its message and values may hold what a visitor typed, so they are logged
    only at level debug."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    logger.error("%s failed: %s%s", what, type(error).__name__, where)
    logger.debug("%s failed", what, exc_info=error)
