"""Answers where the app inside has none: to HEAD, after a fault of the program, and when the server is stopping."""

import asyncio
import logging
import traceback
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexiscope.app.middleware.security import ErrorPage

RESTART_SECONDS = 10  # after which a visitor of a server that is stopping may find another
LAST_ANSWERS_SECONDS = 1

logger = logging.getLogger("lexiscope")


class HeadAsGet:
    """HEAD is answered as GET without the body: FastAPI's GET routes would answer 405."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        ended = False

        async def send_head(message: Message) -> None:
            nonlocal ended
            if ended:
                return
            if message["type"] == "http.response.body":
                ended = True  # whoever streams a long body then hears that nobody reads on
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, send_head)


class Failures:
    """A fault of the program is a plain 500; a request that is cancelled because the server stops is a 503."""

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
        """uvicorn cancels requests and shuts down at once: the shutdown waits for their last answers."""

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
                retry = {"retry-after": str(RESTART_SECONDS)}
                page = await self._error_page(Request(scope), 503, "the server is stopping: ask again soon", retry)
                await page(scope, receive, send)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a library that panics, in Rust, raises no Exception
            log_failure("a page", error)
            logger.debug("%r failed", scope["path"])
            if not started:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, send)


def log_failure(what: str, error: BaseException) -> None:
    """Logs where it failed; the message and the values, which may be what a visitor typed, only at level debug."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    logger.error("%s failed: %s%s", what, type(error).__name__, where)
    logger.debug("%s failed", what, exc_info=error)
