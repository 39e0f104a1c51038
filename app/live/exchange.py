"""Send one request to one worker, and read its reports of progress and its answer, or raise an error of this program.
The answer is limited in bytes and time, so that a malicious worker cannot fill the server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lexiscope.app.live.connections import Connections, WorkerAddress
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.wire.errors import LiveFull, NotAWorker, TimedOut, TokenRefused, WorkerGone, error_of
from lexiscope.precompute.live.wire.fields import Ask, adapter
from lexiscope.precompute.live.wire.protocol import EVENTS, MOST_ANSWER_BYTES, MOST_RETRY_SECONDS, ErrorAnswer, Progress

if TYPE_CHECKING:
    import httpx2

UNAUTHORIZED = 401  # the status of a worker that does not accept this server's token
GONE_RETRY_SECONDS = 10  # a worker that is gone may be back after so many seconds
GONE = "cannot be reached, or stopped before it had an answer. Stored pages work; this one will when the worker is back"
REFUSED = "does not know this server: LEXISCOPE_WORKER_TOKEN must be the same for the server and for its workers"
PROXY_TIMED_OUT = (408, 504)  # a proxy before a worker may answer with these statuses in the worker's place
MOST_ERROR_BYTES = 1 << 20


@dataclass(frozen=True)
class Exchange:
    """One request to one worker. If `with_events` is True, the worker also reports its progress. `patience` is the time
    limit in seconds that messages name."""

    connections: Connections
    model: str
    ask: Ask[Any]
    headers: Mapping[str, str]
    with_events: bool
    patience: float

    async def reports(self, address: WorkerAddress) -> AsyncGenerator[Any]:
        """Yield Progress any number of times, if `with_events` is True, and then the answer."""
        deadline = asyncio.get_running_loop().time() + self.connections.patience
        async with self._post(await self.connections.client(address), deadline) as response:
            if not self.with_events:
                async with asyncio.timeout_at(deadline):
                    body = await _read_body(response, MOST_ANSWER_BYTES)
                yield parse(self.ask.answer, body)
                return
            async with aclosing(_events(response, self.connections.patience)) as events:
                async for event, data in events:
                    if event == "fault":
                        raise error_of(parse(ErrorAnswer, data))
                    if event == "result":
                        yield parse(self.ask.answer, data)
                        return
                    yield parse(Progress, data)
            raise self._gone(answered=True)

    @asynccontextmanager
    async def _post(self, client: "httpx2.AsyncClient", deadline: float) -> AsyncIterator["httpx2.Response"]:
        """Send the request, and yield the worker's response as soon as it begins."""
        import httpx2

        path = self.ask.path + (EVENTS if self.with_events else "")
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
            raise TimedOut(
                f"the worker of {self.model} gave no answer within {self.patience:g} seconds (the setting "
                "request_seconds)",
                GONE_RETRY_SECONDS,
            ) from None
        except httpx2.PoolTimeout:
            raise LiveFull(f"too many wait for the worker of {self.model}") from None
        except httpx2.TransportError as error:
            raise self._gone(answered=not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)) from None

    async def _refusal(self, response: "httpx2.Response") -> LexiscopeError:
        """Return the error that the worker, or a proxy in its place, has answered with."""
        if response.status_code == UNAUTHORIZED:
            return TokenRefused(f"the worker of {self.model} {REFUSED}", GONE_RETRY_SECONDS)
        try:
            answer = parse(ErrorAnswer, await _read_body(response, MOST_ERROR_BYTES))
        except NotAWorker as error:
            if response.status_code in PROXY_TIMED_OUT:
                return TimedOut(f"the worker of {self.model} had no answer in time", GONE_RETRY_SECONDS)
            return self._gone(answered=True) if response.is_server_error else error
        return error_of(answer, _retry_seconds(response.headers.get("retry-after", "")))

    def _gone(self, *, answered: bool) -> WorkerGone:
        return WorkerGone(f"the worker of {self.model} {GONE}", GONE_RETRY_SECONDS, answered=answered)


def parse(shape: Any, body: bytes | str) -> Any:
    try:
        return adapter(shape).validate_json(body)
    except ValidationError:
        raise NotAWorker from None


async def _events(response: "httpx2.Response", patience: float) -> AsyncGenerator[tuple[str, str]]:
    """Yield server-sent events as the worker writes them: one line `event`, one line `data`."""
    event = ""
    async with aclosing(_read_lines(response, MOST_ANSWER_BYTES, patience)) as lines:
        async for line in lines:
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                yield event, value


def _check_encoding(response: "httpx2.Response") -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise NotAWorker


async def _read_body(response: "httpx2.Response", most_bytes: int) -> bytes:
    """Read the body; raise NotAWorker if it is longer than `most_bytes`. The caller limits the time."""
    _check_encoding(response)
    body = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > most_bytes:
                raise NotAWorker
    return bytes(body)


async def _read_lines(response: "httpx2.Response", most_bytes: int, patience: float) -> AsyncGenerator[str]:
    """Yield lines as they arrive, up to `most_bytes` in total; raise TimeoutError if one takes more than `patience`
    seconds."""
    _check_encoding(response)
    clock = asyncio.get_running_loop().time
    line, n_bytes, deadline = bytearray(), 0, clock() + patience
    async with aclosing(response.aiter_raw()) as pieces:
        while True:
            async with asyncio.timeout_at(deadline):
                piece = await anext(pieces, None)
            if piece is None:
                return
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise NotAWorker
            for part in piece.splitlines(keepends=True):
                line += part
                if line.endswith(b"\n"):
                    yield line.decode(errors="replace").rstrip("\r\n")
                    line.clear()
                    deadline = clock() + patience


def _retry_seconds(header: str) -> int | None:
    """Return a Retry-After header in seconds, an hour at most; None if it is no number."""
    if not (header.isascii() and header.isdecimal()):
        return None
    return min(int(header[:6]), MOST_RETRY_SECONDS)
