"""What stands around the app: around apps that fail, stream, never end, or are asked for something strange."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexiscope.app.metrics import Metrics
from lexiscope.app.settings import Settings
from lexiscope.app.site.limits import StreamLimit
from lexiscope.app.site.security import HEADERS
from lexiscope.app.site.server import wrap_app

pytestmark = pytest.mark.anyio
LIMIT = 1024  # of addresses and of bodies
SETTINGS = Settings(url_limit=LIMIT, body_limit=LIMIT, body_seconds=60, access_log=True)
HASTY = SETTINGS.model_copy(update={"body_seconds": 0.2})


async def error_page(_: Request, status: int, detail: str, headers: Mapping[str, str]) -> Response:
    return PlainTextResponse(detail, status, dict(headers))


class Asked:
    """What a wrapped app answers to one request. `body` gives the messages of the request, then nothing comes."""

    def __init__(
        self,
        app: ASGIApp,
        method: str = "GET",
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: tuple[Message, ...] = (),
        settings: Settings = SETTINGS,
    ) -> None:
        self.messages: list[Any] = []
        self.metrics = Metrics()
        self._body = list(body)
        self._over = asyncio.Event()
        scope = {
            "type": "http",
            "method": method,
            "path": "/",
            "raw_path": b"/",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
        }
        self.run = wrap_app(app, settings, self.metrics, error_page)(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._body:
            return self._body.pop(0)
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._over.set()

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])


async def ask(app: ASGIApp, method: str = "GET", **request: Any) -> Asked:
    asked = Asked(app, method, **request)
    await asyncio.wait_for(asked.run, 120)
    return asked


async def failing(*_: Any) -> None:
    raise OSError("nobody foresaw this")


async def failing_late(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise OSError("nobody foresaw this")


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"{scope['method']} is answered")(scope, receive, send)


async def streaming(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for part in range(100):
        await send({"type": "http.response.body", "body": b"a", "more_body": part < 99})


async def waiting(*_: Any) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(("app", "status"), [(failing, 500), (failing_late, 200), (plain, 200), (streaming, 200)])
async def test_every_answer_has_the_headers_and_is_counted(
    app: Any, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await ask(app)
    assert answer.status == status
    assert HEADERS.items() <= answer.headers.items()
    assert f'lexiscope_requests_total{{route="none",status="{status}"}} 1.0' in answer.metrics.text().decode()
    failed = app in (failing, failing_late)
    assert ("a page failed: OSError at" in caplog.text and f"in {app.__name__}" in caplog.text) == failed
    assert "nobody foresaw this" not in caplog.text  # a message may quote what a visitor typed


async def test_a_request_that_is_cancelled_because_the_server_stops(caplog: pytest.LogCaptureFixture) -> None:
    answer = Asked(waiting)
    task = asyncio.ensure_future(answer.run)
    await asyncio.sleep(0.01)
    task.cancel()
    await task
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert HEADERS.items() <= answer.headers.items()
    assert not caplog.text


def reading() -> FastAPI:
    """An app that reads the body of a POST as FastAPI apps do, and nothing of others."""
    app = FastAPI()

    @app.post("/")
    async def read(words: list[str]) -> list[str]:
        return words

    @app.put("/")
    async def leave() -> str:
        return "not read"

    return app


def chunk(body: bytes, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


JSON = {"content-type": "application/json", "transfer-encoding": "chunked"}


@pytest.mark.parametrize(("method", "body", "status", "said"), [
    ("POST", (chunk(b'["a",', True), chunk(b'"b"]', False)), 200, b'["a","b"]'),
    ("POST", (), 408, b"did not arrive within 0.2 s (the setting body_seconds)"),
    ("POST", (chunk(b'["a",', True),), 408, b"(the setting body_seconds)"),
    ("POST", (chunk(b"x" * LIMIT, True), chunk(b"x", True)), 413, b"more than 1024 bytes (the setting body_limit)"),
    ("PUT", (), 200, b"not read"),
])  # fmt: skip
async def test_bodies(method: str, body: tuple[Message, ...], status: int, said: bytes) -> None:
    settings = HASTY if status == 408 else SETTINGS
    answer = await ask(reading(), method, headers=JSON, body=body, settings=settings)
    assert answer.status == status
    assert said in answer.body
    complete = bool(body) and not body[-1]["more_body"]
    assert answer.headers.get("connection") == (None if complete else "close")  # what is unread ends the connection


async def test_streams_are_bounded() -> None:
    streams = StreamLimit(2)
    app = FastAPI()
    release = asyncio.Event()

    @app.get("/")
    async def long() -> Response:
        async def parts() -> Any:
            yield b"a"
            await release.wait()

        return streams.response(parts(), "text/csv", {"cache-control": "no-cache"})

    running = [Asked(app), Asked(app)]
    tasks = [asyncio.ensure_future(asked.run) for asked in running]
    while not all(asked.messages for asked in running):
        await asyncio.sleep(0.001)
    refused = Asked(app)
    await refused.run
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    assert b"the setting streams" in refused.body
    release.set()
    await asyncio.gather(*tasks)
    again = Asked(app)
    await again.run
    assert [asked.status for asked in (*running, again)] == [200] * 3
    assert again.headers["cache-control"] == "no-cache"
