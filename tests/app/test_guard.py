"""The outermost layer by itself: around an app that fails, that streams, or that is asked for something strange."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from app.guard import HEADERS, Guard, url_fault
from app.metrics import Metrics

LIMIT = 100


async def refuse(_: Request, status: int, detail: str) -> Response:
    return PlainTextResponse(detail, status)


def answer(app: Callable[[Scope, Receive, Send], Awaitable[None]], method: str = "GET") -> tuple[Any, bytes, str]:
    """The start of the answer, its body, and the metrics after it."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    metrics = Metrics()
    scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": []}
    asyncio.run(Guard(app, LIMIT, metrics, refuse)(scope, receive, send))
    return sent[0], b"".join(message["body"] for message in sent[1:]), metrics.text()


async def failing(*_: Any) -> None:
    raise OSError("nobody foresaw this")


async def failing_late(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise OSError("nobody foresaw this")


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"{scope['method']} is answered")(scope, receive, send)


async def streaming(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for part in (b"a", b"b"):
        await send({"type": "http.response.body", "body": part, "more_body": part == b"a"})


@pytest.mark.parametrize(("app", "status"), [(failing, 500), (failing_late, 200), (plain, 200), (streaming, 200)])
def test_every_answer_has_the_headers_and_is_counted(app: Any, status: int, caplog: pytest.LogCaptureFixture) -> None:
    start, _, metrics = answer(app)
    assert start["status"] == status
    assert {name.encode(): value.encode() for name, value in HEADERS.items()}.items() <= dict(start["headers"]).items()
    assert f'lexiscope_requests_total{{route="none",status="{status}"}} 1' in metrics
    failed = app in (failing, failing_late)
    assert ("a page failed: OSError at" in caplog.text and f"in {app.__name__}" in caplog.text) == failed
    assert "nobody foresaw this" not in caplog.text  # a message may quote what a visitor typed


@pytest.mark.parametrize("app", [plain, streaming])
def test_head_is_get_without_a_body(app: Any) -> None:
    get, head = answer(app), answer(app, "HEAD")
    assert get[0] == head[0]
    assert get[1]
    assert head[1] == b""


def test_head_of_a_long_answer_is_over_at_its_first_part() -> None:
    """Then the server tells whoever makes the parts that nobody is there."""
    bodies: list[Any] = []

    async def endless(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            if (await receive())["type"] == "http.disconnect":
                return

    async def receive() -> Any:
        over = bodies and not bodies[-1]["more_body"]
        return {"type": "http.disconnect" if over else "http.request"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message)

    scope = {"type": "http", "method": "HEAD", "path": "/", "query_string": b"", "headers": []}
    asyncio.run(Guard(endless, LIMIT, Metrics(), refuse)(scope, receive, send))
    assert bodies == [{"type": "http.response.body", "body": b"", "more_body": False}]


@pytest.mark.parametrize(("path", "query", "status"), [
    ("/a", "b=c", None),
    ("/%C3%B6", "q=%F0%9F%90%95%0A", None),
    ("/" + "x" * (LIMIT - 1), "", None),
    ("/" + "x" * (LIMIT - 1), "y", 414),
    ("/%00", "", 400),
    ("/a", "q=%00", 400),
    ("/a%0a", "", 400),
    ("/a%7F", "", 400),
    ("/%ff", "", 400),
    ("/a", "q=%C3", 400),
    ("/a%", "q=%zz", None),
])  # fmt: skip
def test_addresses(path: str, query: str, status: int | None) -> None:
    fault = url_fault({"path": "", "raw_path": path.encode(), "query_string": query.encode()}, LIMIT)
    assert (fault and fault[0]) == status
