"""Visitors of event streams who leave, and too many of them, over HTTP with a worker that can be held up."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from app.server import create_app
from app.settings import Settings
from tests.support.site import GPT2
from tests.support.workers import HeldEngine, held_engine, listening, until, worker_app

EVENTS = f"/{GPT2}/prompt.events?text=the+dog"


@pytest.fixture(scope="module")
def engine_and_url(site_data: Path) -> Iterator[tuple[HeldEngine, str]]:
    engine, weights = held_engine(site_data, GPT2)
    with (
        listening(worker_app(engine, GPT2, weights)) as worker,
        listening(create_app(Settings(data=site_data, worker_url=worker, streams=1))) as url,
    ):
        yield engine, url


def test_a_run_ends_when_its_visitor_leaves(engine_and_url: tuple[HeldEngine, str]) -> None:
    """And makes room for another stream; until then one more is refused."""
    engine, url = engine_and_url
    engine.hold.set()
    with httpx2.stream("GET", url + EVENTS, timeout=30, verify=False) as response:
        lines = response.iter_lines()  # forgotten, it would close the connection
        assert next(lines) == "event: progress"
        until(lambda: engine.batches)
        refused = httpx2.get(url + EVENTS, timeout=30, verify=False)
        assert (refused.status_code, "the setting streams" in refused.text) == (503, True)
    until(lambda: engine.given_up)
    engine.hold.clear()
    until(lambda: httpx2.get(url + EVENTS, timeout=30, verify=False).status_code == 200)
