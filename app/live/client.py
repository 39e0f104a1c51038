"""Send a question of a live page to a worker: `await live.ask(model, SeedsAsk(...), request)` returns the answer or
raises an error. A model's worker is run by this server, or is at an address that the setting worker_url names."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from hashlib import blake2b
from importlib.util import find_spec
from ipaddress import IPv6Address, ip_address
from typing import Any

import orjson
from starlette.requests import Request

from lexiscope.app.asgi.disconnect import cancel_on_disconnect
from lexiscope.app.library.library import Library
from lexiscope.app.live.connections import Connections, WorkerAddress, parse_worker_urls
from lexiscope.app.live.exchange import Exchange, parse
from lexiscope.app.live.keeper import Keeper, Supervisor
from lexiscope.app.live.recent import RecentAnswers, key_of
from lexiscope.app.settings import Settings
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import (
    LiveDown,
    LiveOff,
    NotAWorker,
    OtherWeights,
    TimedOut,
    TokenRefused,
    WorkerGone,
)
from lexiscope.precompute.live.wire.fields import A, Ask
from lexiscope.precompute.live.wire.protocol import (
    VISITOR_HEADER,
    WEIGHTS_HEADER,
    Progress,
    token_header,
    weights_name_of,
)

START_WAIT_SECONDS = 8.0  # how long a page waits for a worker to load its model before it says so
OWN_RETRY_SECONDS = 2  # seconds after which a worker of this server that has died may run again
MARGIN_SECONDS = 2.0  # how much longer the server waits, so that a worker can itself report that it took too long
# a key of this process, so that an address cannot be found from the name that a worker is told
VISITOR_KEY = secrets.token_bytes(16)
PREFERRED_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,5})(?![0-9])", re.IGNORECASE | re.ASCII)
IPV6_HOST_BITS = 64  # bits of an IPv6 address that a visitor can choose

logger = logging.getLogger("lexiscope")


class LiveClient:
    def __init__(self, settings: Settings, library: Library) -> None:
        self._settings = settings
        self._library = library
        # addresses of workers by model; "" stands for every model
        self._elsewhere = parse_worker_urls(settings.worker_url)
        self._last_end = dict.fromkeys(self._elsewhere, "unchecked")  # how the last request to each ended
        self.supervisor = Supervisor(settings)
        self._connections = Connections(settings.request_seconds + MARGIN_SECONDS)
        self._recent = RecentAnswers(settings.recent_answers_mb << 20)
        self._has_torch = bool(find_spec("torch"))

    def serves(self, model: str) -> bool:
        """Return True if there are live pages of this model, and links to them."""
        if self._settings.worker == "off":
            return False
        if self._elsewhere:
            return model in self._elsewhere or "" in self._elsewhere
        return self._has_torch

    def why_off(self, model: str) -> str:
        if self._settings.worker == "off":
            return "live pages are off: start the server with LEXISCOPE_WORKER=auto to turn them on"
        if self._elsewhere:
            return f"no worker is named for {model}: add {model}=http://host:port to LEXISCOPE_WORKER_URL"
        return "live pages need torch, which is not installed: pip install 'lexiscope[precompute]'"

    async def ask(self, model: str, ask: Ask[A], visitor: Request | None = None) -> A:
        """Send a question to a worker and return the answer. Given the visitor's request, cancel the work when the
        visitor leaves (VisitorGone), and wait for a worker that loads or is full as long as the visitor prefers."""
        work = self._answer_in_time(model, ask, visitor)
        return await (cancel_on_disconnect(visitor, work) if visitor else work)

    def stream(self, model: str, ask: Ask[Any], visitor: Request | None = None) -> AsyncGenerator[Any]:
        """Yield Progress any number of times, and then the answer. Closing the generator cancels the work. The share in
        Progress falls back if a worker has died and the work begins anew."""
        return self._reports(model, ask, visitor, with_events=True)

    def worker_states(self) -> dict[str, str]:
        """Return by model the state of its worker; for workers that this server does not run, how the last request
        ended."""
        states = {model: keeper.state.word for model, keeper in self.supervisor.running().items()}
        return states | {model or "every model": word for model, word in self._last_end.items()}

    def prepare(self, model: str) -> None:
        """Start the model's worker, if this server runs it, without waiting, because a question will follow soon."""
        if self.serves(model) and not self._elsewhere:
            self.supervisor.keeper(model)

    def start(self) -> None:
        """Start the workers that the setting `worker` wants running from the beginning."""
        if self._settings.worker == "start":
            for model in self._library.names()[: self._settings.workers]:
                self.prepare(model)

    async def close(self) -> None:
        """End the workers that this server started, and wait until their processes have ended."""
        await self._connections.close()
        await asyncio.to_thread(self.supervisor.close)

    async def _answer_in_time(self, model: str, ask: Ask[A], visitor: Request | None) -> A:
        patience = min(preferred_wait(visitor), self._settings.request_seconds) if visitor else 0
        end = time.monotonic() + patience
        while True:
            try:
                return await self._answer(model, ask, visitor)
            except LiveDown as error:
                pause = error.retry_after or 1
                if time.monotonic() + pause > end:
                    raise
                await asyncio.sleep(pause)

    async def _answer(self, model: str, ask: Ask[A], visitor: Request | None) -> A:
        async with aclosing(self._reports(model, ask, visitor, with_events=False)) as reports:
            answer: A = await anext(reports)
            return answer

    async def _reports(
        self, model: str, ask: Ask[Any], visitor: Request | None, *, with_events: bool
    ) -> AsyncGenerator[Any]:
        manifest = self._library.index(model).manifest
        if not self.serves(model):
            raise LiveOff(self.why_off(model))
        key = key_of(model, manifest.build, ask) if isinstance(ask, PromptAsk) else None
        if key and (kept := self._recent.find(key)):
            yield parse(ask.answer, kept)
            return

        headers = {WEIGHTS_HEADER: weights_name_of(manifest)}
        if visitor:
            headers[VISITOR_HEADER] = visitor_name(visitor)
        if self._elsewhere:
            headers |= token_header(self._settings.worker_token)
        exchange = Exchange(self._connections, model, ask, headers, with_events, self._settings.request_seconds)
        asked = self._ask_elsewhere(exchange) if self._elsewhere else _ask_own(self.supervisor.keeper(model), exchange)
        async with aclosing(asked) as reports:
            async for report in reports:
                if key and not isinstance(report, Progress):
                    self._recent.keep(key, orjson.dumps(report))
                yield report

    async def _ask_elsewhere(self, exchange: Exchange) -> AsyncGenerator[Any]:
        """Yield reports of progress and the answer of the worker at the model's address, and note how the request
        ended."""
        name = exchange.model if exchange.model in self._elsewhere else ""
        try:
            async with aclosing(_ask_twice(self._elsewhere[name], exchange)) as reports:
                async for report in reports:
                    if not isinstance(report, Progress):
                        self._note_end(name, "ready")
                    yield report
        except LexiscopeError as error:
            self._note_end(name, _state_after(error))
            raise

    def _note_end(self, name: str, state: str) -> None:
        before, self._last_end[name] = self._last_end[name], state
        if state != before and (before, state) != ("unchecked", "ready"):
            logger.warning("the worker at %s is %s", self._elsewhere[name].url, state)


