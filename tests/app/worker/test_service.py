"""The worker over HTTP, around a real engine: answers, limits, batches, streams, its end, and all that is malformed.
What the server makes of it is for live/test_client.py; the mathematics has tests of its own."""

import json
import logging
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from lexiscope.app.settings import Settings
from lexiscope.app.worker.service import create_worker
from lexiscope.precompute.live.wire.answers import PromptAnswer, SeedsAnswer, StatesAnswer
from lexiscope.precompute.live.wire.asks import PromptAsk, SeedsAsk, StatesAsk, StatesReadingAsk
from lexiscope.precompute.live.wire.fields import adapter
from lexiscope.precompute.live.wire.protocol import WEIGHTS_HEADER, ErrorAnswer, Health
from tests.support.site import GPT2
from tests.support.workers import PROMPT, SEEDS, HeldEngine, get, in_thread, listening, post, until, worker_app

LIMITS = {
    "queue": 4, "seeds_limit": 8, "prompt_tokens": 60, "sheet_rows": 40, "batch_wait_ms": 20, "access_log": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def worker(loaded: tuple[HeldEngine, str]) -> Iterator[str]:
    engine, weights = loaded
    with listening(worker_app(engine, GPT2, weights, **LIMITS)) as url:
        yield url


def health(worker: str) -> Health:
    return Health.model_validate_json(get(f"{worker}/health").content)


def test_it_answers_as_the_engine_does(worker: str, engine: HeldEngine) -> None:
    found = adapter(SeedsAnswer).validate_json(post(f"{worker}/seeds", SEEDS).content)
    assert [found] == engine.seeds([SeedsAsk.model_validate(SEEDS)])
    assert len(found["results"]) == 5
    run = adapter(PromptAnswer).validate_json(post(f"{worker}/prompt", PROMPT).content)
    assert [run] == engine.prompts([PromptAsk.model_validate(PROMPT)])
    reading = {"kind": "ff_value", "layer": 1, "index": 3, "reading": "norm", "k": 5}
    through = {"words": [[{"word": "dog"}]], "layers": [0, 1]}
    relation = {"pairs": [{"source": "France", "target": "Paris"}]}
    for path, ask in (("relation", relation), ("heads", through), ("reading", reading)):
        assert post(f"{worker}/{path}", ask).status_code == 200
    states = adapter(StatesAnswer).validate_json(post(f"{worker}/states", {"text": "the dog", "layer": 0}).content)
    assert states == engine.answer(StatesAsk(text="the dog", layer=0))
    again = StatesReadingAsk(states=states["states"])
    read = post(f"{worker}/states-reading", again.model_dump(mode="json"))
    assert read.json() == engine.answer(again)


def test_health(worker: str, loaded: tuple[HeldEngine, str]) -> None:
    assert get(f"{worker}/seeds").status_code == 405
    found = health(worker)
    assert (found.model, found.weights_sha256, found.device) == (GPT2, loaded[1], "cpu")
    assert (found.queue, found.busy) == (0, False)
    post(f"{worker}/seeds", SEEDS)
    assert 'lexiscope_requests_total{route="/seeds",status="200"}' in get(f"{worker}/metrics").text


LONG = "dog " * 400
JSON = {"content-type": "application/json"}
MALFORMED: list[tuple[str, bytes, int, str]] = [
    ("/seeds", b"", 422, "Invalid JSON"),
    ("/seeds", b"[" * 100_000, 422, "Invalid JSON"),
    ("/seeds", b'{"words": [{"word": ""}], "kind": ["ff_key"]}', 422, "words.0.word"),
    ("/seeds", b'{"words": [{"word": "   "}], "kind": ["ff_key"]}', 404, "has no tokens"),
    ("/seeds", b'{"words": [{"word": "\\ud800"}], "kind": ["ff_key"]}', 422, ""),
    ("/seeds", b'{"words": [{"word": "dog", "weight": NaN}], "kind": ["ff_key"]}', 422, "words.0.weight"),
    ("/seeds", b'{"words": [{"word": "dog"}], "kind": ["ff_key"], "k": 1000000}', 422, "k: "),
    ("/seeds", b" " * 1_100_000, 413, "1048576 bytes (the setting body_limit)"),
    ("/seeds", json.dumps({**SEEDS, "words": [{"word": "dog"}] * 9}).encode(), 413, "9 words: up to 8"),
    ("/prompt", json.dumps({"text": LONG}).encode(), 413, "tokens: up to 60 are read (the setting prompt_tokens)"),
    ("/prompt", b'{"text": "dog", "position": 99}', 404, "99"),
    ("/prompt", b'{"text": "dog", "layer": 1%s}' % (b"0" * 30), 422, "layer"),
    ("/prompt", b'{"text": "dog", "off": "0.h99"}', 404, "head 99"),
    ("/prompt/events", b'{"text": ""}', 422, "text"),
    ("/prompt", json.dumps({**PROMPT, "panel": ["sheet"]}).encode(), 413, "up to 40 (the setting sheet_rows)"),
    ("/states", json.dumps({"text": LONG}).encode(), 413, "tokens: up to 60 are read (the setting prompt_tokens)"),
    ("/states", b'{"text": "dog", "layer": 99}', 404, "layer 99 does not exist here"),
    ("/states-reading", b'{"states": "AAAA"}', 422, "the states have 3 bytes"),
    ("/states-reading", b'{"states": "%s"}' % (b"AAAA" * 3200), 413, "tokens: up to 60 are read"),
    ("/states-reading", b'{"states": "%s"}' % b64encode(b"\xff" * 128), 422, "the states hold what is no number"),
    ("/nothing", b"{}", 404, " /seeds "),
]


@pytest.mark.parametrize(("path", "body", "status", "said"), MALFORMED)
def test_malformed(worker: str, path: str, body: bytes, status: int, said: str) -> None:
    answer = httpx2.post(worker + path, content=body, headers=JSON, timeout=120, verify=False)
    error = ErrorAnswer.model_validate_json(answer.content)
    assert (answer.status_code, error.status) == (status, status), answer.text
    assert said in error.detail
    assert len(error.detail) < 1000
    assert post(f"{worker}/seeds", SEEDS).status_code == 200


def test_other_weights_are_not_asked(worker: str, loaded: tuple[HeldEngine, str]) -> None:
    assert post(f"{worker}/seeds", SEEDS, {WEIGHTS_HEADER: loaded[1]}).status_code == 200
    refused = post(f"{worker}/seeds", SEEDS, {WEIGHTS_HEADER: "0" * 64})
    assert refused.status_code == 409
    assert "not 000000000000" in refused.json()["detail"]


def test_prompts_of_like_length_run_together(worker: str, engine: HeldEngine) -> None:
    engine.hold.set()
    first, _ = in_thread(lambda: post(f"{worker}/prompt", PROMPT))
    until(lambda: engine.batches)
    texts = ["The dog saw the lion", "The lion saw the dog", "dog"]
    alone = [engine.token_count(text) for text in texts]
    assert alone[0] == alone[1] > 2 * alone[2]
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(post, f"{worker}/prompt", {**PROMPT, "text": text}) for text in texts]
        until(lambda: health(worker).queue == 3)
        engine.hold.clear()
        found = [answer.result() for answer in answers]
    first.join()
    assert sorted(map(sorted, engine.batches[1:])) == sorted([sorted(texts[:2]), ["dog"]])
    for text, answer in zip(texts, found, strict=True):
        (expected,) = engine.prompts([PromptAsk.model_validate({**PROMPT, "text": text})])
        got = adapter(PromptAnswer).validate_json(answer.content)
        assert isinstance(expected, dict)
        assert got["tokens"] == expected["tokens"]
        assert [each["id"] for each in got["prediction"]] == [each["id"] for each in expected["prediction"]]


