"""What live pages ask a worker: `await live.ask(model, SeedsAsk(...), request)` gives the answer or raises an error."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar, overload

from pydantic import ValidationError
from starlette.requests import Request

from app.library.library import Library
from app.settings import Settings
from app.workers.connections import Connections, WorkerAddress, parse_worker_urls
from app.workers.disconnect import cancel_on_disconnect
from app.workers.errors import LiveDown, LiveFull, LiveOff, TimedOut, error_of
from app.workers.keeper import Keeper
from app.workers.protocol import (
    ENDPOINTS,
    EVENTS,
    OTHER_WEIGHTS,
    VISITOR_HEADER,
    WEIGHTS_HEADER,
    Answer,
    Ask,
    Fault,
    Progress,
    weights_name,
)
from app.workers.supervisor import Supervisor
from app.workers.visitors import visitor_name
from precompute.errors import LexiscopeError
from precompute.live.wire import (
    PairsReadingAnswer,
    PairsReadingAsk,
    PromptAnswer,
    PromptAsk,
    ReadingAnswer,
    ReadingAsk,
    RelationAnswer,
    RelationAsk,
    SeedsAnswer,
    SeedsAsk,
    StatesAnswer,
    StatesAsk,
    StatesReadingAnswer,
    StatesReadingAsk,
    ThroughHeadsAnswer,
    ThroughHeadsAsk,
    Wire,
)

if TYPE_CHECKING:
    import httpx2

W = TypeVar("W", bound=Wire)
START_WAIT = 8.0  # seconds that a page waits for a worker to load its model, before it says so
MARGIN = 2.0  # seconds that a worker has to say itself that it took too long


class LiveClient:
    def __init__(self, settings: Settings, library: Library) -> None:
        self._settings = settings
        self._library = library
        self._addresses = parse_worker_urls(settings.worker_url)  # of workers that run elsewhere
        self.supervisor = Supervisor(settings)
        self._connections = Connections(settings.request_seconds + MARGIN)
        self._has_torch = bool(find_spec("torch"))

    def serves(self, model: str) -> bool:
        """Whether there are live pages of this model, and links to them."""
        if self._settings.worker == "off":
            return False
        if self._addresses:
            return model in self._addresses or "" in self._addresses
        return self._has_torch

    def why_off(self, model: str) -> str:
        if self._settings.worker == "off":
            return "live pages are off: start the server with LEXISCOPE_WORKER=auto to turn them on"
        if self._addresses:
            return f"no worker is named for {model}: add {model}=http://host:port to LEXISCOPE_WORKER_URL"
        return "live pages need torch, which is not installed: pip install 'lexiscope[precompute]'"

    @overload
    async def ask(self, model: str, ask: SeedsAsk, visitor: Request | None = None) -> SeedsAnswer: ...
    @overload
    async def ask(self, model: str, ask: RelationAsk, visitor: Request | None = None) -> RelationAnswer: ...
    @overload
    async def ask(self, model: str, ask: ThroughHeadsAsk, visitor: Request | None = None) -> ThroughHeadsAnswer: ...
    @overload
    async def ask(self, model: str, ask: PromptAsk, visitor: Request | None = None) -> PromptAnswer: ...
    @overload
    async def ask(self, model: str, ask: ReadingAsk, visitor: Request | None = None) -> ReadingAnswer: ...
    @overload
    async def ask(self, model: str, ask: PairsReadingAsk, visitor: Request | None = None) -> PairsReadingAnswer: ...
    @overload
    async def ask(self, model: str, ask: StatesAsk, visitor: Request | None = None) -> StatesAnswer: ...
    @overload
    async def ask(self, model: str, ask: StatesReadingAsk, visitor: Request | None = None) -> StatesReadingAnswer: ...
    async def ask(self, model: str, ask: Ask, visitor: Request | None = None) -> Answer:
        """Given the visitor's request, the work is cancelled when the visitor leaves (VisitorGone)."""
        work = self._ask(model, ask, visitor)
        return await (cancel_on_disconnect(visitor, work) if visitor else work)

    async def stream(
        self, model: str, ask: PromptAsk | PairsReadingAsk, visitor: Request | None = None
    ) -> AsyncGenerator[Progress | Answer]:
        """How far it has come, again and again, and the answer at last; closing it cancels the work."""
        path, answer_type = ENDPOINTS[type(ask)]
        async with self._post(model, path + EVENTS, ask, visitor) as response:
            async for event, data in _events(response):
                if event == "fault":
                    raise error_of(_parse(Fault, data))
                if event == "result":
                    yield _parse(answer_type, data)
                    return
                yield _parse(Progress, data)
        raise LiveDown(f"the worker of {model} stopped before it had an answer")

    def worker_states(self) -> dict[str, str]:
        """How the workers are that this server runs, by model."""
        return {model: keeper.state.word for model, keeper in self.supervisor.running().items()}

    def prepare(self, model: str) -> None:
        """Starts the model's worker, if this server runs it, without waiting: it will be asked soon."""
        if self.serves(model) and not self._addresses:
            self.supervisor.keeper(model)

    def start(self) -> None:
        """Starts the workers that are to run from the beginning."""
        if self._settings.worker == "start" and not self._addresses:
            for model in self._library.names()[: self._settings.workers]:
                if self.serves(model):
                    self.supervisor.keeper(model)

    async def close(self) -> None:
        """Returns when all workers that this server started have ended."""
        await self._connections.close()
        await asyncio.to_thread(self.supervisor.close)

    async def _ask(self, model: str, ask: Ask, visitor: Request | None) -> Answer:
        path, answer_type = ENDPOINTS[type(ask)]
        async with self._post(model, path, ask, visitor) as response:
            return _parse(answer_type, await response.aread())

    @asynccontextmanager
    async def _post(self, model: str, path: str, ask: Ask, visitor: Request | None) -> AsyncIterator["httpx2.Response"]:
        """The worker's answer, as soon as it begins; every way to have none becomes an error of ours."""
        manifest = self._library.index(model).manifest
        weights = weights_name(manifest.weights_sha256, manifest.minus.weights_sha256 if manifest.minus else None)
        async with self._worker(model) as (address, keeper):
            client = await self._connections.client(address)
            import httpx2

            headers = {WEIGHTS_HEADER: weights, "content-type": "application/json"}
            if visitor:
                headers[VISITOR_HEADER] = visitor_name(visitor)
            try:
                async with client.stream("POST", path, content=ask.model_dump_json(), headers=headers) as response:
                    if response.status_code != 200:
                        if response.status_code == OTHER_WEIGHTS and keeper:
                            keeper.restart(address)
                        raise _refusal(response, await response.aread())
                    yield response
            except (httpx2.ReadTimeout, httpx2.WriteTimeout):
                limit = self._settings.request_seconds
                raise TimedOut(
                    f"the worker of {model} gave no answer within {limit:g} seconds (the setting request_seconds)", 10
                ) from None
            except httpx2.PoolTimeout:
                raise LiveFull(f"too many wait for the worker of {model}") from None
            except httpx2.TransportError:
                raise LiveDown(
                    f"the worker of {model} cannot be reached, or stopped before it had an answer. Stored pages work; "
                    "this one will when the worker is back",
                    2 if keeper else 10,
                ) from None

    @asynccontextmanager
    async def _worker(self, model: str) -> AsyncIterator[tuple[WorkerAddress, Keeper | None]]:
        """Where the worker is, and who keeps it if this server runs it."""
        if not self.serves(model):
            raise LiveOff(self.why_off(model))
        if self._addresses:
            yield self._addresses.get(model) or self._addresses[""], None
            return
        keeper = self.supervisor.keeper(model)
        keeper.users += 1
        try:
            yield await _wait_until_ready(keeper), keeper
        finally:
            keeper.users -= 1


async def _wait_until_ready(keeper: Keeper) -> WorkerAddress:
    """Waits a little while the worker loads its model."""
    patience = time.monotonic() + START_WAIT
    while (state := keeper.state).address is None:
        now = time.monotonic()
        if now >= patience or state.failed or state.retry_at > patience:
            raise LiveDown(state.reason, max(2, round(state.retry_at - now) + 1))
        await asyncio.sleep(0.02)
    return state.address


def _refusal(response: "httpx2.Response", body: bytes) -> LexiscopeError:
    retry_after = response.headers.get("retry-after", "")
    return error_of(_parse(Fault, body), int(retry_after) if retry_after.isdecimal() else None)


def _parse(shape: type[W], body: bytes | str) -> W:
    try:
        return shape.model_validate_json(body)
    except ValidationError:
        raise LiveDown("what answers in the worker's place is no worker of this version", 10) from None


async def _events(response: "httpx2.Response") -> AsyncIterator[tuple[str, str]]:
    """Server-sent events as the worker writes them: one line `event`, one line `data`."""
    event = ""
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            event = value
        elif field == "data":
            yield event, value
