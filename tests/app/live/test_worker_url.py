"""A worker that runs elsewhere: its address, one more try where it broke, and how the last ask of it ended.
It is a real worker behind a door that can fail in the ways of real ones."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexiscope.app.live.connections import WorkerAddress, parse_worker_urls
from lexiscope.precompute.errors import ServeError
from tests.support.site import GPT2, visit
from tests.support.workers import PROMPT, SEEDS, HeldEngine, asking_site, listening, post, until, worker_app


class Door:
    """Stands before a worker and counts what it is asked. `errors` says what happens to the next asks: `breaks` cuts
    the answer off when it begins, `stops` after its first part; `dead replica` answers as Ray Serve does, `bad gateway`
    as nginx does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.asked = 0
        self.errors: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.asked += 1
        error = self.errors.pop(0) if self.errors else ""
        if error in ("dead replica", "bad gateway"):
            await PlainTextResponse("Error", {"dead replica": 500, "bad gateway": 502}[error])(scope, receive, send)
            return
        sent = 0

        async def send_until_error(message: Message) -> None:
            nonlocal sent
            sent += 1
            if error != "breaks" or sent == 1:
                await send(message)
            if error and sent == 2:
                raise ConnectionAbortedError

        await self.app(scope, receive, send_until_error)


@pytest.fixture
def door(loaded: tuple[HeldEngine, str], engine: HeldEngine) -> Door:
    return Door(worker_app(engine, GPT2, loaded[1]))


@contextmanager
def site(data: Path, door: Door, **settings: Any) -> Iterator[tuple[str, Any]]:
    """A server that is told of this worker, and what the server says of it."""
    with listening(door) as worker:
        app, state = asking_site(data, worker_url=f"{GPT2}={worker}", **settings)
        with listening(app) as at:
            yield f"{at}/{GPT2}", state.live.worker_states


@pytest.mark.slow
@pytest.mark.parametrize("error", ["breaks", "dead replica", "bad gateway"])
def test_it_is_asked_once_more(site_data: Path, door: Door, error: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), site(site_data, door) as (url, states):
        assert states() == {GPT2: "unchecked"}
        door.errors = [error]
        assert post(f"{url}/seeds", SEEDS).status_code == 200
        assert (door.asked, states()) == (2, {GPT2: "ready"})
        door.errors = [error] * 2
        failed = post(f"{url}/seeds", SEEDS)
        assert (failed.status_code, failed.headers["retry-after"]) == (503, "10")
        assert "stopped before it had an answer" in failed.json()["error"]["detail"]
        assert (door.asked, states()) == (4, {GPT2: "down"})
        assert post(f"{url}/seeds", SEEDS).status_code == 200
        assert states() == {GPT2: "ready"}
    told = [record.message for record in caplog.records if record.message.startswith("the worker at")]
    assert [message.split()[-1] for message in told] == ["down", "ready"]


@pytest.mark.slow
def test_what_the_worker_itself_says_is_the_answer(site_data: Path, door: Door) -> None:
    """Nothing is asked twice that a worker refused, and the worker is ready."""
    with site(site_data, door) as (url, states):
        assert post(f"{url}/prompt", {**PROMPT, "text": "dog " * 5000}).status_code == 413
        assert (door.asked, states()) == (1, {GPT2: "ready"})


@pytest.mark.slow
@pytest.mark.parametrize("error", ["breaks", "stops", "dead replica"])
def test_events_begin_anew(site_data: Path, door: Door, engine: HeldEngine, error: str) -> None:
    with site(site_data, door) as (url, _), ThreadPoolExecutor(1) as threads:
        engine.hold.set()  # so that the first part is a report, not the answer
        door.errors = [error]
        events = threads.submit(post, f"{url}/events", PROMPT)
        until(lambda: door.asked == 2)
        engine.hold.clear()
        lines = events.result().text.split()
    assert (door.asked, lines[-1], lines.count("PromptAnswer")) == (2, "PromptAnswer", 1)
    assert error != "stops" or lines[0] == "Progress"


