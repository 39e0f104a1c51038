"""The worker over HTTP, around a real engine: answers, limits, batches, streams, and all that is malformed.
What the server makes of it is for test_worker_faults.py; the mathematics has tests of its own."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.workers.protocol import WEIGHTS_HEADER, Fault, Health
from precompute.live.wire import PromptAnswer, PromptAsk, SeedsAnswer, SeedsAsk
from tests.support.site import GPT2
from tests.support.workers import (
    PROMPT,
    SEEDS,
    HeldEngine,
    get,
    held_engine,
    in_thread,
    listening,
    post,
    until,
    worker_app,
)

LIMITS = {"queue": 4, "seeds_limit": 8, "prompt_tokens": 60, "batch_wait_ms": 20, "access_log": True}


@pytest.fixture(scope="module")
def loaded(site_data: Path) -> tuple[HeldEngine, str]:
    return held_engine(site_data, GPT2)


@pytest.fixture(scope="module")
def worker(loaded: tuple[HeldEngine, str]) -> Iterator[str]:
    engine, weights = loaded
    with listening(worker_app(engine, GPT2, weights, **LIMITS)) as url:
        yield url


@pytest.fixture
def engine(loaded: tuple[HeldEngine, str]) -> Iterator[HeldEngine]:
    engine = loaded[0]
    engine.batches.clear()
    engine.given_up.clear()
    yield engine
    engine.hold.clear()


def health(worker: str) -> Health:
    return Health.model_validate_json(get(f"{worker}/health").content)


def test_it_answers_as_the_engine_does(worker: str, engine: HeldEngine) -> None:
    found = SeedsAnswer.model_validate_json(post(f"{worker}/seeds", SEEDS).content)
    assert [found] == engine.seeds([SeedsAsk.model_validate(SEEDS)])
    assert len(found.results) == 5
    run = PromptAnswer.model_validate_json(post(f"{worker}/prompt", PROMPT).content)
    assert [run] == engine.prompts([PromptAsk.model_validate(PROMPT)])


@pytest.mark.parametrize(("path", "ask"), [
    ("relation", {"pairs": [{"source": "France", "target": "Paris"}]}),
    ("reading", {"kind": "ff_value", "layer": 1, "index": 3, "reading": "norm", "k": 5}),
])  # fmt: skip
def test_the_other_asks(worker: str, path: str, ask: Any) -> None:
    answer = post(f"{worker}/{path}", ask)
    assert answer.status_code == 200, answer.text


def test_health(worker: str, loaded: tuple[HeldEngine, str]) -> None:
    found = health(worker)
    assert (found.model, found.weights_sha256, found.device) == (GPT2, loaded[1], "cpu")
    assert (found.queue, found.busy) == (0, False)
    post(f"{worker}/seeds", SEEDS)
    assert 'lexiscope_requests_total{route="/seeds",status="200"}' in get(f"{worker}/metrics").text


LONG = "dog " * 400
JSON = {"content-type": "application/json"}
MALFORMED: list[tuple[str, bytes, int, str]] = [
    ("/seeds", b"", 422, "Field required"),
    ("/seeds", b"{", 422, "JSON decode error"),
    ("/seeds", b"\xff\xfe", 422, ""),
    ("/seeds", b"null", 422, ""),
    ("/seeds", b"[" * 100_000, 400, ""),
    ("/seeds", b"{}", 422, "terms: Field required"),
    ("/seeds", b'{"terms": [], "kinds": ["ff_key"]}', 422, "terms"),
    ("/seeds", b'{"terms": [{"word": ""}], "kinds": ["ff_key"]}', 422, "terms.0.word"),
    ("/seeds", b'{"terms": [{"word": "   "}], "kinds": ["ff_key"]}', 404, "has no tokens"),
    ("/seeds", b'{"terms": [{"word": "\\ud800"}], "kinds": ["ff_key"]}', 422, ""),
    ("/seeds", b'{"terms": [{"word": "dog", "weight": NaN}], "kinds": ["ff_key"]}', 422, "terms.0.weight"),
    ("/seeds", b'{"terms": [{"word": "dog", "weight": 1e999}], "kinds": ["ff_key"]}', 422, "terms.0.weight"),
    ("/seeds", b'{"terms": [{"word": "dog"}], "kinds": ["w_z"]}', 404, "w_z"),
    ("/seeds", b'{"terms": [{"word": "dog"}], "kinds": ["ff_key"], "n": 1000000}', 422, "n: "),
    ("/seeds", b'{"terms": [{"word": "dog"}], "kinds": ["ff_key"], "more": 1}', 422, "more"),
    ("/seeds", b" " * 1_100_000, 413, "1048576 bytes (the setting body_limit)"),
    ("/seeds", json.dumps({**SEEDS, "terms": [{"word": "dog"}] * 9}).encode(), 413, "9 words: up to 8"),
    ("/prompt", json.dumps({"text": LONG}).encode(), 413, "tokens: up to 60 are read (the setting prompt_tokens)"),
    ("/prompt", b'{"text": ""}', 422, "text"),
    ("/prompt", b'{"text": "dog", "position": 99}', 404, "99"),
    ("/prompt", b'{"text": "dog", "position": -1}', 404, "-1"),
    ("/prompt", b'{"text": "dog", "layer": 1%s}' % (b"0" * 30), 404, "layer"),
    ("/prompt", b'{"text": "dog", "panels": ["everything"]}', 422, "panels"),
    ("/prompt", b'{"text": "dog", "interventions": [{"kind": "head", "layer": 0, "head": 99}]}', 404, "head 99"),
    ("/prompt", b'{"text": "dog", "interventions": [{"kind": "layer"}]}', 422, "interventions"),
    ("/prompt/events", b'{"text": ""}', 422, "text"),
    ("/relation", b'{"pairs": []}', 422, "pairs"),
    ("/reading", b'{"kind": "ff_key", "layer": 99, "index": 0, "reading": "norm"}', 404, "99"),
    ("/nothing", b"{}", 404, "POST /seeds"),
]


@pytest.mark.parametrize(("path", "body", "status", "said"), MALFORMED)
def test_malformed(worker: str, path: str, body: bytes, status: int, said: str) -> None:
    answer = httpx2.post(worker + path, content=body, headers=JSON, timeout=30, verify=False)
    fault = Fault.model_validate_json(answer.content)
    assert (answer.status_code, fault.status) == (status, status), answer.text
    assert said in fault.detail
    assert len(fault.detail) < 1000
    assert post(f"{worker}/seeds", SEEDS).status_code == 200


def test_only_post(worker: str) -> None:
    assert get(f"{worker}/seeds").status_code == 405


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
        got = PromptAnswer.model_validate_json(answer.content)
        assert isinstance(expected, PromptAnswer)
        assert got.tokens == expected.tokens
        assert [each.id for each in got.prediction] == [each.id for each in expected.prediction]


def test_the_queue_is_bounded_and_recovers(worker: str, engine: HeldEngine) -> None:
    engine.hold.set()
    running, _ = in_thread(lambda: post(f"{worker}/prompt", PROMPT))
    until(lambda: engine.batches)
    with ThreadPoolExecutor(12) as threads:
        answers = [threads.submit(post, f"{worker}/prompt", PROMPT) for _ in range(12)]
        until(lambda: sum(answer.done() for answer in answers) == 12 - 4)
        assert health(worker).queue == 4
        refused = next(answer.result() for answer in answers if answer.done())
        engine.hold.clear()
        statuses = sorted(answer.result().status_code for answer in answers)
    running.join()
    assert statuses == [200] * 4 + [503] * 8
    assert refused.json()["detail"] == "4 requests wait already (the setting queue)"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert post(f"{worker}/prompt", PROMPT).status_code == 200


@pytest.mark.parametrize("events", ["", "/events"])
def test_who_hangs_up_is_cancelled(worker: str, engine: HeldEngine, events: str) -> None:
    """Both the one that is computed and the one that waits."""
    engine.hold.set()
    for _ in range(2):
        thread, found = in_thread(lambda: post(f"{worker}/prompt{events}", PROMPT, timeout=0.3))
        thread.join()
        assert isinstance(found[0], httpx2.ReadTimeout)
    until(lambda: engine.given_up, 15)
    until(lambda: not health(worker).busy and not health(worker).queue, 15)
    engine.hold.clear()
    assert post(f"{worker}/prompt", PROMPT).status_code == 200


def test_a_stream_tells_how_far_it_is(worker: str, engine: HeldEngine) -> None:
    body = post(f"{worker}/prompt/events", PROMPT)
    assert body.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in body.text.strip().split("\n\n")]
    names = [event.removeprefix("event: ") for event, _ in events]
    assert set(names[:-1]) == {"progress"}
    assert json.loads(events[0][1].removeprefix("data: ")) == {"stage": "waiting", "share": 0.0}
    assert names[-1] == "result"
    run = PromptAnswer.model_validate_json(events[-1][1].removeprefix("data: "))
    assert [run] == engine.prompts([PromptAsk.model_validate(PROMPT)])


@pytest.fixture(scope="module")
def hasty(loaded: tuple[HeldEngine, str]) -> Iterator[str]:
    with listening(worker_app(loaded[0], GPT2, loaded[1], request_seconds=0.3)) as url:
        yield url


def test_what_takes_too_long_ends(hasty: str, engine: HeldEngine) -> None:
    engine.hold.set()
    late = post(f"{hasty}/prompt", PROMPT)
    assert (late.status_code, late.json()["status"]) == (504, 504)
    assert "longer than 0.3 seconds (the setting request_seconds)" in late.json()["detail"]
    streamed = post(f"{hasty}/prompt/events", PROMPT).text
    fault = Fault.model_validate_json(streamed.strip().split("\n\n")[-1].split("\n")[1].removeprefix("data: "))
    assert fault.status == 504
    until(lambda: not health(hasty).busy)
    assert len(engine.given_up) == 2


def test_a_failure_hurts_nobody_else_and_tells_no_words(
    worker: str, engine: HeldEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = engine.seeds

    def failing(asks: Any) -> Any:
        if any(term.word == "secret" for ask in asks for term in ask.terms):
            raise ValueError("secret")
        return real(asks)

    monkeypatch.setattr(engine, "seeds", failing)
    engine.hold.set()  # of prompts: while one is computed, both searches wait and share a batch
    blocker, _ = in_thread(lambda: post(f"{worker}/prompt", PROMPT))
    until(lambda: engine.batches)
    good, good_answer = in_thread(lambda: post(f"{worker}/seeds", SEEDS))
    bad, bad_answer = in_thread(lambda: post(f"{worker}/seeds", {**SEEDS, "terms": [{"word": "secret"}]}))
    until(lambda: health(worker).queue == 2)
    engine.hold.clear()
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
        post(f"{worker}/seeds", {**SEEDS, "terms": [{"word": "zebra"}]})
        post(f"{worker}/prompt", {"text": "zebra " * 300})
        post(f"{worker}/prompt", {"text": "zebra", "position": 100})
        httpx2.post(f"{worker}/seeds", content=b'{"zebra', headers=JSON, verify=False)
        httpx2.post(f"{worker}/zebra?zebra=zebra", content=b"{}", headers=JSON, verify=False)
    assert "POST /seeds 200" in caplog.text
    assert "POST none 404" in caplog.text
    assert "zebra" not in caplog.text


def test_health_answers_while_it_computes(worker: str, engine: HeldEngine) -> None:
    engine.hold.set()
    thread, _ = in_thread(lambda: post(f"{worker}/prompt", PROMPT))
    until(lambda: health(worker).busy_seconds > 0.05)
    assert health(worker).busy
    engine.hold.clear()
    thread.join()