def test_what_takes_too_long_ends(loaded: tuple[HeldEngine, str], engine: HeldEngine) -> None:
    engine.hold.set()
    with listening(worker_app(engine, GPT2, loaded[1], request_seconds=0.3)) as hasty:
        late = post(f"{hasty}/prompt", PROMPT)
        assert (late.status_code, late.json()["status"]) == (504, 504)
        assert "longer than 0.3 seconds (the setting request_seconds)" in late.json()["detail"]
        streamed = post(f"{hasty}/prompt/events", PROMPT).text
        error = ErrorAnswer.model_validate_json(
            streamed.strip().split("\n\n")[-1].split("\n")[1].removeprefix("data: ")
        )
        assert error.status == 504
        until(lambda: not health(hasty).busy)
    assert engine.given_up == engine.batches


def test_a_failure_hurts_nobody_else_and_tells_no_words(
    worker: str, engine: HeldEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, started, free = engine.seeds, threading.Event(), threading.Event()

    def failing(asks: Any) -> Any:
        started.set()
        assert free.wait(120)
        if any(term.word == "secret" for ask in asks for term in ask.words):
            raise ValueError("secret")
        return real(asks)

    monkeypatch.setattr(engine, "seeds", failing)
    blocker, _ = in_thread(lambda: post(f"{worker}/seeds", {**SEEDS, "k": 1}))
    assert started.wait(120)  # while one is computed, both others wait and share a batch
    good, good_answer = in_thread(lambda: post(f"{worker}/seeds", SEEDS))
    bad, bad_answer = in_thread(lambda: post(f"{worker}/seeds", {**SEEDS, "words": [{"word": "secret"}]}))
    until(lambda: health(worker).queue == 2)
    free.set()
    for thread in (blocker, good, bad):
        thread.join()
    assert good_answer[0].status_code == 200
    assert bad_answer[0].status_code == 500
    assert "secret" not in bad_answer[0].text
    assert "a live computation failed: ValueError at" in caplog.text
    assert "secret" not in caplog.text


def test_nothing_typed_is_logged(worker: str, caplog: pytest.LogCaptureFixture) -> None:
    """Though each request is."""
    with caplog.at_level(logging.INFO, "lexiscope"):
        post(f"{worker}/seeds", {**SEEDS, "words": [{"word": "zebra"}]})
        post(f"{worker}/prompt", {"text": "zebra " * 300})
        post(f"{worker}/prompt", {"text": "zebra", "position": 100})
        httpx2.post(f"{worker}/seeds", content=b'{"zebra', headers=JSON, verify=False)
        httpx2.post(f"{worker}/zebra?zebra=zebra", content=b"{}", headers=JSON, verify=False)
        until(lambda: "POST none 404" in caplog.text)  # it is logged after the answer has left
    assert "POST /seeds 200" in caplog.text
    assert "zebra" not in caplog.text


class Panic(BaseException):
    """As libraries in Rust raise it."""


def test_the_worker_ends_with_its_computing_thread(
    engine: HeldEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def panic(_: Any) -> Any:
        raise Panic("zebra")

    monkeypatch.setattr(engine, "seeds", panic)
    failed = threading.Event()
    with listening(create_worker(engine, GPT2, "", Settings(request_seconds=3600), failed.set)) as worker:
        assert get(f"{worker}/health").status_code == 200
        guilty = post(f"{worker}/seeds", SEEDS)
        assert (guilty.status_code, "retry-after" in guilty.headers) == (500, False)
        assert failed.wait(120)
        assert "the computing thread failed: Panic at" in caplog.text
        assert "zebra" not in caplog.text
        health = get(f"{worker}/health")
        assert (health.status_code, health.json()["status"]) == (503, 503)
        assert "the computing thread has ended (Panic)" in health.json()["detail"]
        for path in ("prompt", "prompt/events"):
            refused = post(f"{worker}/{path}", PROMPT)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0


def test_a_tokenizer_that_panics(worker: str, engine: HeldEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt's tokens are counted beside the computing thread, which goes on."""

    def panic(*_: Any) -> int:
        raise Panic

    monkeypatch.setattr(engine, "token_count", panic)
    prompt = post(f"{worker}/prompt", PROMPT)
    assert (prompt.status_code, "tokenizer fails" in prompt.json()["detail"]) == (500, True)
    assert post(f"{worker}/seeds", SEEDS).status_code == 200


def test_a_body_that_never_comes(engine: HeldEngine) -> None:
    app = worker_app(engine, GPT2, "", body_seconds=0.3)
    with listening(app) as worker:
        address = urlsplit(worker)
        with socket.create_connection((address.hostname, address.port or 80), timeout=120) as connection:
            connection.sendall(b"POST /seeds HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the setting body_seconds" in answer
