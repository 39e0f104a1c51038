"""One request to one worker: what it reports and answers; every way to have no answer is an error of ours."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from app.workers.connections import Connections, WorkerAddress
from app.workers.errors import LiveFull, NotAWorker, TimedOut, TokenRefused, WorkerGone, WorkerSilent, error_of
from app.workers.protocol import ENDPOINTS, EVENTS, Answer, Ask, Fault, Progress
from app.workers.reading import MOST_ANSWER_BYTES, MOST_SMALL_BYTES, read_body, read_lines, retry_seconds
from precompute.errors import LexiscopeError
from precompute.live.wire.shared import Wire

if TYPE_CHECKING:
    import httpx2

W = TypeVar("W", bound=Wire)
UNKNOWN = 401  # the status where a worker does not know who asks
RETRY_SECONDS = 10  # after which a visitor may find a worker again
GONE = "cannot be reached, or stopped before it had an answer. Stored pages work; this one will when the worker is back"
REFUSED = "does not know this server: LEXISCOPE_WORKER_TOKEN must be the same for the server and for its workers"
TIMED_OUT = (408, 504)  # what stands before a worker may answer so in its place


@dataclass(frozen=True)
class Exchange:
    """`with_events`: the worker also reports how far it has come. `patience`: seconds, for people."""

    connections: Connections
    model: str
    ask: Ask
    headers: Mapping[str, str]
    with_events: bool
    patience: float

    async def reports(self, address: WorkerAddress) -> AsyncGenerator[Progress | Answer]:
        """How far it has come, any number of times if with events, and the answer at last."""
        _, answer_type = ENDPOINTS[type(self.ask)]
        deadline = asyncio.get_running_loop().time() + self.connections.patience
        async with self._post(await self.connections.client(address), deadline) as response:
            if not self.with_events:
                async with asyncio.timeout_at(deadline):
                    body = await read_body(response, MOST_ANSWER_BYTES)
                yield _parse(answer_type, body)
                return
            async with aclosing(_events(response, self.connections.patience)) as events:
                async for event, data in events:
                    if event == "fault":
                        raise error_of(_parse(Fault, data))
                    if event == "result":
                        yield _parse(answer_type, data)
                        return
                    yield _parse(Progress, data)
            raise self._gone(answered=True)

    @asynccontextmanager
    async def _post(self, client: "httpx2.AsyncClient", deadline: float) -> AsyncIterator["httpx2.Response"]:
        """The worker's answer, as soon as it begins."""
        import httpx2

        path, _ = ENDPOINTS[type(self.ask)]
        path += EVENTS if self.with_events else ""
        headers = {"content-type": "application/json", **self.headers}
        try:
            async with asyncio.timeout_at(deadline):
                request = client.build_request("POST", path, content=self.ask.model_dump_json(), headers=headers)
                response = await client.send(request, stream=True)
            async with aclosing(response):
                if response.status_code != 200:
                    async with asyncio.timeout_at(deadline):
                        raise await self._refusal(response)
                yield response
        except (httpx2.ReadTimeout, httpx2.WriteTimeout, TimeoutError):
            raise WorkerSilent(
                f"the worker of {self.model} gave no answer within {self.patience:g} seconds (the setting "
                "request_seconds)",
                RETRY_SECONDS,
            ) from None
        except httpx2.PoolTimeout:
            raise LiveFull(f"too many wait for the worker of {self.model}") from None
        except httpx2.TransportError as error:
            raise self._gone(answered=not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)) from None

    async def _refusal(self, response: "httpx2.Response") -> LexiscopeError:
        """What the worker, or whoever answers in its place, says is wrong."""
        if response.status_code == UNKNOWN:
            return TokenRefused(f"the worker of {self.model} {REFUSED}", RETRY_SECONDS)
        try:
            fault = _parse(Fault, await read_body(response, MOST_SMALL_BYTES))
        except NotAWorker as stranger:
            if response.status_code in TIMED_OUT:
                return TimedOut(f"the worker of {self.model} had no answer in time", RETRY_SECONDS)
            return self._gone(answered=True, replica=True) if response.is_server_error else stranger
        return error_of(fault, retry_seconds(response.headers.get("retry-after", "")))

    def _gone(self, *, answered: bool, replica: bool = False) -> WorkerGone:
        return WorkerGone(f"the worker of {self.model} {GONE}", RETRY_SECONDS, answered=answered, replica=replica)


def _parse(shape: type[W], body: bytes | str) -> W:
    try:
        return shape.model_validate_json(body)
    except ValidationError:
        raise NotAWorker from None


async def _events(response: "httpx2.Response", patience: float) -> AsyncGenerator[tuple[str, str]]:
    """Server-sent events as the worker writes them: one line `event`, one line `data`."""
    event = ""
    async with aclosing(read_lines(response, MOST_ANSWER_BYTES, patience)) as lines:
        async for line in lines:
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                yield event, value
