"""The sheet: its lists are those of the panel patterns at every layer, head and position, its numbers those of
`transformers`."""

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
import torch

from lexiscope.precompute.live.panels import records
from lexiscope.precompute.live.wire.answers import ScoredToken, Sheet
from lexiscope.precompute.live.wire.asks import Convention, PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.fields import Lens, Unbuilt, pack_tokens
from lexiscope.precompute.live.wire.grammar import Word
from tests.precompute.live.panels.test_attribution import TOLERANCE, Frozen
from tests.precompute.live.reference import TEXT, Case, changed, ids
from tests.precompute.live.test_run import TOUCHES

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
LENSES: tuple[Lens, ...] = get_args(Lens)
HOWS = [{"convention": convention, "lens": lens, "k": 3} for convention in CONVENTIONS for lens in LENSES]


def sheet(case: Case, text: str = TEXT, **fields: Any) -> Sheet:
    answer = case.ask(text, panel=("sheet",), **fields)
    assert answer["sheet"] is not None
    return answer["sheet"]


def assert_same(found: list[ScoredToken], expected: list[ScoredToken]) -> None:
    """The same tokens and scores: products of other shapes round differently."""
    assert [token["id"] for token in found] == [token["id"] for token in expected]
    scores = [[token["score"] for token in tokens] for tokens in (found, expected)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("text", "how"), [
    *((TEXT, how) for how in HOWS), ("d", {}), (TEXT, {"k": 2, "spare": 3, "some": True}),
    (TEXT, changed(TOUCHES)),
])  # fmt: skip
def test_lists_are_those_of_patterns(every: Case, text: str, how: dict[str, Any]) -> None:
    s, how = every.engine.shape, dict(how)
    if how.pop("some", False):
        how["only"] = pack_tokens(np.arange(s.d_vocab) % 3 == 1)
    rows = iter(sheet(every, text, **how)["heads"])
    places = [{"layer": layer, "head": head} for layer in range(s.n_layers) for head in range(s.n_heads)]
    asks = [PromptAsk(text=text, panel=("patterns",), rows="tokens", **place, **how) for place in places]
    for place, answer in zip(places, every.engine.prompts(asks), strict=True):
        assert isinstance(answer, dict)
        for token in answer["patterns_by_token"] or ():
            row = next(rows)
            assert (row["layer"], row["head"], row["position"]) == (*place.values(), token["position"])
            assert row["attends"]["position"] == token["looks_at"]["position"]
            assert row["attends"]["weight"] == pytest.approx(token["looks_at"]["weight"], abs=1e-6)
            assert_same(row["looks_for"], token["pattern"])
            assert_same(row["found_by"], token["found_by"])
            assert_same(row["sends"], token["message"])
    assert next(rows, None) is None


@pytest.mark.parametrize("how", HOWS[::2])
def test_lists_are_those_of_all_heads_at_a_position(every: Case, how: dict[str, Any]) -> None:
    rows = sheet(every, **how)["heads"]
    for layer, position in ((0, 0), (1, 2), (2, 5)):
        answer = every.ask(panel=("patterns",), layer=layer, position=position, **how)
        here = [row for row in rows if (row["layer"], row["position"]) == (layer, position)]
        for row, pattern in zip(here, answer["patterns"] or (), strict=True):
            assert row["head"] == pattern["head"]
            assert row["attends"]["position"] == pattern["messages"][0]["position"]
            assert_same(row["looks_for"], pattern["pattern"])
            assert_same(row["found_by"], pattern["found_by"])
            assert_same(row["sends"], pattern["message"])


@pytest.mark.parametrize("convention", ["vocabulary", "exact"])
def test_weights_and_messages_are_those_of_transformers(every: Case, convention: Convention) -> None:
    s, found = every.engine.shape, sheet(every, convention=convention)["heads"]
    run = every.run(every.engine.words.prompt(TEXT))
    assert len(found) == s.n_layers * s.n_heads * len(run.reads[0])
    rows = iter(found)
    for layer in range(s.n_layers):
        bias = every.engine.weights.every_bias("w_v", layer) if convention == "exact" else None
        W_V, W_O = every.model.factors(layer, "vo")  # (n_heads, d_model, d_head), (n_heads, d_head, d_model)
        values = run.reads[layer] @ W_V + (0 if bias is None else bias[:, None])
        lengths = torch.linalg.vector_norm(values @ W_O, dim=2)  # (n_heads, T)
        best, _ = run.attentions[layer].max(dim=2)
        for head, at in product(range(s.n_heads), range(len(run.reads[0]))):
            row = next(rows)
            to, weights = row["attends"]["position"], run.attentions[layer][head, at]
            assert (row["layer"], row["head"], row["position"]) == (layer, head, at)
            assert row["attends"]["weight"] == pytest.approx(float(best[head, at]), abs=1e-5)
            assert weights[to] == pytest.approx(float(best[head, at]), abs=1e-5)
            assert row["message"] == pytest.approx(float(lengths[head, at]), abs=1e-4, rel=1e-4)
            assert row["moved"] == pytest.approx(float(weights[to] * lengths[head, to]), abs=1e-4, rel=1e-4)


