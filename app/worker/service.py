"""The worker as an HTTP service: POST a request to its path, or to its path and /events; GET /health and /metrics.
worker.py, lane.py and computing.py wait and compute; commands/worker.py starts the service."""

import asyncio
from collections.abc import AsyncIterator, Callable
from hmac import compare_digest
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header
from fastapi.exceptions import RequestValidationError
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lexiscope.app.asgi.disconnect import cancel_on_disconnect
from lexiscope.app.asgi.middleware import BodyLimit, CatchErrors, RequestLog
from lexiscope.app.metrics import MEDIA_TYPE, Metrics
from lexiscope.app.settings import Settings
from lexiscope.app.worker.errors import add_error_handlers, error_answer, error_response
from lexiscope.app.worker.jobs import Job
from lexiscope.app.worker.worker import Waiter, Worker
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.wire.asks import ASKS
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.live.wire.protocol import (
    BEARER,
    EVENTS,
    OTHER_WEIGHTS,
    VISITOR_HEADER,
    WEIGHTS_HEADER,
    Progress,
)

if TYPE_CHECKING:
    from lexiscope.precompute.live.engine import Engine

NO_STORE = {"cache-control": "no-store"}
REPORT_SECONDS = 0.05  # shortest time between two reports
# after so long without news the last report is sent again, because sending shows which visitors have left
HEARTBEAT_SECONDS = 5.0
OPEN = "/health"  # open to load balancers, without the token: the model, the device, and how busy the worker is
REFUSAL = (
    "this worker answers only those who send its token, as `Authorization: Bearer TOKEN`: give the server the same "
    "LEXISCOPE_WORKER_TOKEN that the worker has"
)


def create_worker(
    engine: "Engine", model: str, weights_sha256: str, settings: Settings, on_error: Callable[[], None] = lambda: None
) -> ASGIApp:
    """Return the app of a worker for this model. `on_error` is called when the worker can compute no more and should
    end."""
    return worker_service(Worker(engine, model, weights_sha256, settings, on_error), settings)


def worker_service(worker: Worker, settings: Settings) -> ASGIApp:
    metrics = Metrics()
    app = FastAPI(
        openapi_url=None, lifespan=lambda _: worker.running(), redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )  # fmt: skip
    app.state.worker = worker
    app.state.token = token = settings.worker_token.get_secret_value()
    app.include_router(router)
    add_error_handlers(app)

    @app.get("/metrics", name="/metrics")
    async def show_metrics() -> Response:
        return Response(metrics.text(), headers=NO_STORE, media_type=MEDIA_TYPE)

    wrapped: ASGIApp = BodyLimit(TokenCheck(app, token), settings.body_limit, settings.body_seconds)
    wrapped = CatchErrors(wrapped, error_response)
    return RequestLog(wrapped, metrics, settings.access_log)


class TokenCheck:
    """Answer 401 to requests without the token that a worker shares with its server, before their bodies are read. If
    no token is set, let all requests pass."""

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
    """Return True if the request carries the token, or none is needed. The comparison takes the same time however much
    of a wrong token is right."""
    sent = request.headers.get("authorization", "")
    return not token or compare_digest(sent.encode(), (BEARER + token).encode())


def _path(scope: Scope) -> str:
    """Return the path within this worker; Ray Serve puts it after a path of its own."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def the_worker(request: Request) -> Worker:
    worker = request.app.state.worker
    assert isinstance(worker, Worker)
    return worker


TheWorker = Annotated[Worker, Depends(the_worker)]


async def check_weights(worker: TheWorker, weights: Annotated[str | None, Header(alias=WEIGHTS_HEADER)] = None) -> None:
    """Refuse a request that names other weights than the worker has; a request need not name any."""
    if weights not in (None, worker.weights_sha256):
        own = worker.weights_sha256[:12]
        raise HTTPException(OTHER_WEIGHTS, f"the worker has {worker.model} with the weights {own}, not {weights[:12]}")


async def visitor_of(
    request: Request, visitor: Annotated[str | None, Header(alias=VISITOR_HEADER, max_length=100)] = None
) -> str:
    """Return the visitor's name from the server's header, or else the address at the other end of the connection."""
    return visitor or (request.client.host if request.client else "")


Visitor = Annotated[str, Depends(visitor_of)]


class ProgressReports:
    """The latest report of the computing thread; a report that a newer one replaces before it is sent is skipped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._latest = Progress(stage="waiting", share=0.0)

    def __call__(self, stage: str, share: float) -> None:
        """Store a report from the computing thread as the latest one."""
        self._latest = Progress(stage=stage, share=min(max(share, 0.0), 1.0))
        self._loop.call_soon_threadsafe(self._news.set)

    async def until_answered(self, job: Job, seconds: float) -> AsyncIterator[Progress]:
        """Yield reports until the job has an answer, is cancelled, or has taken so many seconds."""
        job.answer.add_done_callback(lambda _: self._news.set())
        deadline = self._loop.time() + seconds
        while not job.answer.done() and (left := deadline - self._loop.time()) > 0:
            yield self._latest
            try:
                await asyncio.wait_for(self._news.wait(), min(HEARTBEAT_SECONDS, left))
            except TimeoutError:
                continue
            self._news.clear()
            await asyncio.wait({job.answer}, timeout=REPORT_SECONDS)


router = APIRouter()
asks = APIRouter(dependencies=[Depends(check_weights)])


async def read_ask(request: Request) -> Ask[Any]:
    """Parse the body as the kind of request that the path names."""
    kind = ASK_AT[request.scope["route"].path.removesuffix(EVENTS)]
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from None


TheAsk = Annotated[Ask[Any], Depends(read_ask)]


async def respond(ask: TheAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    async with worker.queued(ask, visitor) as waiter:
        answer = await cancel_on_disconnect(request, worker.answer(waiter))
    return Response(answer, media_type="application/json")


async def queue(ask: TheAsk, worker: TheWorker, visitor: Visitor) -> AsyncIterator[Waiter]:
    """Queue the request before the events begin, so that an error of the request itself is a plain answer."""
    async with worker.queued(ask, visitor, ProgressReports()) as waiter:
        yield waiter


async def respond_with_events(
    waiter: Annotated[Waiter, Depends(queue)], worker: TheWorker
) -> AsyncIterator[ServerSentEvent]:
    """Send `progress` any number of times, then `result` or `fault`."""
    assert isinstance(waiter.report, ProgressReports)
    async for progress in waiter.report.until_answered(waiter.job, worker.seconds_left(waiter)):
        yield ServerSentEvent(event="progress", data=progress)
    try:
        yield ServerSentEvent(event="result", raw_data=(await worker.answer(waiter)).decode())
    except LexiscopeError as error:
        yield ServerSentEvent(event="fault", data=error_answer(error))


@router.get("/health", name="/health")
async def health(worker: TheWorker, request: Request) -> Response:
    found = worker.health(knows_token(request, request.app.state.token))
    return Response(found.model_dump_json(), headers=NO_STORE, media_type="application/json")


ASK_AT = {kind.path: kind for kind in ASKS}
for path in ASK_AT:
    asks.add_api_route(path, respond, methods=["POST"], name=path, response_model=None)
    asks.add_api_route(
        path + EVENTS, respond_with_events, methods=["POST"], name=path + EVENTS, response_class=EventSourceResponse
    )
router.include_router(asks)
