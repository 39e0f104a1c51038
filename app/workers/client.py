"""What live pages ask a worker: `await live.ask(model, SeedsAsk(...), request)` gives the answer or raises an error."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.util import find_spec
from typing import overload

from starlette.requests import Request

from app.library.library import Library
from app.settings import Settings
from app.workers.connections import Connections, WorkerAddress
from app.workers.disconnect import cancel_on_disconnect
from app.workers.errors import LiveDown, LiveOff, OtherWeights, WorkerGone
from app.workers.exchange import Exchange
from app.workers.keeper import Keeper
from app.workers.protocol import VISITOR_HEADER, WEIGHTS_HEADER, Answer, Ask, Progress, token_header, weights_name_of
from app.workers.remote import RemoteWorkers, remote_workers
from app.workers.supervisor import Supervisor
from app.workers.visitors import visitor_name
from precompute.live.wire.prompt import PromptAnswer, PromptAsk
from precompute.live.wire.readings import PairsReadingAnswer, PairsReadingAsk, ReadingAnswer, ReadingAsk
from precompute.live.wire.states import StatesAnswer, StatesAsk, StatesReadingAnswer, StatesReadingAsk
from precompute.live.wire.words import (
    RelationAnswer,
    RelationAsk,
    SeedsAnswer,
    SeedsAsk,
    ThroughHeadsAnswer,
    ThroughHeadsAsk,
)

START_WAIT = 8.0  # seconds that a page waits for a worker to load its model, before it says so
OWN_RETRY_SECONDS = 2  # after which a worker that has died may be there again
MARGIN = 2.0  # seconds that a worker has to say itself that it took too long


class LiveClient:
    def __init__(self, settings: Settings, library: Library) -> None:
        self._settings = settings
        self._library = library
        self._remote = remote_workers(settings.worker_url, settings.worker_token)
        self.supervisor = Supervisor(settings)
        self._connections = Connections(settings.request_seconds + MARGIN)
        self._has_torch = bool(find_spec("torch"))

    def serves(self, model: str) -> bool:
        """Whether there are live pages of this model, and links to them."""
        if self._settings.worker == "off":
            return False
        if self._remote:
            return self._remote_of(model) is not None
        return self._has_torch

    def why_off(self, model: str) -> str:
        if self._settings.worker == "off":
            return "live pages are off: start the server with LEXISCOPE_WORKER=auto to turn them on"
        if self._remote:
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
        work = self._answer(model, ask, visitor)
        return await (cancel_on_disconnect(visitor, work) if visitor else work)

    def stream(
        self, model: str, ask: PromptAsk | PairsReadingAsk, visitor: Request | None = None
    ) -> AsyncGenerator[Progress | Answer]:
        """How far it has come, again and again, and the answer at last; closing it cancels the work. Where a worker has
        died and another begins anew, the share falls back."""
        return self._reports(model, ask, visitor, with_events=True)

    def worker_states(self) -> dict[str, str]:
        """How the workers are, by model; several of one model have a number, in the order of the setting."""
        states = {model: keeper.state.word for model, keeper in self.supervisor.running().items()}
        for model, remote in self._remote.items():
            for number, worker in enumerate(remote.workers, 1):
                name = model or "every model"
                states[f"{name} {number}" if len(remote.workers) > 1 else name] = worker.state.word
        return states

    def prepare(self, model: str) -> None:
        """Starts the model's worker, if this server runs it, without waiting: it will be asked soon."""
        if self.serves(model) and not self._remote:
            self.supervisor.keeper(model)

    def start(self) -> None:
        """Starts the workers that are to run from the beginning, and looks at those that run elsewhere."""
        if self._settings.worker == "start" and not self._remote:
            for model in self._library.names()[: self._settings.workers]:
                if self.serves(model):
                    self.supervisor.keeper(model)
        if self._settings.worker != "off":
            for remote in self._remote.values():
                for worker in remote.workers:
                    worker.watch()

    async def close(self) -> None:
        """Returns when all workers that this server started have ended."""
        for remote in self._remote.values():
            for worker in remote.workers:
                worker.close()
        await self._connections.close()
        await asyncio.to_thread(self.supervisor.close)

    def _remote_of(self, model: str) -> RemoteWorkers | None:
        return self._remote.get(model) or self._remote.get("")

    async def _answer(self, model: str, ask: Ask, visitor: Request | None) -> Answer:
        async with aclosing(self._reports(model, ask, visitor, with_events=False)) as reports:
            answer = await anext(reports)
            assert not isinstance(answer, Progress)
            return answer

    async def _reports(
        self, model: str, ask: Ask, visitor: Request | None, *, with_events: bool
    ) -> AsyncGenerator[Progress | Answer]:
        manifest = self._library.index(model).manifest
        if not self.serves(model):
            raise LiveOff(self.why_off(model))
        headers = {WEIGHTS_HEADER: weights_name_of(manifest)}
        if visitor:
            headers[VISITOR_HEADER] = visitor_name(visitor)
        remote = self._remote_of(model)
        if remote:
            headers |= token_header(self._settings.worker_token)
        exchange = Exchange(self._connections, model, ask, headers, with_events, self._settings.request_seconds)
        asked = remote.ask(exchange) if remote else _ask_own(self.supervisor.keeper(model), exchange)
        async with aclosing(asked) as reports:
            async for report in reports:
                yield report


async def _ask_own(keeper: Keeper, exchange: Exchange) -> AsyncGenerator[Progress | Answer]:
    """Reports and the answer of the worker that this server runs."""
    keeper.users += 1
    try:
        address = await _wait_until_ready(keeper)
        async with aclosing(exchange.reports(address)) as reports:
            async for report in reports:
                yield report
    except OtherWeights:
        keeper.restart(address)
        raise
    except WorkerGone as gone:
        raise WorkerGone(str(gone), OWN_RETRY_SECONDS) from None
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
