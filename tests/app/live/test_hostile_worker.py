"""Workers that mean harm, or are something else: what they send is read up to a limit, and the server stays well."""

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from lexiscope.app.live import client, exchange
from lexiscope.precompute.live.wire.errors import MOST_DETAIL
from tests.support.site import GPT2
from tests.support.workers import PROMPT, SEEDS, asking_site, get, listening, post

FAULT = {"status": 404, "title": "Not found", "detail": "x" * 100_000}


class Hostile:
    """A worker that answers every ask with `head` and then `piece`, as often as `times` says, with `pause` seconds
    between two."""

    def __init__(self, piece: bytes = b"", *, status: int = 200, times: int = 1, pause: float = 0, **head: str) -> None:
        self.piece, self.status, self.times, self.pause = piece, status, times, pause
        self.head = [(name.replace("_", "-").encode(), value.encode()) for name, value in head.items()]
        self.sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        gone = asyncio.create_task(_until_gone(receive))
        await send({"type": "http.response.start", "status": self.status, "headers": self.head})
        for _ in range(self.times):
            if gone.done():
                return
            await send({"type": "http.response.body", "body": self.piece, "more_body": True})
            self.sent += len(self.piece)
            await asyncio.sleep(self.pause)
        await send({"type": "http.response.body", "body": b""})
        gone.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_ANSWER_BYTES", 1 << 20)


@contextmanager
def asking(data: Path, worker: Hostile, request_seconds: float = 60) -> Iterator[str]:
    with listening(worker) as at:
        app, _ = asking_site(data, worker_url=at, request_seconds=request_seconds)
        with listening(app) as url:
            yield url


ENDLESS = 1 << 30
NO_WORKER = "is no worker of this version"
IN_TIME = "within 1 seconds (the setting request_seconds)"


@pytest.mark.parametrize(("path", "worker", "status", "said"), [
    ("prompt", lambda: Hostile(b"[" * 65536, times=ENDLESS), 503, NO_WORKER),
    ("events", lambda: Hostile(b"\n" * 65536, times=ENDLESS), 503, NO_WORKER),
    ("prompt", lambda: Hostile(gzip.compress(b" " * (10 << 20)), content_encoding="gzip"), 503, NO_WORKER),
    ("events", lambda: Hostile(b"[" * 65536, times=ENDLESS, status=404), 503, NO_WORKER),
    ("prompt", lambda: Hostile(b"[" * 65536, times=ENDLESS, status=500), 503, "stopped before it had an answer"),
    ("events", lambda: Hostile(b"garbage"), 503, ""),
    ("prompt", lambda: Hostile(b"nothing here", status=404), 503, NO_WORKER),
    ("prompt", lambda: Hostile(status=302, location="http://127.0.0.1:9/"), 503, NO_WORKER),
    ("events", lambda: Hostile(json.dumps(FAULT).encode(), status=404), 404, "x" * MOST_DETAIL + "…"),
])  # fmt: skip
def test_what_it_sends_has_a_limit(
    worker: Callable[[], Hostile], status: int, said: str, path: str, site_data: Path
) -> None:
    hostile = worker()
    with asking(site_data, hostile) as url:
        answer = post(f"{url}/{GPT2}/{path}", PROMPT)
        assert (answer.status_code, said in answer.json()["error"]["detail"]) == (status, True), answer.text
        assert get(f"{url}/still").text == '"here"'
    assert len(answer.content) < 10_000
    assert hostile.sent < 1 << 27  # what the sockets between them hold, and not all that it would send


@pytest.mark.parametrize(("path", "status"), [("prompt", 200), ("prompt", 404), ("events", 200)])
def test_a_byte_now_and_then_is_no_answer(
    site_data: Path, path: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MARGIN_SECONDS", 0.0)
    with asking(site_data, Hostile(b" ", times=ENDLESS, pause=0.2, status=status), request_seconds=1) as url:
        answer = post(f"{url}/{GPT2}/{path}", PROMPT)
    assert (answer.status_code, IN_TIME in answer.json()["error"]["detail"]) == (503, True), answer.text


@pytest.mark.parametrize(("header", "seconds"), [("9" * 5000, "3600"), ("7", "7"), ("²", "5"), ("-1", "5")])
def test_when_to_come_back(site_data: Path, header: str, seconds: str) -> None:
    full = json.dumps({"status": 503, "title": "Not available", "detail": "full"}).encode()
    hostile = Hostile(full, status=503)
    hostile.head = [(b"retry-after", header.encode())]
    with asking(site_data, hostile) as url:
        answer = post(f"{url}/{GPT2}/seeds", SEEDS)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, seconds)
