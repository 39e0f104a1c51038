"""The worker over HTTP: POST an ask to its path, or to its path and /events; GET /health and /metrics.
Waiting and computing are for worker.py, lane.py and computing.py, starting it is for commands/worker.py."""

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header
from fastapi.exceptions import RequestValidationError
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from lexiscope.app.live.disconnect import cancel_on_disconnect
from lexiscope.app.metrics import MEDIA_TYPE, Metrics
from lexiscope.app.middleware.failures import Failures
from lexiscope.app.middleware.limits import BodyLimit
from lexiscope.app.middleware.request_log import RequestLog
from lexiscope.app.settings import Settings
from lexiscope.app.worker.faults import add_fault_handlers, fault_page, make_fault
from lexiscope.app.worker.limits import Limits
from lexiscope.app.worker.progress import ProgressReports
from lexiscope.app.worker.token import TokenCheck, knows_token
from lexiscope.app.worker.worker import Waiter, Worker
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.wire.asks import ASKS
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.live.wire.protocol import EVENTS, OTHER_WEIGHTS, VISITOR_HEADER, WEIGHTS_HEADER

if TYPE_CHECKING:
    from lexiscope.precompute.live.engine import Engine

NO_STORE = {"cache-control": "no-store"}


def create_worker(
    engine: "Engine", model: str, weights_sha256: str, settings: Settings, on_failure: Callable[[], None] = lambda: None
) -> ASGIApp:
    """`on_failure` is called when the worker can compute no more and should end."""
    return worker_service(Worker(engine, model, weights_sha256, Limits.of(settings), on_failure), settings)


def worker_service(worker: Worker, settings: Settings) -> ASGIApp:
    metrics = Metrics()
    app = FastAPI(
        openapi_url=None, lifespan=lambda _: worker.running(), redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )  # fmt: skip
    app.state.worker = worker
    app.state.token = token = settings.worker_token.get_secret_value()
    app.include_router(router)
    add_fault_handlers(app)

    @app.get("/metrics", name="/metrics")
    async def show_metrics() -> Response:
        return Response(metrics.text(), headers=NO_STORE, media_type=MEDIA_TYPE)

    wrapped: ASGIApp = BodyLimit(TokenCheck(app, token), settings.body_limit, settings.body_seconds)
    wrapped = Failures(wrapped, fault_page)
    return RequestLog(wrapped, metrics, settings.access_log)


def the_worker(request: Request) -> Worker:
    worker = request.app.state.worker
    assert isinstance(worker, Worker)
    return worker


TheWorker = Annotated[Worker, Depends(the_worker)]


async def check_weights(worker: TheWorker, weights: Annotated[str | None, Header(alias=WEIGHTS_HEADER)] = None) -> None:
    """Whoever asks may say about which weights."""
    if weights not in (None, worker.weights_sha256):
        own = worker.weights_sha256[:12]
        raise HTTPException(OTHER_WEIGHTS, f"the worker has {worker.model} with the weights {own}, not {weights[:12]}")


async def visitor_of(
    request: Request, visitor: Annotated[str | None, Header(alias=VISITOR_HEADER, max_length=100)] = None
) -> str:
    """Who asks: by the name that the server gives them, or else whoever is at the other end of the connection."""
    return visitor or (request.client.host if request.client else "")


Visitor = Annotated[str, Depends(visitor_of)]

router = APIRouter()
asks = APIRouter(dependencies=[Depends(check_weights)])


async def read_ask(request: Request) -> Ask[Any]:
    """The body, as the ask that the path takes."""
    kind = KINDS[request.scope["route"].path.removesuffix(EVENTS)]
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]) from None


TheAsk = Annotated[Ask[Any], Depends(read_ask)]


async def respond(ask: TheAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    async with worker.queued(ask, visitor) as waiter:
        answer = await cancel_on_disconnect(request, worker.answer(waiter))
    return Response(answer, media_type="application/json")


async def queue(ask: TheAsk, worker: TheWorker, visitor: Visitor) -> AsyncIterator[Waiter]:
    """What is wrong before the first event is a plain answer: this dependency finds it, before the events begin."""
    async with worker.queued(ask, visitor, ProgressReports()) as waiter:
        yield waiter


async def respond_with_events(
    waiter: Annotated[Waiter, Depends(queue)], worker: TheWorker
) -> AsyncIterator[ServerSentEvent]:
    """`progress` any number of times, then `result` or `fault`."""
    assert isinstance(waiter.report, ProgressReports)
    async for progress in waiter.report.until_answered(waiter.job, worker.seconds_left(waiter)):
        yield ServerSentEvent(event="progress", data=progress)
    try:
        yield ServerSentEvent(event="result", raw_data=(await worker.answer(waiter)).decode())
    except LexiscopeError as error:
        yield ServerSentEvent(event="fault", data=make_fault(error))


@router.get("/health", name="/health")
async def health(worker: TheWorker, request: Request) -> Response:
    found = worker.health(knows_token(request, request.app.state.token))
    return Response(found.model_dump_json(), headers=NO_STORE, media_type="application/json")


KINDS = {kind.path: kind for kind in ASKS}
for path in KINDS:
    asks.add_api_route(path, respond, methods=["POST"], name=path, response_model=None)
    asks.add_api_route(
        path + EVENTS, respond_with_events, methods=["POST"], name=path + EVENTS, response_class=EventSourceResponse
    )
router.include_router(asks)
