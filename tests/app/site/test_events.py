"""Visitors of event streams who leave, and too many of them, over HTTP with a worker that can be held up."""

from pathlib import Path

import httpx2

from lexiscope.app.settings import Settings
from lexiscope.app.site.server import create_app
from tests.support.site import GPT2
from tests.support.workers import HeldEngine, get, listening, until, worker_app

EVENTS = f"/{GPT2}/prompt.events?text=the+dog"


def test_a_run_ends_when_its_visitor_leaves(
    site_data: Path, loaded: tuple[HeldEngine, str], engine: HeldEngine
) -> None:
    """And makes room for another stream; until then one more is refused."""
    engine.hold.set()
    with (
        listening(worker_app(engine, GPT2, loaded[1])) as worker,
        listening(create_app(Settings(data=site_data, worker_url=worker, streams=1))) as url,
    ):
        with httpx2.stream("GET", url + EVENTS, timeout=120, verify=False) as response:
            lines = response.iter_lines()  # forgotten, it would close the connection
            assert next(lines) == "event: progress"
            until(lambda: engine.batches)
            refused = get(url + EVENTS)
            assert (refused.status_code, "the setting streams" in refused.text) == (503, True)
        until(lambda: engine.given_up)
        engine.hold.clear()
        until(lambda: get(url + EVENTS).status_code == 200)
