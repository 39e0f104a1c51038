"""The worker over HTTP: POST an ask to its path, or to its path and /events; GET /health and /metrics.
Waiting and computing are for worker.py, lane.py and computing.py, starting it is for commands/worker.py."""

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, FastAPI, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from app.metrics import MEDIA_TYPE, Metrics
from app.middleware.bodies import BodyLimit
from app.middleware.failures import Failures
from app.middleware.request_log import RequestLog
from app.settings import Settings
from app.worker.faults import add_fault_handlers, fault_page, make_fault
from app.worker.limits import Limits
from app.worker.progress import ProgressReports
from app.worker.token import TokenCheck, knows_token
from app.worker.worker import Waiter, Worker
from app.workers.disconnect import cancel_on_disconnect
from app.workers.protocol import OTHER_WEIGHTS, VISITOR_HEADER, WEIGHTS_HEADER, Ask
from precompute.errors import LexiscopeError
from precompute.live.wire.prompt import PromptAsk
from precompute.live.wire.readings import PairsReadingAsk, ReadingAsk
from precompute.live.wire.states import StatesAsk, StatesReadingAsk
from precompute.live.wire.words import RelationAsk, SeedsAsk, ThroughHeadsAsk

if TYPE_CHECKING:
    from precompute.live.engine import Engine

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


@asks.post("/seeds", name="/seeds")
async def seeds(ask: SeedsAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/relation", name="/relation")
async def relation(ask: RelationAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/heads", name="/heads")
async def heads(ask: ThroughHeadsAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/prompt", name="/prompt")
async def prompt(ask: PromptAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/reading", name="/reading")
async def reading(ask: ReadingAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/pairs-reading", name="/pairs-reading")
async def pairs_reading(ask: PairsReadingAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/states", name="/states")
async def states(ask: StatesAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


@asks.post("/states-reading", name="/states-reading")
async def states_reading(ask: StatesReadingAsk, worker: TheWorker, visitor: Visitor, request: Request) -> Response:
    return await respond(ask, worker, visitor, request)


async def respond(ask: Ask, worker: Worker, visitor: str, request: Request) -> Response:
    async with worker.queued(ask, visitor) as waiter:
        answer = await cancel_on_disconnect(request, worker.answer(waiter))
    return Response(answer, media_type="application/json")


# What is wrong before the first event is a plain answer: a dependency finds it, before the events begin.


async def prompt_waiter(ask: PromptAsk, worker: TheWorker, visitor: Visitor) -> AsyncIterator[Waiter]:
    async with worker.queued(ask, visitor, ProgressReports()) as waiter:
        yield waiter


async def pairs_waiter(ask: PairsReadingAsk, worker: TheWorker, visitor: Visitor) -> AsyncIterator[Waiter]:
    async with worker.queued(ask, visitor, ProgressReports()) as waiter:
        yield waiter


@asks.post("/prompt/events", name="/prompt/events", response_class=EventSourceResponse)
async def prompt_events(
    waiter: Annotated[Waiter, Depends(prompt_waiter)], worker: TheWorker
) -> AsyncIterator[ServerSentEvent]:
    async for event in events(waiter, worker):
        yield event


@asks.post("/pairs-reading/events", name="/pairs-reading/events", response_class=EventSourceResponse)
async def pairs_events(
    waiter: Annotated[Waiter, Depends(pairs_waiter)], worker: TheWorker
) -> AsyncIterator[ServerSentEvent]:
    async for event in events(waiter, worker):
        yield event


async def events(waiter: Waiter, worker: Worker) -> AsyncIterator[ServerSentEvent]:
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


router.include_router(asks)
