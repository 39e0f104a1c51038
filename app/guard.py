"""The outermost layer around the finished app: whatever is inside, every answer leaves with the security headers.
Refuses addresses that cannot mean anything, answers HEAD, counts, and turns a failure into a plain 500."""

import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import Metrics

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; font-src 'self'; manifest-src 'self'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_CONTROLS = bytes(range(0x20)) + b"\x7f"

Refuse: TypeAlias = Callable[[Request, int, str], Awaitable[Response]]
logger = logging.getLogger("lexiscope")


class Guard:
    """`refuse` makes the page of an error from (request, status, detail)."""

    def __init__(self, app: ASGIApp, url_limit: int, metrics: Metrics, refuse: Refuse) -> None:
        self.app = app
        self._url_limit = url_limit
        self._metrics = metrics
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0
        has_body = scope["method"] != "HEAD"
        if not has_body:  # FastAPI would answer 405
            scope = {**scope, "method": "GET"}

        ended = False

        async def guarded(message: Message) -> None:
            nonlocal status, ended
            if ended:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
            elif not has_body:  # at its end already: whoever makes a long body hears that nobody reads on
                ended = True
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        try:
            if fault := url_fault(scope, self._url_limit):
                await (await self._refuse(Request(scope), *fault))(scope, receive, guarded)
            else:
                await self.app(scope, receive, guarded)
        except Exception as error:
            # Neither the path nor the message by default: they may quote what a visitor typed.
            logger.error("a page failed: %s", _place(error))
            logger.debug("%r failed", scope["path"], exc_info=error)
            if not status:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, guarded)
        finally:
            route = getattr(scope.get("route"), "name", "none")
            self._metrics.count(route, status, time.perf_counter() - started)


def _place(error: BaseException) -> str:
    """ValueError at app/views/token.py:12 in token_page."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return type(error).__name__ + where


def url_fault(scope: Scope, limit: int) -> tuple[int, str] | None:
    """Status and detail for an address that is too long, or that is no text."""
    path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    query: bytes = scope["query_string"]
    length = len(path) + len(query)
    if length > limit:
        return 414, f"this address has {length} bytes: up to {limit} are read (the setting url_limit)"
    if b"%" not in path and b"%" not in query and path.isascii() and query.isascii():
        return None
    path, query = unquote_to_bytes(path), unquote_to_bytes(query)
    if b"\0" in query or path.translate(None, _CONTROLS) != path:
        return 400, "this address holds control characters: no page has them in its address"
    try:
        path.decode(), query.decode()
    except UnicodeDecodeError:
        return 400, "this address is not UTF-8: percent-encode the UTF-8 bytes of each character"
    return None
