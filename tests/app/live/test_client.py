"""Bad luck behind live pages, over HTTP: the worker frozen, flooded, gone or another one; and who is one visitor.
The server answers throughout, with the right page, and recovers by itself."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from starlette.datastructures import State
from starlette.requests import Request

from lexiscope.app.live.client import preferred_wait, visitor_name
from lexiscope.app.live.keeper import Keeper
from lexiscope.precompute.live.wire.answers import SeedsAnswer
from lexiscope.precompute.live.wire.fields import adapter
from tests.support.processes import alive, serving
from tests.support.site import GPT2, LLAMA
from tests.support.workers import (
    PROMPT,
    SEEDS,
    HeldEngine,
    asking_site,
    get,
    in_thread,
    listening,
    post,
    until,
    worker_app,
)

pytestmark = pytest.mark.slow

# Workers that the server starts itself need no token.
FAST = {"worker_silence": 4, "request_seconds": 3600, "workers": 1, "worker_token": "for-workers-elsewhere"}


@pytest.fixture(scope="module")
def own(site_data: Path) -> Iterator[tuple[str, State]]:
    """A server that runs its workers itself."""
    app, site = asking_site(site_data, **FAST)
    with listening(app) as url:
        yield url, site
    assert not site.live.supervisor.running()


def recovered(url: str) -> None:
    """As a page that retries by itself: it has an answer in the end, and is told to wait until then."""
    deadline = time.monotonic() + 240
    while (answer := post(f"{url}/{GPT2}/seeds", SEEDS)).status_code != 200:
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["retry-after"]) >= 1
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.2)
    adapter(SeedsAnswer).validate_json(answer.content)


def test_one_that_freezes_is_killed_and_another_takes_its_place(own: tuple[str, State]) -> None:
    """Whoever waited for it is told at once, and told to ask again."""
    url, site = own
    assert site.live.serves(GPT2)
    recovered(url)  # the first visitor waits for the worker to start
    keeper: Keeper = site.live.supervisor.running()[GPT2]
    first = keeper.pid
    assert first
    os.kill(first, signal.SIGSTOP)
    visitor, found = in_thread(lambda: post(f"{url}/{GPT2}/prompt", PROMPT))
    page, shown = in_thread(lambda: post(f"{url}/{GPT2}/prompt", PROMPT, {"accept": "text/html"}))
    until(lambda: keeper.users == 2)
    assert get(f"{url}/still").text == '"here"'
    for thread in (visitor, page):
        thread.join()
    assert found[0].status_code == shown[0].status_code == 503
    assert "stopped before it had an answer" in found[0].json()["error"]["detail"]
    after = found[0].headers["retry-after"]
    assert int(after) >= 1
    assert f'<meta http-equiv="refresh" content="{after}">' in shown[0].text
    until(lambda: keeper.pid not in (None, first))  # by itself; nobody has asked again
    assert site.live.supervisor.running()[GPT2] is keeper


def test_the_other_model_has_another_worker(own: tuple[str, State], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many at once: the one that is idle makes room."""
    url, site = own
    keeper = site.live.supervisor.keeper(GPT2)
    until(lambda: keeper.pid)
    old = keeper.pid
    monkeypatch.setattr("lexiscope.app.live.client.START_WAIT_SECONDS", 0.1)
    loading = post(f"{url}/{LLAMA}/seeds", SEEDS)
    assert (loading.status_code, loading.headers["retry-after"]) == (503, "2")
    assert "is loading the model" in loading.json()["error"]["detail"]
    assert list(site.live.supervisor.running()) == [LLAMA]
    waited = post(f"{url}/{LLAMA}/seeds", SEEDS, {"prefer": "respond-async, wait=240"})
    assert waited.status_code == 200, waited.text
    until(lambda: not alive(old or 0))


@pytest.fixture(scope="module")
def remote(site_data: Path, loaded: tuple[HeldEngine, str]) -> Iterator[tuple[str, str]]:
    """A server, and the worker that it was told to use."""
    engine, weights = loaded
    with listening(worker_app(engine, GPT2, weights, queue=3, prompt_tokens=30)) as worker:
        app, _ = asking_site(site_data, worker_url=worker)
        with listening(app) as url:
            yield url, worker


def test_flooded(site_data: Path, loaded: tuple[HeldEngine, str], engine: HeldEngine) -> None:
    with listening(worker_app(engine, GPT2, loaded[1], queue=3, visitor_queue=20)) as worker:
        app, _ = asking_site(site_data, worker_url=f"{GPT2}={worker}")
        with listening(app) as url, ThreadPoolExecutor(20) as threads:
            engine.hold.set()
            prompts = [{**PROMPT, "text": f"dog {number}"} for number in range(20)]
            answers = [threads.submit(post, f"{url}/{GPT2}/prompt", prompts[0])]
            until(lambda: engine.batches)
            answers += [threads.submit(post, f"{url}/{GPT2}/prompt", prompt) for prompt in prompts[1:]]
            until(lambda: sum(answer.done() for answer in answers) == 16)
            assert get(f"{url}/still").text == '"here"'
            assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 200  # in the other lane
            engine.hold.clear()
            found = [answer.result() for answer in answers]
    assert sorted(answer.status_code for answer in found) == [200] * 4 + [503] * 16
    full = next(answer for answer in found if answer.status_code == 503)
    assert full.json()["error"]["detail"] == "3 requests wait already (the setting queue)"
    assert int(full.headers["retry-after"]) >= 1


