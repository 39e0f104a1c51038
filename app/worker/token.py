"""The token that a worker shares with its server: whoever does not send it is refused, unread.
GET /health stays open, for load balancers: it tells the model, the device and how busy the worker is."""

from hmac import compare_digest

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from lexiscope.app.worker.faults import fault_page
from lexiscope.precompute.live.wire.protocol import BEARER

OPEN = "/health"
REFUSAL = (
    "this worker answers only those who send its token, as `Authorization: Bearer TOKEN`: give the server the same "
    "LEXISCOPE_WORKER_TOKEN that the worker has"
)


class TokenCheck:
    """Without a token everybody is answered."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _path(scope) == OPEN or knows_token(Request(scope), self._token):
            await self.app(scope, receive, send)
            return
        page = await fault_page(Request(scope), 401, REFUSAL, {"www-authenticate": BEARER.strip()})
        await page(scope, receive, send)


def knows_token(request: Request, token: str) -> bool:
    """Whether the request carries the token, or none is needed; how long that takes does not tell how much is right."""
    sent = request.headers.get("authorization", "")
    return not token or compare_digest(sent.encode(), (BEARER + token).encode())


def _path(scope: Scope) -> str:
    """Within this worker, which Ray Serve puts below a path of its own."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
