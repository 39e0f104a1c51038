"""Live lists without their hubs, and nearest tokens without theirs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lexiscope.app.lists.kept_tokens import keep_tokens
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import (
    HeadReading,
    ScoredToken,
    SeedResult,
    SeedsAnswer,
    ThroughHeadsAnswer,
    WordUsed,
)
from tests.support.crowded import BYTE, DOG, make, write_crowded_neighbours
from tests.support.views import make_view, token_view

LISTED = [ScoredToken(id=token, score=9.0 - at) for at, token in enumerate((BYTE, 40, DOG, 41, 42))]
READING = HeadReading(layer=1, head=0, writes=LISTED, seeks=LISTED[1:2], writes_alike=None, seeks_alike=None)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Under dot two tokens are hubs, under cosine none."""
    return make(tmp_path_factory.mktemp("crowded") / "tiny", {"dot": (DOG, BYTE)}, 0.8)


@pytest.mark.parametrize(("lens", "ranks"), [("dot", [2, 4, 5]), ("cosine", [1, 2, 3, 4, 5])])
def test_words_through_heads(index: Index, lens: str, ranks: list[int]) -> None:
    answer = ThroughHeadsAnswer(groups=[[WordUsed(word="x", tokens=[{"id": 41}])]], heads=[[READING]])
    shown = make_view(index, "heads", {}, {"answers": [answer]}, words="x", layers="1", lens=lens)
    view = keep_tokens(index, shown, hide_hubs=True)
    (cell,) = view.heads[0]["words"]
    assert [entry.get("rank", at) for at, entry in enumerate(cell["writes"], 1)] == ranks
    assert [entry["id"] for entry in cell["seeks"]] == [40]
    assert (view.hubs, view.hubs_hidden) == ("hide", 5 - len(ranks))
    assert (shown.hubs, len(shown.heads[0]["words"][0]["writes"])) == (None, 5)


def test_seeds_skip_them_and_fill_up(index: Index) -> None:
    result = SeedResult(kind="ff_value", layer=1, index=3, score=1.0, scores=[1.0], fit=None, cosine=None)
    answer: SeedsAnswer = {
        "terms": [], "nearest": LISTED, "results": [result], "heads": [READING], "lists": [], "rank": None, "near": {},
        "chance": None,
    }  # fmt: skip
    shown = make_view(index, "seeds", {}, {"answers": [answer]}, words="x")
    view = keep_tokens(
        index, make_view(index, "seeds", {}, {"hide_hubs": True, "answers": [answer]}, words="x"), hide_hubs=True
    )
    first = view.results[0]["top"] or []
    stored = index.shard(1).vector("ff_value", 3, "dot").ids[0].tolist()
    assert [token["id"] for token in first] == [token for token in stored if token not in (DOG, BYTE)][:8]
    assert [entry["id"] for entry in view.heads[0]["writes"]] == [40, 41, 42]
    assert len(view.nearest) == len(shown.nearest) == 5  # their hubs are others, and there are none here


def test_nearest_tokens_leave_out_their_hubs_and_name_them(tmp_path: Path) -> None:
    _, arrays = write_crowded_neighbours(tmp_path, BYTE)
    view, nearest = token_view(Index.open(tmp_path), 40), arrays["neighbours.ids"][40].tolist()
    assert [token["id"] for token in view.nearest or ()] == [token for token in nearest if token != BYTE]
    assert {token["id"] for token in view.nearest_hubs} == {BYTE}


def test_predictions_are_no_lists_of_a_vector(index: Index) -> None:
    """What the model says next may be a hub, as " the" is."""
    tokens: Any = [{"id": entry["id"], "token": "", "score": entry["score"]} for entry in LISTED]
    message: Any = {"position": 0, "weight": 1.0, "tokens": tokens}
    pattern: Any = {"head": 0, "pattern": tokens, "messages": [message]}
    form = make_view(index, "prompt", {}, panel="patterns")
    view = keep_tokens(index, replace(form, prediction=tokens, patterns=[pattern]), hide_hubs=True)
    assert view.prediction == tokens
    patterns: Any = view.patterns
    assert [entry["id"] for entry in patterns[0]["pattern"]] == [40, 41, 42]
    assert [entry["id"] for entry in patterns[0]["messages"][0]["tokens"]] == [40, 41, 42]