def test_one_visitor_has_so_many_requests_at_once(
    site_data: Path, loaded: tuple[HeldEngine, str], engine: HeldEngine
) -> None:
    """The server says who asks: others are not refused, wherever all of them reach the worker from."""
    with listening(worker_app(engine, GPT2, loaded[1], visitor_queue=2)) as worker:
        app, _ = asking_site(site_data, worker_url=worker)
        with listening(app) as url, ThreadPoolExecutor(4) as threads:
            engine.hold.set()

            def ask(visitor: str, path: str, content: object) -> httpx2.Response:
                return post(f"{url}/{GPT2}/{path}", content, {"x-forwarded-for": visitor})

            flood = [
                threads.submit(ask, "192.0.2.1", path, {**PROMPT, "text": f"dog {path}"})
                for path in ("prompt", "events")
            ]
            until(lambda: get(f"{worker}/health").json()["queue"] == 1)
            refused = ask("192.0.2.1", "seeds", SEEDS)
            other = ask("192.0.2.2", "seeds", SEEDS)
            engine.hold.clear()
            assert [answer.result().status_code for answer in flood] == [200, 200]
            assert ask("192.0.2.1", "seeds", SEEDS).status_code == 200
    assert other.status_code == 200
    assert refused.status_code == 503
    assert "2 of your requests wait or are computed already (the setting visitor_queue)" in refused.text
    assert int(refused.headers["retry-after"]) >= 1


@pytest.mark.parametrize("path", ["prompt", "events"])
def test_a_visitor_who_leaves_is_cancelled(remote: tuple[str, str], engine: HeldEngine, path: str) -> None:
    url, worker = remote
    engine.hold.set()
    with closing(HTTPConnection(url.removeprefix("http://"))) as visitor:
        visitor.request("POST", f"/{GPT2}/{path}", json.dumps(PROMPT))
        until(lambda: engine.batches)
    until(lambda: engine.given_up)
    until(lambda: not get(f"{worker}/health").json()["busy"])
    engine.hold.clear()
    assert post(f"{url}/{GPT2}/{path}", PROMPT).status_code == 200


def test_a_worker_of_another_model(remote: tuple[str, str]) -> None:
    answer = post(f"{remote[0]}/{LLAMA}/seeds", SEEDS)
    assert answer.status_code == 503
    assert f"the worker has {GPT2} with the weights" in answer.json()["error"]["detail"]


@pytest.mark.parametrize("settings", [
    {"worker": "off"},
    {"worker": "off", "worker_url": "http://127.0.0.1:9"},
    {"worker_url": f"{LLAMA}=http://127.0.0.1:9"},
])  # fmt: skip
def test_no_live_pages(site_data: Path, settings: dict[str, str]) -> None:
    app, site = asking_site(site_data, **settings)
    assert not site.live.serves(GPT2)
    with listening(app) as url:
        answer = post(f"{url}/{GPT2}/seeds", SEEDS)
    assert answer.status_code == 404
    assert "LEXISCOPE_WORKER" in answer.json()["error"]["detail"]


def test_nobody_or_something_else_at_the_address(site_data: Path, tmp_path: Path) -> None:
    something = FastAPI()
    something.add_api_route("/{path}", lambda: "It works!", methods=["POST"])
    with listening(something) as worker:
        for address, said in (
            ("http://127.0.0.1:9", "cannot be reached"),
            (f"unix:{tmp_path}/nothing.sock", "cannot be reached"),
            (worker, "is no worker of this version"),
        ):
            app, _ = asking_site(site_data, worker_url=address)
            with listening(app) as url:
                answer = post(f"{url}/{GPT2}/seeds", SEEDS)
                assert answer.status_code == post(f"{url}/{GPT2}/events", PROMPT).status_code == 503
            assert said in answer.json()["error"]["detail"]
            assert answer.headers["retry-after"] == "10"


def test_a_prompt_in_flight_when_the_server_stops(
    site_data: Path, loaded: tuple[HeldEngine, str], engine: HeldEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(worker_app(engine, GPT2, loaded[1])) as worker:
        monkeypatch.setenv("LEXISCOPE_WORKER_URL", worker)
        with serving("--data", site_data) as (server, url):
            engine.hold.set()
            thread, answers = in_thread(lambda: get(f"{url}/{GPT2}/prompt.json?text=the+zebra"))
            until(lambda: engine.batches)
            server.send_signal(signal.SIGTERM)
            thread.join(120)
            _, err = server.communicate(timeout=120)
    assert answers[0].status_code == 503
    assert int(answers[0].headers["retry-after"]) > 0
    assert answers[0].json()["error"]["status"] == 503
    assert "Traceback" not in err
    assert "zebra" not in err


def name(host: str | None) -> str:
    return visitor_name(Request({"type": "http", "client": host and (host, 1234)}))


@pytest.mark.parametrize(("one", "other", "same"), [
    ("192.0.2.1", "192.0.2.1", True),
    ("192.0.2.1", "192.0.2.2", False),
    ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),  # whoever has one of these has all
    ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
    ("::ffff:192.0.2.1", "192.0.2.1", True),
    ("fe80::1%eth0", "fe80::2", True),
    ("testclient", "testclient", True),
    ("testclient", None, False),
    (None, None, True),
])  # fmt: skip
def test_who_is_one_visitor(one: str | None, other: str | None, same: bool) -> None:
    assert (name(one) == name(other)) == same


@pytest.mark.parametrize(("header", "seconds"), [
    ("wait=30", 30),
    ('respond-async, Wait = "7"', 7),
    ("wait", 0),
    ("await=9", 0),
    ("wait=-3", 0),
    ("wait=1234567890", 0),
    ("", 0),
])  # fmt: skip
def test_how_long_a_visitor_would_rather_wait(header: str, seconds: int) -> None:
    assert preferred_wait(Request({"type": "http", "headers": [(b"prefer", header.encode())]})) == seconds
