"""Lists of patterns on a page: k tokens each, and hubs that will be left out take no place among these."""

from pathlib import Path

import pytest

from lexiscope.app.lists.kept_tokens import keep_tokens
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import HeadPattern, Look, Message, PromptAnswer, ScoredToken, TokenPattern
from tests.support.crowded import BYTE, DOG, make
from tests.support.views import make_view

TOKENS = [ScoredToken(id=token, score=10.0 - at) for at, token in enumerate([40, DOG, 41, BYTE, 42, 43])]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder: Path = tmp_path_factory.mktemp("crowded") / "tiny"
    return make(folder, {"dot": (DOG, BYTE)}, 0.8)


def answer() -> PromptAnswer:
    here = Look(position=0, weight=1.0)
    message = Message(position=0, weight=1.0, tokens=TOKENS)
    head = HeadPattern(head=0, pattern=TOKENS, found_by=TOKENS, found_from=here, message=TOKENS, messages=[message])
    token = TokenPattern(position=0, pattern=TOKENS, looks_at=here, found_by=TOKENS, found_from=None, message=TOKENS)
    return PromptAnswer(
        predicts="next", tokens=[{"id": 40}, {"id": 41}], bos={"token": None, "by": "nobody"},
        position=1, layer=0, prediction=[], untouched=[], lists=[],
        patterns=[head], patterns_by_token=[token],
    )  # fmt: skip


@pytest.mark.parametrize(("k", "shown", "kept", "left_out"), [
    (1, [40], [40], 0), (3, [40, DOG, 41], [40, 41, 42], 2), (4, [40, DOG, 41, BYTE], [40, 41, 42, 43], 2),
])  # fmt: skip
def test_as_many_remain_as_were_asked_for(
    index: Index, k: int, shown: list[int], kept: list[int], left_out: int
) -> None:
    assert {DOG, BYTE} <= index.hubs("dot")
    for hide_hubs, expected in ((False, shown), (True, kept)):
        view = make_view(
            index, "prompt", {}, {"hide_hubs": hide_hubs, "answers": [answer()]}, text="a", panel="patterns", k=k
        )
        if hide_hubs:
            view = keep_tokens(index, view, hide_hubs=True)
            assert view.hubs_hidden == 7 * left_out
        head, token = view.patterns[0], view.patterns_by_token[0]
        lists = [head["pattern"], head["found_by"], head["message"], head["messages"][0]["tokens"]]
        lists += [token["pattern"], token["found_by"], token["message"]]
        for listed in lists:
            assert [entry["id"] for entry in listed] == expected