@pytest.mark.parametrize("text", [TEXT, "d"])
def test_neurons_are_the_strongest_of_transformers(every: Case, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(records, "COLUMNS", 7)
    answer = every.ask(text, panel=("sheet",))
    assert answer["sheet"] is not None
    found, s = answer["sheet"]["neurons"], every.engine.shape
    assert answer["sheet"]["total"] == {"heads": len(answer["sheet"]["heads"]), "neurons": 7 * s.n_layers}
    run, one = every.run(ids(answer["tokens"])), len(answer["tokens"]) == 1
    for layer in range(s.n_layers):
        sizes, norms = run.coefficients[layer].abs(), every.model.vectors(layer, "ff_value").norm(dim=1)
        others = sizes[0] if one else sizes[1:].amax(dim=0)
        only = (sizes[0] >= records.FIRST_ONLY_FACTOR * others) & (sizes[0] > 0) & (not one)
        strength = torch.where(only, sizes[0], others) * norms
        rows = [row for row in found if row["layer"] == layer]
        np.testing.assert_allclose([row["strength"] for row in rows], strength.topk(7).values, atol=1e-4)
        for row in rows:
            column = run.coefficients[layer][:, row["neuron"]]
            np.testing.assert_allclose(row["coefficients"], column, atol=1e-4)
            assert row["strength"] == pytest.approx(float(strength[row["neuron"]]), abs=1e-4)
            assert (row["peak"] == 0) == (one or bool(only[row["neuron"]]))
            start = 0 if row["peak"] == 0 else 1
            assert abs(column[row["peak"]]) == pytest.approx(float(column[start:].abs().max()), abs=1e-4)
            assert row["end"] == ("top" if row["coefficients"][row["peak"]] >= 0 else "bottom")


def test_what_neurons_add_is_their_direct_effect(every: Case) -> None:
    """At the chosen position, to the word that was asked for."""
    tokens, at = every.engine.words.prompt(TEXT), 4
    found = sheet(every, position=at, token=Word(word="#11", token=11), against=Word(word="#7", token=7))["neurons"]
    run, net = every.run(tokens), Frozen(every, tokens, at)
    for row in found[:: len(found) // 5]:
        layer, neuron = row["layer"], row["neuron"]
        written = run.coefficients[layer][at, neuron] * every.model.vectors(layer, "ff_value")[neuron]
        effect = net.plain - net.without(layer, "ff_value", written)
        assert row["adds"] == pytest.approx(float(effect[11] - effect[7]), abs=TOLERANCE)


def test_the_chosen_layer_and_head_change_nothing(case: Case) -> None:
    assert sheet(case) == sheet(case, layer=0, head=1)


def test_words_of_neurons_in_layers_that_are_not_built(case: Case) -> None:
    answer = case.ask(panel=("sheet",), unbuilt=Unbuilt(layers={1}))
    assert answer["sheet"] is not None
    rows = [row for row in answer["sheet"]["neurons"] if row["layer"] == 1]
    listed = {(each["kind"], each["layer"], each["index"], each["end"]) for each in answer["lists"]}
    assert listed == {end for row in rows for end in (
        ("ff_key", 1, row["neuron"], "top"), ("ff_value", 1, row["neuron"], row["end"])
    )}  # fmt: skip


def test_progress_and_an_end(case: Case) -> None:
    """It stops between products when nobody waits any more."""
    steps: list[tuple[str, float]] = []
    ask = PromptAsk(text=TEXT, panel=("sheet",))
    case.engine.prompts([ask], step=lambda stage, share: steps.append((stage, share)))
    of_sheet = [share for stage, share in steps if stage == "sheet"]
    assert len(of_sheet) >= 3 * case.engine.shape.n_layers
    assert of_sheet == sorted(of_sheet)
    assert 0.9 < of_sheet[-1] <= 1
    done: list[str] = []
    with pytest.raises(Cancelled):
        case.engine.prompts([ask], step=lambda stage, _: done.append(stage), cancelled=lambda: "sheet" in done)
    assert done.count("sheet") == 1
