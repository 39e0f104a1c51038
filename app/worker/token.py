"""The token that a worker shares with its server: a request without it is refused before its body is read.
GET /health stays open, for load balancers: it tells the model, the device and how busy the worker is."""

from hmac import compare_digest

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from lexiscope.app.worker.errors import error_response
from lexiscope.precompute.live.wire.protocol import BEARER

OPEN = "/health"
REFUSAL = (
    "this worker answers only those who send its token, as `Authorization: Bearer TOKEN`: give the server the same "
    "LEXISCOPE_WORKER_TOKEN that the worker has"
)


class TokenCheck:
    """Answer 401 to requests without the token; if there is no token, let all pass."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _path(scope) == OPEN or knows_token(Request(scope), self._token):
            await self.app(scope, receive, send)
            return
        refusal = await error_response(Request(scope), 401, REFUSAL, {"www-authenticate": BEARER.strip()})
        await refusal(scope, receive, send)


def knows_token(request: Request, token: str) -> bool:
    """Return True if the request carries the token, or none is needed. How long this takes does not tell how much of a
    wrong token is right."""
    sent = request.headers.get("authorization", "")
    return not token or compare_digest(sent.encode(), (BEARER + token).encode())


def _path(scope: Scope) -> str:
    """Return the path within this worker, which Ray Serve puts below a path of its own."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
