"""Active neurons and attention: what `transformers` computes, arranged."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.panels import neurons, records
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.wire.asks import PromptAsk
from tests.precompute.live.reference import TEXT, Case, changed, ids


@pytest.mark.parametrize("position", [0, 3, None])
def test_the_strongest_neurons_of_each_layer(every: Case, position: int | None) -> None:
    answer = every.ask(panel=("neurons",), position=position)
    assert answer["neurons"] is not None
    run, s = every.run(ids(answer["tokens"])), every.engine.shape
    for layer in range(s.n_layers):
        coefficients = run.coefficients[layer]
        here = coefficients[answer["position"]]
        strength = here.abs() * every.model.vectors(layer, "ff_value").norm(dim=1)
        found = [neuron for neuron in answer["neurons"] if neuron["layer"] == layer]
        best = strength.topk(neurons.NEURONS_PER_LAYER)
        active = int((best.values > 0).sum())  # those that are silent stand in any order
        assert [neuron["neuron"] for neuron in found][:active] == best.indices[:active].tolist()
        np.testing.assert_allclose([neuron["strength"] for neuron in found], best.values, atol=1e-4)
        np.testing.assert_allclose([neuron["coefficient"] for neuron in found], here[best.indices], atol=1e-4)
        first, others = coefficients[0].abs(), coefficients[1:].abs().amax(dim=0)
        first_only = (first >= 10 * others)[best.indices][:active].tolist()
        assert [neuron["first_only"] for neuron in found][:active] == first_only
    assert [n["strength"] for n in answer["neurons"]] == sorted(
        (n["strength"] for n in answer["neurons"]), reverse=True
    )


def test_neurons_that_fire_on_the_first_token_only_are_marked(case: Case) -> None:
    w = case.engine.weights
    zero, one = torch.zeros(w.shape.d_mlp), torch.ones(w.shape.d_mlp)
    first, others = 5 * one, one.clone()
    first[:4], others[2] = torch.tensor([10.0, 9.9, 0.0, 30.0]), 0.0
    record = Record((1, 2), (), 0, 0, frozenset())
    record.coefficients = [first, zero, zero][: w.shape.n_layers]
    record.first, record.others = [first] * w.shape.n_layers, [others] * w.shape.n_layers
    norms = torch.zeros(w.shape.n_layers, w.shape.d_mlp)
    norms[0, :4] = 1
    marked = {n["neuron"]: n["first_only"] for n in neurons.active_neurons(w, norms, record) if n["layer"] == 0}
    assert [marked[n] for n in (0, 1, 3)] == [True, False, True]
    assert sum(marked.values()) == 2


def test_the_only_token_is_not_marked_as_the_first(case_of: Callable[[str], Case]) -> None:
    answer = case_of("gpt2").ask("d", panel=("neurons",))
    assert len(answer["tokens"]) == 1
    assert not any(neuron["first_only"] for neuron in answer["neurons"] or ())


def test_a_coefficient_that_was_set_is_shown(case: Case) -> None:
    touches = [{"kind": "neuron", "layer": 1, "neuron": 7, "value": -50.0}]
    answer = case.ask(panel=("neurons",), **changed(touches))
    assert answer["neurons"] is not None
    strongest = answer["neurons"][0]
    assert (strongest["layer"], strongest["neuron"], strongest["coefficient"]) == (1, 7, -50.0)


@pytest.mark.parametrize(("layer", "neuron", "position"), [(0, 0, 2), (1, 47, None), (None, 11, 0)])
def test_a_neuron_that_is_asked_about(every: Case, layer: int | None, neuron: int, position: int | None) -> None:
    """However weak: its coefficient at every position, and its rank among all of its layer."""
    answer = every.ask(panel=("neurons",), layer=layer, neuron=neuron, position=position)
    found = answer["neuron"]
    assert found is not None
    assert (found["layer"], found["neuron"]) == (answer["layer"], neuron)
    coefficients = every.run(ids(answer["tokens"])).coefficients[answer["layer"]]
    np.testing.assert_allclose(found["coefficients"], coefficients[:, neuron], atol=1e-4)
    here = coefficients[answer["position"]]
    np.testing.assert_allclose(found["coefficient"], here[neuron], atol=1e-4)
    strength = here.abs() * every.model.vectors(answer["layer"], "ff_value").norm(dim=1)
    assert found["rank"] == 1 + int((strength > strength[neuron]).sum())
    np.testing.assert_allclose(found["strength"], strength[neuron], atol=1e-4)
    assert every.ask(panel=("evolution",), neuron=neuron).get("neuron") is None


def test_one_of_the_strongest_that_is_asked_about(case: Case) -> None:
    third = [each for each in case.ask(panel=("neurons",))["neurons"] or () if each["layer"] == 1][2]
    found = case.ask(panel=("neurons",), layer=1, neuron=third["neuron"])["neuron"]
    assert found is not None
    assert found["rank"] == 3
    assert {name: found.get(name) for name in third} == third


@pytest.mark.parametrize("what", ["neuron", "head"])
def test_what_is_asked_about_must_exist(case: Case, what: str) -> None:
    (answer,) = case.engine.prompts([PromptAsk.model_validate({"text": TEXT, what: 9999})])
    assert isinstance(answer, NotFound)
    assert f"{what} 9999 does not exist here: 0 to" in str(answer)


def test_attention_of_every_head(every: Case) -> None:
    """To all positions before; of an encoder to all there are."""
    answer = every.ask(panel=("attention",))
    assert answer["attention"] is not None
    run, s = every.run(ids(answer["tokens"])), every.engine.shape
    assert [(a["layer"], a["head"]) for a in answer["attention"]] == [
        (x, y) for x in range(s.n_layers) for y in range(s.n_heads)
    ]
    for each in answer["attention"]:
        expected = run.attentions[each["layer"]][each["head"]]
        for query, weights in enumerate(each["weights"]):
            seen = query + 1 if s.causal else len(answer["tokens"])
            assert len(weights) == seen
            np.testing.assert_allclose(weights, expected[query, :seen], atol=1e-4)


@pytest.mark.parametrize("position", [0, 3, None])
def test_where_every_head_looks_from_the_position(
    every: Case, position: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all layers, also where a prompt is too long for all weights of all layers."""
    monkeypatch.setattr(records, "MOST_WEIGHTS", 1)
    answer = every.ask(panel=("attention",), position=position)
    at, run = answer["position"], every.run(ids(answer["tokens"]))
    seen = at + 1 if every.engine.shape.causal else len(answer["tokens"])
    expected = [run.attentions[layer][:, at, :seen].tolist() for layer in range(every.engine.shape.n_layers)]
    np.testing.assert_allclose(answer["looks"] or [], expected, atol=1e-4)


def test_of_a_long_prompt_only_the_chosen_layers_heads(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    T, causal = case.engine.token_count(TEXT), case.engine.shape.causal
    numbers = T * (T + 1) // 2 if causal else T * T
    monkeypatch.setattr(records, "MOST_WEIGHTS", case.engine.shape.n_layers * 4 * numbers - 1)
    answer = case.ask(panel=("attention",), layer=1)
    assert [(each["layer"], each["head"]) for each in answer["attention"] or ()] == [(1, head) for head in range(4)]
    assert torch.tensor([each["weights"][-1] for each in answer["attention"] or ()]).sum(dim=1).allclose(torch.ones(4))
    assert [case.engine.attention_heads(tokens) for tokens in (T - 1, T)] == [4 * case.engine.shape.n_layers, 4]
