"""Ends that nobody wished for: a computing thread that ends, a tokenizer that panics, a signal while a prompt runs."""

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.settings import Settings
from app.worker.service import create_worker
from tests.support.builds import quick_build, small_gpt2
from tests.support.processes import serving
from tests.support.site import GPT2
from tests.support.workers import (
    PROMPT,
    SEEDS,
    HeldEngine,
    asking_site,
    get,
    held_engine,
    in_thread,
    listening,
    post,
    until,
    worker_app,
)

PANIC = "a" * 60 + "b"  # what makes the tokenizer of `panicking` panic


@pytest.fixture
def engine(site_data: Path) -> Iterator[HeldEngine]:
    engine, _ = held_engine(site_data, GPT2)
    yield engine
    engine.hold.clear()


class Panic(BaseException):
    """As libraries in Rust raise it."""


def test_the_worker_ends_with_its_computing_thread(
    engine: HeldEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def panic(_: Any) -> Any:
        raise Panic("zebra")

    monkeypatch.setattr(engine, "seeds", panic)
    failed = threading.Event()
    with listening(create_worker(engine, GPT2, "", Settings(), failed.set)) as worker:
        assert get(f"{worker}/health").status_code == 200
        started = time.monotonic()
        guilty = post(f"{worker}/seeds", SEEDS)
        assert time.monotonic() - started < 5
        assert (guilty.status_code, "retry-after" in guilty.headers) == (500, False)
        assert failed.wait(5)
        assert "the computing thread failed: Panic at" in caplog.text
        assert "zebra" not in caplog.text
        health = get(f"{worker}/health")
        assert (health.status_code, health.json()["status"]) == (503, 503)
        assert "the computing thread has ended (Panic)" in health.json()["detail"]
        for path in ("prompt", "prompt/events"):
            refused = post(f"{worker}/{path}", PROMPT)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0


@pytest.fixture
def panicking(tmp_path: Path) -> Path:
    """A data folder with the index of a model whose tokenizer splits at a pattern that takes for ever."""
    weights = small_gpt2(tmp_path / "weights", n_layers=1)
    file = weights / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, tokenizer["pre_tokenizer"]]}
    file.write_text(json.dumps(tokenizer))
    return quick_build(weights, tmp_path / "data").parent


@pytest.mark.slow
def test_a_tokenizer_that_panics(panicking: Path) -> None:
    app, site = asking_site(panicking)
    with listening(app) as url:
        until(lambda: post(f"{url}/weights/seeds", SEEDS).status_code == 200)
        assert site.live.worker_states() == {"weights": "ready"}
        keeper = site.live.supervisor.keeper("weights")
        first = keeper.pid

        prompt = post(f"{url}/weights/prompt", {**PROMPT, "text": PANIC})  # counted beside the computing thread
        assert prompt.status_code == 500
        assert "tokenizer fails" in prompt.json()["error"]["detail"]
        assert post(f"{url}/weights/seeds", SEEDS).status_code == 200
        assert keeper.pid == first

        started = time.monotonic()
        seeds = post(f"{url}/weights/seeds", {**SEEDS, "terms": [{"word": PANIC}]})  # ends the computing thread
        assert seeds.status_code == 500
        assert time.monotonic() - started < 10
        until(lambda: keeper.pid != first)
        until(lambda: post(f"{url}/weights/seeds", SEEDS).status_code == 200)


@pytest.mark.slow
def test_a_prompt_in_flight_when_the_server_stops(
    site_data: Path, engine: HeldEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(worker_app(engine, GPT2, held_engine(site_data, GPT2)[1])) as worker:
        monkeypatch.setenv("LEXISCOPE_WORKER_URL", worker)
        with serving("--data", site_data) as (server, url):
            engine.hold.set()
            thread, answers = in_thread(lambda: get(f"{url}/{GPT2}/prompt.json?text=the+zebra"))
            until(lambda: engine.batches)
            server.send_signal(signal.SIGTERM)
            thread.join(30)
            _, err = server.communicate(timeout=20)
    assert answers[0].status_code == 503
    assert int(answers[0].headers["retry-after"]) > 0
    assert answers[0].json()["error"]["status"] == 503
    assert "Traceback" not in err
    assert "zebra" not in err


def test_a_body_that_never_comes(engine: HeldEngine) -> None:
    app = worker_app(engine, GPT2, "", body_seconds=0.3)
    with listening(app) as worker:
        address = urlsplit(worker)
        with socket.create_connection((address.hostname, address.port or 80), timeout=20) as connection:
            connection.sendall(b"POST /seeds HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the setting body_seconds" in answer