async def _ask_twice(address: WorkerAddress, exchange: Exchange) -> AsyncGenerator[Any]:
    """Yield reports of progress and the answer of the worker at the address. Ask once more if the connection broke
    before the answer, or if a proxy reports that this happened: another worker may now be at the address."""
    for last_try in (False, True):
        try:
            async with aclosing(exchange.reports(address)) as reports:
                async for report in reports:
                    yield report
            return
        except WorkerGone as gone:
            if last_try or not gone.answered:
                raise


def _state_after(error: LexiscopeError) -> str:
    """Return the state of a worker, judged by the error of its last request."""
    match error:
        case TokenRefused():
            return "refused"
        case TimedOut():
            return "timed out"
        case WorkerGone() | NotAWorker():
            return "down"
        case _:
            return "ready"


async def _ask_own(keeper: Keeper, exchange: Exchange) -> AsyncGenerator[Any]:
    """Yield reports of progress and the answer of the worker that this server runs."""
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
    """Return the address of the worker; wait a few seconds if it is still loading its model."""
    patience = time.monotonic() + START_WAIT_SECONDS
    while (state := keeper.state).address is None:
        now = time.monotonic()
        if now >= patience or state.failed or state.retry_at > patience:
            raise LiveDown(state.reason, max(2, round(state.retry_at - now) + 1))
        await asyncio.sleep(0.02)
    return state.address


def preferred_wait(request: Request) -> int:
    """Return for how many seconds a visitor would rather wait than get an error: those of the header `Prefer: wait=30`
    (RFC 7240), or 0."""
    wait = PREFERRED_WAIT.search(request.headers.get("prefer", ""))
    return int(wait[1]) if wait else 0


def visitor_name(request: Request) -> str:
    """Return a name for a visitor that does not reveal the address, for a worker that treats visitors fairly. A visitor
    is identified by the address that uvicorn sees: that of the connection, or the one that a trusted proxy names."""
    host = request.client.host if request.client else ""
    return blake2b(_network(host).encode(), key=VISITOR_KEY, digest_size=12).hexdigest()


def _network(host: str) -> str:
    """Return the part of an address that a visitor cannot choose: all of an IPv4 address, the first half of an IPv6
    one."""
    try:
        address = ip_address(host)
    except ValueError:  # the host is a name, as in tests, and not an address
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{int(address) >> IPV6_HOST_BITS:x}"
