"""What live pages ask a worker: `await live.ask(model, SeedsAsk(...), request)` gives the answer or raises an error.
Running workers is for supervisor.py, what they compute is for precompute/live."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar, overload

from pydantic import ValidationError
from starlette.requests import Request

from app.library.library import Library
from app.settings import Settings
from app.wire import (
    Fault,
    PairsReadingAnswer,
    PairsReadingAsk,
    Progress,
    PromptAnswer,
    PromptAsk,
    ReadingAnswer,
    ReadingAsk,
    RelationAnswer,
    RelationAsk,
    SeedsAnswer,
    SeedsAsk,
    Wire,
)
from app.workers.connections import Connections, Place, places
from app.workers.errors import CONFLICT, LiveDown, LiveFull, LiveOff, TimedOut, error_of
from app.workers.keeper import Keeper
from app.workers.paths import PATHS, WEIGHTS, Answer, Ask
from app.workers.supervisor import Supervisor
from app.workers.visitor import while_there
from precompute.errors import LexiscopeError

if TYPE_CHECKING:
    import httpx2

A = TypeVar("A", bound=Wire)
START_WAIT = 8.0  # seconds that a page waits for a worker to load its model, before it says so
MARGIN = 2.0  # seconds that a worker has to say itself that it took too long


class Live:
    def __init__(self, settings: Settings, library: Library) -> None:
        self._settings = settings
        self._library = library
        self._places = places(settings.worker_url)
        self._supervisor = Supervisor(settings)
        self._connections = Connections(settings.request_seconds + MARGIN)
        self._missing = None if self._places or find_spec("torch") else "torch"

    def serves(self, model: str) -> bool:
        """Whether there are live pages of this model, and links to them."""
        if self._settings.worker == "off":
            return False
        return bool(model in self._places or "" in self._places) if self._places else not self._missing

    @overload
    async def ask(self, model: str, ask: SeedsAsk, visitor: Request | None = None) -> SeedsAnswer: ...
    @overload
    async def ask(self, model: str, ask: RelationAsk, visitor: Request | None = None) -> RelationAnswer: ...
    @overload
    async def ask(self, model: str, ask: PromptAsk, visitor: Request | None = None) -> PromptAnswer: ...
    @overload
    async def ask(self, model: str, ask: ReadingAsk, visitor: Request | None = None) -> ReadingAnswer: ...
    @overload
    async def ask(self, model: str, ask: PairsReadingAsk, visitor: Request | None = None) -> PairsReadingAnswer: ...
    async def ask(self, model: str, ask: Ask, visitor: Request | None = None) -> Answer:
        """Given the visitor's request, the work is cancelled when the visitor leaves (VisitorGone)."""
        work = self._ask(model, ask)
        return await (while_there(visitor, work) if visitor else work)

    async def stream(self, model: str, ask: PromptAsk | PairsReadingAsk) -> AsyncIterator[Progress | Answer]:
        """How far it has come, again and again, and the answer at last; closing it cancels the work."""
        async with self._asked(model, ask, "?stream=1") as response:
            async for event, data in _events(response):
                if event == "fault":
                    raise error_of(_fault(data))
                if event == "result":
                    yield _answer(PATHS[type(ask)][1], data)
                    return
                yield Progress.model_validate_json(data)
        raise LiveDown(f"the worker of {model} stopped before it had an answer")

    def start(self) -> None:
        """Workers that are to run from the beginning."""
        if self._settings.worker == "start" and not self._places:
            for model in self._library.names()[: self._settings.workers]:
                if self.serves(model):
                    self._supervisor.keeper(model)

    async def close(self) -> None:
        """Returns when all workers that this server started have ended."""
        await self._connections.close()
        await asyncio.to_thread(self._supervisor.close)

    async def _ask(self, model: str, ask: Ask) -> Answer:
        async with self._asked(model, ask) as response:
            return _answer(PATHS[type(ask)][1], await response.aread())

    @asynccontextmanager
    async def _asked(self, model: str, ask: Ask, query: str = "") -> AsyncIterator["httpx2.Response"]:
        """The worker's answer, as soon as it begins; every way to have none becomes an error of ours."""
        wanted = self._library.index(model).manifest.weights_sha256
        async with self._worker(model) as (place, keeper):
            client = await self._connections.to(place)
            import httpx2

            url, headers = PATHS[type(ask)][0] + query, {WEIGHTS: wanted, "content-type": "application/json"}
            try:
                async with client.stream("POST", url, content=ask.model_dump_json(), headers=headers) as response:
                    if response.status_code != 200:
                        if response.status_code == CONFLICT and keeper:
                            keeper.renew(place)
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
    async def _worker(self, model: str) -> AsyncIterator[tuple[Place, Keeper | None]]:
        if not self.serves(model):
            raise LiveOff(self.why_off(model))
        if self._places:
            yield Place(self._places.get(model) or self._places[""]), None
            return
        keeper = self._supervisor.keeper(model)
        keeper.users += 1
        try:
            yield await _ready(keeper), keeper
        finally:
            keeper.users -= 1

    def why_off(self, model: str) -> str:
        if self._settings.worker == "off":
            return "live pages are off: start the server with LEXISCOPE_WORKER=auto to turn them on"
        if self._places:
            return f"no worker is named for {model}: add {model}=http://host:port to LEXISCOPE_WORKER_URL"
        return "live pages need torch, which is not installed: pip install 'lexiscope[precompute]'"


async def _ready(keeper: Keeper) -> Place:
    """Where the worker is; waits a little while it loads its model."""
    patience = time.monotonic() + START_WAIT
    while (state := keeper.state).place is None:
        now = time.monotonic()
        if now >= patience or state.failed or state.retry_at > patience:
            raise LiveDown(state.said, max(2, round(state.retry_at - now) + 1))
        await asyncio.sleep(0.02)
    return state.place


def _refusal(response: "httpx2.Response", body: bytes) -> LexiscopeError:
    after = response.headers.get("retry-after", "")
    return error_of(_fault(body), int(after) if after.isdecimal() else None)


def _fault(body: bytes | str) -> Fault:
    try:
        return Fault.model_validate_json(body)
    except ValidationError:
        raise LiveDown("what answers in the worker's place is no worker of this version", 10) from None


def _answer(shape: type[A], body: bytes | str) -> A:
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
