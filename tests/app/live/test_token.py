"""The token that keeps others out of a worker: what is open without it, what the server says where the two differ, and
that nobody ever sees it."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from lexiscope.app.settings import HIDDEN, Settings, load
from lexiscope.precompute.errors import ServeError
from tests.support.site import GPT2, visit
from tests.support.workers import PROMPT, SEEDS, HeldEngine, asking_site, listening, post, worker_app

TOKEN = "0123456789-a-secret"


@pytest.fixture(scope="module")
def worker(loaded: tuple[HeldEngine, str]) -> Iterator[str]:
    engine, weights = loaded
    with listening(worker_app(engine, GPT2, weights, worker_token=TOKEN)) as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("sent", [None, TOKEN, f"Bearer {TOKEN}x", "Bearer", "Bearer \xff"])
def test_who_does_not_send_it_is_refused(worker: str, sent: str | None) -> None:
    headers = [] if sent is None else [(b"authorization", sent.encode("latin-1"))]
    with httpx2.Client(base_url=worker, headers=headers, verify=False) as client:
        refusals = [
            client.post("/seeds", json=SEEDS),
            client.post("/prompt/events", json=PROMPT),
            client.post("/seeds", content=b"not even JSON"),
            client.get("/metrics"),
            client.get("/nothing"),
        ]
        health = client.get("/health").json()
    for refusal in refusals:
        assert (refusal.status_code, refusal.headers["www-authenticate"]) == (401, "Bearer")
        assert "LEXISCOPE_WORKER_TOKEN" in refusal.json()["detail"]
        assert TOKEN not in refusal.text
    assert (health["model"], health["may_ask"]) == (GPT2, False)  # for load balancers


@pytest.mark.slow
def test_who_sends_it_is_answered(worker: str) -> None:
    known = {"authorization": f"Bearer {TOKEN}"}
    assert post(f"{worker}/seeds", SEEDS, known).status_code == 200
    assert post(f"{worker}/prompt/events", PROMPT, known).text.count("event: result") == 1
    assert httpx2.get(f"{worker}/health", headers=known, verify=False).json()["may_ask"] is True
    assert httpx2.get(f"{worker}/metrics", headers=known, verify=False).status_code == 200


@pytest.mark.slow
def test_a_server_that_knows_it(site_data: Path, worker: str) -> None:
    app, state = asking_site(site_data, worker_url=worker, worker_token=TOKEN)
    with listening(app) as url:
        assert post(f"{url}/{GPT2}/seeds", SEEDS).status_code == 200
        assert post(f"{url}/{GPT2}/events", PROMPT).text.endswith("PromptAnswer\n")
        assert state.live.worker_states() == {"every model": "ready"}


@pytest.mark.slow
@pytest.mark.parametrize("other", ["", "another-secret-0123456789"])
def test_a_server_that_does_not(site_data: Path, worker: str, other: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), visit(site_data, worker_url=worker, worker_token=other) as visitor:
        for _ in range(2):
            answer = visitor.get(f"/{GPT2}/seeds.json?words=dog")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
            said = f"the worker of {GPT2} does not know this server: LEXISCOPE_WORKER_TOKEN must be the same"
            assert answer.json()["error"]["detail"].startswith(said)
        assert visitor.get("/-/health").json()["workers"] == {"every model": "refused"}
        shown = answer.text + visitor.get("/-/health").text + visitor.get("/-/settings").text
        shown += visitor.get("/-/settings.json").text
    assert TOKEN not in shown + caplog.text
    assert not other or other not in shown + caplog.text


def test_it_is_never_shown(site_data: Path) -> None:
    settings = Settings(worker_token=TOKEN)
    assert TOKEN not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    with visit(site_data, worker_token=TOKEN) as visitor:
        rows = {row["name"]: row for row in visitor.get("/-/settings.json").json()["settings"]}
        page = visitor.get("/-/settings").text
    assert (rows["worker_token"]["value"], rows["worker_token"]["default"]) == (HIDDEN, "")
    assert TOKEN not in page


@pytest.mark.parametrize(
    "token", ["short", "fifteen-letters", "with a space 0123456789", "ünïcödé-0123456789", "end\n" * 9]
)
def test_one_that_cannot_be_sent_or_is_easily_guessed(token: str) -> None:
    with pytest.raises(ServeError, match=r"LEXISCOPE_WORKER_TOKEN: .*16 or more") as error:
        load(worker_token=token)
    assert token not in str(error.value)
