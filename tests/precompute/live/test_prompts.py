"""Prompts in company: the same answers as alone, interventions that stay with their own, limits, progress, an end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch.nn.functional import cosine_similarity

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound
from lexiscope.precompute.live.wire.asks import PANEL_NAMES, PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from tests.precompute.live.reference import TEXT, Case, changed, ids, numbers

TOUCHES: list[dict[str, Any]] = [
    {"kind": "head", "layer": 1, "head": 2},
    {"kind": "neuron", "layer": 0, "neuron": 1, "value": 3.0},
]
TEXTS = (TEXT, "The dog", "a lion and a horse in the grass of the farm", "The dog and the lion saw the horse in Rome")


def same(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    """Equal, numbers to 1e-5; shares of the variance of a head's scores, which may be next to 0, to 1e-4."""
    if isinstance(one, float):
        assert abs(one - other) <= tolerance * (1 + abs(one))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            same(value, other[key], 1e-4 if key == "parts" else tolerance)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for x, y in zip(one, other, strict=True):
            same(x, y, tolerance)
    else:
        assert one == other


def test_company_changes_nothing(every: Case) -> None:
    """Of other lengths, and with interventions of their own."""
    asks = [
        PromptAsk.model_validate({"text": text, "panel": PANEL_NAMES, "layer": 0, **changed(touches)})
        for text in TEXTS
        for touches in ([], TOUCHES)
    ]
    for ask, answer in zip(asks, every.engine.prompts(asks), strict=True):
        assert isinstance(answer, dict)
        (alone,) = every.engine.prompts([ask])
        assert isinstance(alone, dict)
        same(answer, alone)


@pytest.mark.parametrize("panel", [None, *PANEL_NAMES])
def test_panels_that_nobody_asked_for_are_not_there(case: Case, panel: str | None) -> None:
    answer = case.ask(panel=(panel,) if panel else set())
    for each in PANEL_NAMES:
        assert (each in answer) == (each == panel)
    assert ("appears" in answer) == (panel == "evolution")


def test_the_prediction_is_the_models(case: Case) -> None:
    for position in (None, 0, 4):
        answer = case.ask(position=position, k=10)
        logits = case.run(ids(answer["tokens"])).logits
        assert logits is not None
        p = logits[answer["position"]].softmax(dim=0).topk(10)
        assert [likely["id"] for likely in answer["prediction"]] == p.indices.tolist()
        np.testing.assert_allclose(numbers(answer["prediction"]), p.values, atol=1e-5)
    assert answer["layer"] == case.engine.shape.n_layers - 1


@pytest.mark.parametrize(("family", "mask"), [
    ("bert", "[MASK]"), ("distilbert", "[MASK]"), ("roberta", "<mask>"), ("xlm-roberta", "<mask>"),
    ("bert-bare", "[MASK]"),
])  # fmt: skip
def test_an_encoder_tells_what_stands_at_the_mask(case_of: Callable[[str], Case], family: str, mask: str) -> None:
    case = case_of(family)
    answer = case.ask(f"The dog saw the {mask} in Paris.", panel=("evolution",), k=10)
    assert case.engine.words.tokenizer.id_to_token(ids(answer["tokens"])[answer["position"]]) == mask
    run = case.run(ids(answer["tokens"]))
    if run.logits is None:
        assert answer["predicts"] == "nearest"
        W, x = case.model.W_U, run.streams[2, "ff"][answer["position"]]
        best = cosine_similarity(x, W - W.mean(dim=0), dim=1).topk(10)
    else:
        assert answer["predicts"] == "masked"
        best = run.logits[answer["position"]].softmax(dim=0).topk(10)
    assert [likely["id"] for likely in answer["prediction"]] == best.indices.tolist()
    np.testing.assert_allclose(numbers(answer["prediction"]), best.values, atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "kind", "said"),
    [
        ({"text": "dog " * 200}, BadRequest, "only 64 positions"),
        ({"text": "do\udcffg"}, BadRequest, "not UTF-8"),
        ({"position": 99}, NotFound, "position 99"),
        ({"position": -1}, NotFound, "position -1"),
        ({"layer": 7}, NotFound, "layer 7"),
        ({"off": [{"kind": "head", "layer": 0, "head": 4}]}, NotFound, "head 4"),
        ({"off": [{"kind": "head", "layer": -1, "head": 0}]}, NotFound, "layer -1"),
        ({"neurons": [{"layer": 0, "neuron": 5000}]}, NotFound, "neuron 5000"),
        ({"off": [{"kind": "head", "layer": 0, "head": 0, "position": 99}]}, NotFound, "position 99"),
        ({"off": [{"kind": "neuron", "layer": 0, "neuron": 5000}]}, NotFound, "neuron 5000"),
        ({"set": [{"kind": "neuron", "layer": 0, "neuron": 1, "value": 1e38}]}, BadRequest, "overflows"),
    ],
    ids=str,
)
def test_a_wrong_ask_gets_its_error_and_the_others_their_answers(
    case: Case, fields: dict[str, Any], kind: type[LexiscopeError], said: str
) -> None:
    wrong = PromptAsk.model_construct(**{**PromptAsk(text=TEXT).__dict__, **_typed(fields)})
    bad, good = case.engine.prompts([wrong, PromptAsk(text=TEXT)])
    assert isinstance(bad, kind)
    assert said in str(bad)
    assert isinstance(good, dict)
    same(good, case.ask())


def _typed(fields: dict[str, Any]) -> dict[str, Any]:
    """A text that is none cannot be had from JSON; everything else as it is checked."""
    for name in fields.keys() & {"off", "set", "neurons"}:
        return {name: getattr(PromptAsk.model_validate({"text": "x", **fields}), name)}
    return fields


def test_progress_rises_to_the_end(case: Case) -> None:
    steps: list[tuple[str, float]] = []
    asks = [PromptAsk.model_validate({"text": text, "panel": PANEL_NAMES, **changed(TOUCHES)}) for text in TEXTS]
    case.engine.prompts(asks, step=lambda stage, share: steps.append((stage, share)))
    shares = [share for _, share in steps]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.5 < 0.9 < shares[-1] <= 1
    assert {stage for stage, _ in steps} == {
        "run", "evolution", "patterns", "sheet", "updates", "positions", "coverage", "sweep",
    }  # fmt: skip


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_run_ends_when_nobody_waits(case: Case, after: int) -> None:
    asked = iter(range(10_000))
    with pytest.raises(Cancelled):
        case.engine.prompts([PromptAsk(text=TEXT, panel=("evolution",))], cancelled=lambda: next(asked) >= after)
    assert next(asked) == after + 1


def test_no_asks_no_answers(case: Case) -> None:
    assert case.engine.prompts([]) == [] == case.engine.seeds([])
