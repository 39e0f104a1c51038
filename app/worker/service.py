"""The worker over HTTP: POST to the paths of live/paths.py with the asks of wire.py, GET /health and /metrics.
Waiting and computing are for batching.py and computing.py, starting it is for commands/worker.py."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from app.metrics import MEDIA_TYPE, Metrics
from app.wire import Health, PairsReadingAsk, PromptAsk
from app.worker.batching import Batcher, Job
from app.worker.computing import Computing, key_of, log_failure
from app.worker.events import EventStream, Reports, event
from app.worker.faults import fault_answer, fault_of, no_route, refusal
from app.worker.limits import BODY_BYTES, Limits
from app.workers.errors import CONFLICT, LiveFailed, TimedOut, TooLarge
from app.workers.paths import PATHS, WEIGHTS, Ask
from app.workers.visitor import while_there
from precompute.errors import BadRequest, LexiscopeError

if TYPE_CHECKING:
    from precompute.live.engine import Engine

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
LONG_TEXT = 2000  # characters of a prompt from which on its tokens are counted beside the event loop


def create_worker(engine: "Engine", model: str, weights_sha256: str, limits: Limits) -> ASGIApp:
    return _Service(engine, model, weights_sha256, limits).app


class _Service:
    def __init__(self, engine: "Engine", model: str, weights_sha256: str, limits: Limits) -> None:
        self._engine = engine
        self._model = model
        self._weights = weights_sha256
        self._limits = limits
        self._metrics = Metrics()
        self._batcher: Batcher | None = None
        routes = [
            Route(path, self._guarded(self._asked(shape)), methods=["POST"]) for shape, (path, _) in PATHS.items()
        ]
        routes += [Route("/health", self._health), Route("/metrics", self._show_metrics)]
        self.app = Starlette(routes=routes, lifespan=self._life, exception_handlers={HTTPException: no_route})

    @property
    def batcher(self) -> Batcher:
        assert self._batcher, "the app runs without its lifespan"
        return self._batcher

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        computing = Computing(self._engine)
        self._batcher = Batcher(computing, self._limits, computing.token_limit)
        task = asyncio.create_task(self._batcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """Whatever goes wrong becomes a Fault; all is counted."""

        async def respond(request: Request) -> Response:
            started, status = time.perf_counter(), 499
            try:
                try:
                    response = await endpoint(request)
                except LexiscopeError as error:
                    response = refusal(error)
                except Exception as error:
                    log_failure(request.url.path, error)
                    response = refusal(LiveFailed("this request failed, which is a fault of the program"))
                status = response.status_code
                return response
            finally:
                self._metrics.count(request.url.path, status, time.perf_counter() - started)

        return respond

    def _asked(self, shape: type[Ask]) -> Endpoint:
        async def answer(request: Request) -> Response:
            if (wanted := request.headers.get(WEIGHTS, self._weights)) != self._weights:
                said = f"the worker has {self._model} with the weights {self._weights[:12]}, not {wanted[:12]}"
                return fault_answer(CONFLICT, said)
            ask = _parsed(shape, await _body(request))
            job = await self._job(ask)
            if isinstance(ask, PromptAsk | PairsReadingAsk) and request.query_params.get("stream") == "1":
                reports = job.report = Reports()
                self.batcher.put(job)
                return EventStream(self._events(job, reports), lambda: self.batcher.drop(job))
            self.batcher.put(job)
            try:
                return Response(await while_there(request, self._answer(job)), media_type="application/json")
            finally:
                self.batcher.drop(job)

        return answer

    async def _job(self, ask: Ask) -> Job:
        """Counts before anything is computed."""
        self._limits.check_lists(ask)
        if not isinstance(ask, PromptAsk):
            return Job(ask, key_of(ask, 0))
        count = self._engine.token_count
        if len(ask.text) > LONG_TEXT:
            self._limits.check_text(ask.text, self._engine.longest_token)
            tokens = await asyncio.to_thread(count, ask.text)
        else:
            tokens = count(ask.text)
        self._limits.check_tokens(tokens, self._engine.n_positions)
        if "attention" in ask.panels:
            self._limits.check_attention(tokens, self._engine.attention_heads(tokens))
        return Job(ask, key_of(ask, tokens), tokens)

    async def _answer(self, job: Job) -> bytes:
        try:
            async with asyncio.timeout_at(self._deadline(job)):
                return await job.answer
        except TimeoutError:
            raise TimedOut(
                f"this took longer than {self._limits.seconds:g} seconds (the setting request_seconds)", 10
            ) from None

    async def _events(self, job: Job, reports: Reports) -> AsyncIterator[bytes]:
        limit = asyncio.get_running_loop().call_at(self._deadline(job), self._expire, job)
        try:
            async for each in reports.events(job):
                yield each
            try:
                yield event("result", await self._answer(job))
            except LexiscopeError as error:
                yield event("fault", fault_of(error).model_dump_json().encode())
        finally:
            limit.cancel()

    def _expire(self, job: Job) -> None:
        if not job.answer.done():
            said = f"this took longer than {self._limits.seconds:g} seconds (the setting request_seconds)"
            job.answer.set_exception(TimedOut(said))

    def _deadline(self, job: Job) -> float:
        """By the loop's clock."""
        return asyncio.get_running_loop().time() + job.arrived + self._limits.seconds - time.monotonic()

    async def _health(self, _: Request) -> Response:
        busy = self.batcher.busy_seconds
        health = Health(
            model=self._model,
            weights_sha256=self._weights,
            device=str(self._engine.device),
            queue=self.batcher.waiting,
            busy=busy is not None,
            busy_seconds=busy or 0.0,
        )
        return Response(health.model_dump_json(), headers={"cache-control": "no-store"}, media_type="application/json")

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), headers={"cache-control": "no-store"}, media_type=MEDIA_TYPE)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES:
            raise TooLarge(f"this request has more than {BODY_BYTES} bytes")
    return bytes(body)


def _parsed(shape: type[Ask], body: bytes) -> Ask:
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)[:5]
        said = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'the request'}: {fault['msg']}" for fault in faults)
        raise BadRequest(said) from None
