"""Set security headers on every answer, check addresses before any route sees them, and answer HEAD as GET."""

from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexiscope.app.asgi.middleware import ErrorPage

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
_CONTROL_CHARACTERS = bytes(range(0x20)) + b"\x7f"


class SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class AddressCheck:
    """Refuse an address that is longer than `limit` bytes or that is not valid text."""

    def __init__(self, app: ASGIApp, limit: int, error_page: ErrorPage) -> None:
        self.app = app
        self._limit = limit
        self._error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = address_error(scope, self._limit) if scope["type"] == "http" else None
        if error:
            status, detail = error
            response = await self._error_page(Request(scope), status, detail, {})
            await response(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def address_error(scope: Scope, limit: int) -> tuple[int, str] | None:
    """Return the status and the detail of an error in a request's address; None if there is none."""
    path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    query: bytes = scope["query_string"]
    length = len(path) + len(query)
    if length > limit:
        return 414, f"this address has {length} bytes: up to {limit} are read (the setting url_limit)"
    if b"%" not in path and b"%" not in query and path.isascii() and query.isascii():
        return None
    path, query = unquote_to_bytes(path), unquote_to_bytes(query)
    if b"\0" in query or path.translate(None, _CONTROL_CHARACTERS) != path:
        return 400, "this address holds control characters: no page has them in its address"
    try:
        path.decode(), query.decode()
    except UnicodeDecodeError:
        return 400, "this address is not UTF-8: percent-encode the UTF-8 bytes of each character"
    return None


class HeadAsGet:
    """Answer HEAD as GET without the body: FastAPI's GET routes would answer 405."""

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
                ended = True  # an app that streams a long body must stop, because nobody reads it
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, send_head)