@pytest.mark.slow
def test_one_that_takes_too_long(site_data: Path, door: Door, engine: HeldEngine) -> None:
    engine.hold.set()
    with site(site_data, door, request_seconds=1) as (url, states):
        late = post(f"{url}/prompt", PROMPT)
        engine.hold.clear()
        assert late.status_code == 503
        assert "within 1 seconds (the setting request_seconds)" in late.json()["error"]["detail"]
        assert (door.asked, states()) == (1, {GPT2: "timed out"})


@pytest.mark.slow
def test_one_that_has_ended_and_comes_back(site_data: Path, door: Door, tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    app, state = asking_site(site_data, worker_url=f"unix:{path}")
    with listening(app) as url, ExitStack() as lives:
        lives.enter_context(listening(door, path))
        assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 200
        lives.close()
        assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 503
        assert state.live.worker_states() == {"every model": "down"}
        with listening(door, path):
            assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 200
        assert state.live.worker_states() == {"every model": "ready"}


def test_nobody_is_there(site_data: Path) -> None:
    """A visitor is told when to come back, and nobody is told the address."""
    with visit(site_data, worker_url="http://127.0.0.1:9") as visitor:
        assert visitor.get("/-/health").json()["workers"] == {"every model": "unchecked"}
        answer = visitor.get(f"/{GPT2}/seeds.json?words=dog")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert answer.json()["error"]["detail"].startswith(f"the worker of {GPT2} cannot be reached")
        assert "127.0.0.1" not in answer.text
        assert visitor.get("/-/health").json()["workers"] == {"every model": "down"}


@pytest.mark.parametrize(("text", "found"), [
    ("", {}), ("http://gpu:8100", {"": "http://gpu:8100"}), ("http://gpu:8100/", {"": "http://gpu:8100"}),
    ("gpt2=http://a:1, smollm2-135m=https://b", {"gpt2": "http://a:1", "smollm2-135m": "https://b"}),
    ("gpt2=unix:/run/w.sock", {"gpt2": "unix:/run/w.sock"}), ("gpt2 = http://a:1", {"gpt2": "http://a:1"}),
    ("unix:/run/a folder/w.sock", {"": "unix:/run/a folder/w.sock"}),
    ("gpt2=http://serve:8100/gpt2/", {"gpt2": "http://serve:8100/gpt2"}),
    ("gpt2=http://a:1 pythia=http://b:1\n", {"gpt2": "http://a:1", "pythia": "http://b:1"}),
    ("gpt2=http://a,pythia=http://a", {"gpt2": "http://a", "pythia": "http://a"}),
])  # fmt: skip
def test_addresses_of_workers(text: str, found: dict[str, str]) -> None:
    assert parse_worker_urls(text) == {model: WorkerAddress(url) for model, url in found.items()}


@pytest.mark.parametrize("text", [
    "gpu:8100", "http://", "http://user:word@gpu", "ftp://gpu", "unix:relative", "http://gpu:x", "=http://gpu",
    "http://a,m=http://b", "http://gpu/a b", "http://gpu/../x?y",
    "http://gpu?x=1", "http://gpu#x", "gpt2=", "gpt2", "tiny=http://a..b:1", f"http://{'a' * 64}", "http://💩:1",
])  # fmt: skip
def test_what_is_no_address_of_a_worker(text: str) -> None:
    with pytest.raises(ServeError, match="worker_url"):
        parse_worker_urls(text)


@pytest.mark.parametrize("text", ["a=http://b a=http://c", "a=http://b,c=http://d,a=http://b", "http://a,http://b"])
def test_a_model_has_one_address(text: str) -> None:
    with pytest.raises(ServeError, match=r"names two addresses for .* a model has one: .*Ray Serve") as error:
        parse_worker_urls(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("text", [
    "http://me:secret@gpu", "http://me:secret,secret@gpu", "http://me:a/secret@gpu", "m=http://me:secret=secret@gpu",
    "http://me:secret gpt2=http://x@gpu", "http://a,http://a,http://me:secret@gpu", "secret=http://a,http://me@b",
])  # fmt: skip
def test_a_password_is_not_shown(text: str) -> None:
    with pytest.raises(ServeError, match="worker_url") as error:
        parse_worker_urls(text)
    assert "secret" not in str(error.value)
