"""Several workers of one model, which run elsewhere: who is asked, who is left out and comes back, who is tried again.
Each is a real worker behind a door that can fail in the ways of real ones."""

import asyncio
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.workers import remote
from app.workers.connections import WorkerAddress
from tests.support.site import GPT2, visit
from tests.support.workers import PROMPT, SEEDS, HeldEngine, asking_site, get, listening, post, until, worker_app

pytestmark = pytest.mark.slow


class Door:
    """Stands before a worker and counts what it is asked. `fault` is what happens to the next ask: `breaks` cuts the
    answer off when it begins, `stops` after its first part, `dead replica` answers as Ray Serve does; `frozen` never
    answers anything, until it is taken back."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.asked = 0
        self.fault = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        while self.fault == "frozen":
            await asyncio.sleep(0.01)
        if scope["method"] == "GET":
            await self.app(scope, receive, send)
            return
        self.asked += 1
        fault, self.fault = self.fault, ""
        if fault == "dead replica":
            await PlainTextResponse("Internal Server Error", 500)(scope, receive, send)
            return
        sent = 0

        async def send_until_fault(message: Message) -> None:
            nonlocal sent
            sent += 1
            if fault != "breaks" or sent == 1:
                await send(message)
            if fault and sent == 2:
                raise ConnectionAbortedError

        await self.app(scope, receive, send_until_fault)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "RECHECK_SECONDS", 0.05)


@pytest.fixture
def doors(loaded: tuple[HeldEngine, str], engine: HeldEngine) -> list[Door]:
    return [Door(worker_app(engine, GPT2, loaded[1], queue=1)) for _ in range(3)]


@contextmanager
def site(data: Path, doors: list[Door], **settings: Any) -> Iterator[tuple[str, list[str], Any]]:
    """A server that is told of these workers, their addresses, and what it says of them."""
    with ExitStack() as stack:
        urls = [stack.enter_context(listening(door)) for door in doors]
        app, state = asking_site(data, worker_url=" ".join(f"{GPT2}={url}" for url in urls), **settings)
        at = stack.enter_context(listening(app))
        until(lambda: "unchecked" not in state.live.worker_states().values())
        yield f"{at}/{GPT2}", urls, state.live.worker_states


def waiting(worker: str) -> int:
    return int(get(f"{worker}/health").json()["queue"])


def test_the_least_busy_is_asked_and_equals_in_turn(site_data: Path, doors: list[Door], engine: HeldEngine) -> None:
    with site(site_data, doors[:2], visitor_queue=20) as (url, urls, _), ThreadPoolExecutor(4) as threads:
        engine.hold.set()
        answers = [threads.submit(post, f"{url}/prompt", {**PROMPT, "text": "dog"})]
        until(lambda: len(engine.batches) == 1)
        answers.append(threads.submit(post, f"{url}/prompt", {**PROMPT, "text": "lion"}))
        until(lambda: len(engine.batches) == 2)  # either computes; what comes now waits
        assert [door.asked for door in doors] == [1, 1, 0]
        for text in ("dogs", "lions"):
            answers.append(threads.submit(post, f"{url}/prompt", {**PROMPT, "text": text}))
            until(lambda: sum(waiting(at) for at in urls) == len(answers) - 2)
        assert [door.asked for door in doors] == [2, 2, 0]
        full = post(f"{url}/prompt", {**PROMPT, "text": "dog and lion"})  # one computed and one waiting, at either
        engine.hold.clear()
        assert [answer.result().status_code for answer in answers] == [200] * 4
        assert full.status_code == 503
        assert full.json()["error"]["detail"] == "1 requests wait already (the setting queue)"
        assert [door.asked for door in doors] == [3, 3, 0]
        for _ in range(4):
            assert post(f"{url}/seeds", SEEDS).status_code == 200
        assert [door.asked for door in doors] == [5, 5, 0]


def test_who_is_refused_by_one_that_is_full_goes_to_another(
    site_data: Path, doors: list[Door], engine: HeldEngine
) -> None:
    with site(site_data, doors[:2]) as (url, urls, _), ThreadPoolExecutor(4) as threads:
        engine.hold.set()
        answers = [threads.submit(post, f"{urls[0]}/prompt", {**PROMPT, "text": "dog"})]  # of another server
        until(lambda: len(engine.batches) == 1)
        answers.append(threads.submit(post, f"{urls[0]}/prompt", {**PROMPT, "text": "lion"}))
        until(lambda: waiting(urls[0]) == 1)
        answers.append(threads.submit(post, f"{url}/prompt", {**PROMPT, "text": "dogs"}))
        until(lambda: len(engine.batches) == 2)
        answers.append(threads.submit(post, f"{url}/prompt", {**PROMPT, "text": "lions"}))
        until(lambda: waiting(urls[1]) == 1)
        engine.hold.clear()
        assert [answer.result().status_code for answer in answers] == [200] * 4
    assert doors[1].asked == 2


def test_a_dead_one_is_left_out_until_it_answers_again(
    site_data: Path, doors: list[Door], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "w.sock"
    with ExitStack() as lives:
        dying = lives.enter_context(listening(doors[2], path))
        with site(site_data, doors[:1]) as (_, urls, _), caplog.at_level(logging.WARNING):
            app, state = asking_site(site_data, worker_url=f"{GPT2}={urls[0]},{GPT2}={dying}")
            with listening(app) as url:
                until(lambda: set(state.live.worker_states().values()) == {"ready"})
                lives.close()
                for _ in range(4):  # one of them meets the dead worker
                    assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 200
                assert (doors[0].asked, doors[2].asked) == (4, 0)
                assert state.live.worker_states() == {f"{GPT2} 1": "ready", f"{GPT2} 2": "down"}
                assert caplog.text.count(f"the worker at {dying} is down") == 1
                with listening(doors[2], path):
                    until(lambda: set(state.live.worker_states().values()) == {"ready"})
                    for _ in range(2):
                        assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 200
                    assert doors[2].asked == 1


@pytest.mark.parametrize("fault", ["breaks", "dead replica"])
def test_who_meets_a_death_is_tried_once_more(site_data: Path, doors: list[Door], fault: str) -> None:
    with site(site_data, doors) as (url, _, states):
        doors[0].fault = fault
        assert post(f"{url}/seeds", SEEDS).status_code == 200
        assert [door.asked for door in doors] == [1, 1, 0]
        until(lambda: set(states().values()) == {"ready"})  # it answers
        for door in doors:
            door.fault = fault
        failed = post(f"{url}/seeds", SEEDS)
        assert failed.status_code == 503
        assert "stopped before it had an answer" in failed.json()["error"]["detail"]
        assert sum(door.asked for door in doors) == 2 + 2


@pytest.mark.parametrize("fault", ["breaks", "dead replica"])
def test_another_may_take_its_place_at_the_same_address(site_data: Path, doors: list[Door], fault: str) -> None:
    with site(site_data, doors[:1]) as (url, _, states):
        doors[0].fault = fault
        assert post(f"{url}/seeds", SEEDS).status_code == 200
        assert doors[0].asked == 2
        until(lambda: states() == {GPT2: "ready"})


@pytest.mark.parametrize("fault", ["breaks", "stops", "dead replica"])
def test_events_begin_anew_at_another(site_data: Path, doors: list[Door], engine: HeldEngine, fault: str) -> None:
    with site(site_data, doors[:2]) as (url, _, _), ThreadPoolExecutor(1) as threads:
        engine.hold.set()  # so that the first part is a report, not the answer
        doors[0].fault = fault
        events = threads.submit(post, f"{url}/events", PROMPT)
        until(lambda: doors[1].asked)
        engine.hold.clear()
        lines = events.result().text.split()
    assert [door.asked for door in doors[:2]] == [1, 1]
    assert (lines[-1], lines.count("PromptAnswer")) == ("PromptAnswer", 1)
    assert fault != "stops" or lines[0] == "Progress"


def test_a_frozen_one_is_left_out(site_data: Path, doors: list[Door], monkeypatch: pytest.MonkeyPatch) -> None:
    with site(site_data, doors[:2], request_seconds=4) as (url, _, states):
        monkeypatch.setattr(remote, "CHECK_SECONDS", 4)
        doors[0].fault = "frozen"
        late = post(f"{url}/seeds", SEEDS)
        assert late.status_code == 503
        assert "within 4 seconds (the setting request_seconds)" in late.json()["error"]["detail"]
        until(lambda: states()[f"{GPT2} 1"] == "down")
        for _ in range(3):
            assert post(f"{url}/seeds", SEEDS).status_code == 200
        assert (doors[0].asked, doors[1].asked) == (0, 3)
        doors[0].fault = ""
        until(lambda: set(states().values()) == {"ready"})


def test_nobody_is_there(site_data: Path) -> None:
    """Whoever asks is told at once, and when to come back."""
    with visit(site_data, worker_url="http://127.0.0.1:9 http://127.0.0.1:8") as visitor:
        down = {"every model 1": "down", "every model 2": "down"}
        until(lambda: visitor.get("/-/health").json()["workers"] == down)
        answer = visitor.get(f"/{GPT2}/seeds.json?words=dog")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        said = f"none of the 2 workers of {GPT2} can be asked: one of them cannot be reached"
        assert answer.json()["error"]["detail"].startswith(said)
        assert "127.0.0.1" not in answer.text


def test_a_look_that_fails_in_a_way_nobody_thought_of(caplog: pytest.LogCaptureFixture) -> None:
    """As this address would, were it not refused: the thread goes on looking, and says so once."""
    worker = remote.RemoteWorker(WorkerAddress("http://a..b:1"), SecretStr(""))
    worker.watch()
    try:
        until(lambda: worker.state.word == "down")
        time.sleep(0.2)  # some looks
        assert caplog.text.count("the worker at http://a..b:1 cannot be looked at") == 1
        worker.leave_out(remote.RemoteState("refused"))
        until(lambda: worker.state.word == "down")  # by the next look
    finally:
        worker.close()
    assert "UnicodeError" in caplog.text
