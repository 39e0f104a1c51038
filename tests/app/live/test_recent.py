"""Recent answers of runs, which the server keeps: equal asks do not reach the worker again, by either route."""

from pathlib import Path
from typing import Any

import pytest

from lexiscope.app.live.recent import RecentAnswers, key_of
from lexiscope.precompute.live.wire.asks import PromptAsk
from tests.support.site import GPT2
from tests.support.workers import PROMPT, HeldEngine, asking_site, listening, post, worker_app

ASK = PromptAsk(text="a", panel=("sheet",))


def test_keys_differ_with_all_that_an_answer_depends_on() -> None:
    others = [
        ASK.model_copy(update={"text": "b"}),
        ASK.model_copy(update={"k": 6}),
        ASK.model_copy(update={"spare": 1}),
    ]
    keys = {key_of("m", "1", ask) for ask in (ASK, *others)} | {key_of("m", "2", ASK), key_of("n", "1", ASK)}
    assert len(keys) == 6
    assert key_of("m", "1", ASK.model_copy()) in keys


def test_the_one_unused_longest_makes_room() -> None:
    recent = RecentAnswers(10)
    for key, answer in ((b"a", b"1234"), (b"b", b"1234"), (b"a", b"123456")):
        recent.keep(key, answer)
    assert recent.find(b"b") == b"1234"
    recent.keep(b"c", b"1")
    assert [recent.find(key) for key in (b"a", b"b", b"c")] == [None, b"1234", b"1"]
    recent.keep(b"d", b"x" * 11)  # too long to be kept, and so it drives nothing out
    assert [recent.find(key) for key in (b"b", b"c", b"d")] == [b"1234", b"1", None]
    recent.keep(b"e", b"1234567890")
    assert recent.find(b"e")


@pytest.mark.slow
@pytest.mark.parametrize(("megabytes", "runs"), [(1, 1), (0, 4)])
def test_equal_asks_are_run_once(
    site_data: Path, loaded: tuple[HeldEngine, str], engine: HeldEngine, megabytes: int, runs: int
) -> None:
    with listening(worker_app(engine, GPT2, loaded[1])) as worker:
        app, _ = asking_site(site_data, worker_url=worker, recent_answers_mb=megabytes)
        with listening(app) as url:
            answers = [post(f"{url}/{GPT2}/prompt", PROMPT) for _ in range(2)]
            assert answers[0].json() == answers[1].json()
            said = [post(f"{url}/{GPT2}/events", PROMPT).text.split() for _ in range(2)]
            assert {len(words) > 1 for words in said} == {runs > 1}  # a kept answer comes without any progress
            assert len(engine.batches) == runs
            for other in ({"text": "dog"}, {"panel": ["neurons"]}, {"layer": 0}):
                assert post(f"{url}/{GPT2}/prompt", {**PROMPT, **other}).status_code == 200
            assert len(engine.batches) == runs + 3


@pytest.mark.slow
def test_an_error_is_not_kept(site_data: Path, loaded: tuple[HeldEngine, str], engine: HeldEngine) -> None:
    wrong: dict[str, Any] = {**PROMPT, "layer": 99}
    with listening(worker_app(engine, GPT2, loaded[1])) as worker:
        app, _ = asking_site(site_data, worker_url=worker, recent_answers_mb=1)
        with listening(app) as url:
            assert [post(f"{url}/{GPT2}/prompt", wrong).status_code for _ in range(2)] == [404, 404]
            assert len(engine.batches) == 2
