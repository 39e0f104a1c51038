"""The demo model live: it runs as in `transformers`, and what it says of France. `make test-all` also checks its panels
as the other test_*.py check those of small random models."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from lexiscope.precompute.live.wire.asks import Convention, SeedsAsk
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.live.wire.grammar import NeuronSet, Term
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live import test_run
from tests.precompute.live.panels import test_attribution, test_coverage, test_evolution, test_neurons, test_patterns
from tests.precompute.live.reference import Case, ids, make_case, numbers

FRANCE = "The capital of France is"
HOME_RUN = "The baseball player hit a home"
ANIMALS = {"animal", "animals", "bird", "cat", "cats", "dog", "dogs", "horse", "horses", "lion", "mammal", "shark"}
LAYERS = (0, 13, 29)


@pytest.fixture(scope="module")
def demo(smollm2: Checkpoint) -> Iterator[Case]:
    threads = torch.get_num_threads()
    yield make_case(smollm2.folder)
    torch.set_num_threads(threads)


def test_the_run_equals_transformers(demo: Case) -> None:
    """Logits, attention of every head, mixed values, coefficients, the stream after each step."""
    test_run.test_everything_equals_transformers(demo)


def test_the_last_row_of_the_evolution_holds_the_models_logits(demo: Case) -> None:
    test_evolution.test_the_last_row_holds_the_models_logits(demo)


def test_the_capital_of_france(demo: Case) -> None:
    """Paris leads from the last layer on: after the one before, its rank is still another."""
    answer = demo.ask(FRANCE, panel=("evolution",))
    text = demo.engine.words.tokenizer.decode
    assert text([answer["prediction"][0]["id"]]) == " Paris"
    assert numbers(answer["prediction"])[0] > 0.5
    assert answer["evolution"] is not None
    assert answer["appears"] == 29
    ranks = {row["layer"]: row["answer_rank"][-1] for row in answer["evolution"] if row["after"] == "ff"}
    assert ranks[29] == 1 < ranks[28]
    logits = demo.run(ids(answer["tokens"])).logits
    assert logits is not None
    assert text([int(logits[-1].argmax())]) == " Paris"


@pytest.mark.all_families
@pytest.mark.parametrize("kind", ["w_q", "w_k"])
@pytest.mark.parametrize("layer", LAYERS)
def test_exact_patterns_give_the_models_attention(demo: Case, layer: int, kind: str) -> None:
    test_patterns.test_exact_patterns_give_the_models_attention(demo, layer, kind)


@pytest.mark.all_families
@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize("convention", ["final", "vocabulary", "exact"])
def test_patterns_found_by_and_messages(demo: Case, convention: Convention, lens: Lens) -> None:
    test_patterns.check_every_token(demo, "The dog ran", convention, lens)


@pytest.mark.all_families
@pytest.mark.parametrize("layer", LAYERS)
def test_messages_and_weights_sum_to_the_attentions_output(demo: Case, layer: int) -> None:
    test_patterns.test_messages_and_weights_sum_to_the_attentions_output(demo, layer)


@pytest.mark.all_families
def test_neurons_are_the_models_activations(demo: Case) -> None:
    test_neurons.test_the_strongest_neurons_of_each_layer(demo, None)


@pytest.mark.all_families
def test_attention_of_every_head(demo: Case) -> None:
    test_neurons.test_attention_of_every_head(demo)


@pytest.mark.all_families
def test_coverage_equals_a_direct_computation(demo: Case) -> None:
    answer = demo.ask(FRANCE, panel=("coverage",))
    assert answer["coverage"] is not None
    test_coverage.check(demo, answer["coverage"], demo.run(ids(answer["tokens"])), answer["position"])


@pytest.mark.parametrize("text", [FRANCE, HOME_RUN])
def test_terms_sum_to_the_models_logit(demo: Case, text: str) -> None:
    for against in ("none", "mean"):
        found, at = test_attribution.asked(demo, text, against=against)
        logits = test_attribution.scores(demo, demo.engine.words.prompt(text), at)
        assert found["logit"] == pytest.approx(float(logits.max()), abs=1e-3)
        assert test_attribution.sum_of(found) == pytest.approx(found["logit"] - found["baseline"], abs=1e-3)


def test_a_home_run_is_due_to_one_neuron(demo: Case) -> None:
    """L29N1240 adds most to " run", and without it the model says something else; the neuron that moves the stream
    most adds nothing."""
    answer = demo.ask(HOME_RUN, panel=("attribution", "neurons"))
    assert answer["attribution"] is not None
    assert answer["neurons"] is not None
    first, second = answer["attribution"]["raises"][:2]
    assert (first["layer"], first["neuron"]) == (29, 1240)
    assert first["term"] > 5 * second["term"]
    run, strongest = answer["prediction"][0], answer["neurons"][0]
    assert demo.engine.words.tokenizer.decode([run["id"]]) == " run"
    assert numbers(answer["prediction"])[0] > 0.98
    for neuron, low, high in ((first, 0.0, 0.06), (strongest, 0.98, 1.0)):
        off = NeuronSet(layer=neuron["layer"], neuron=neuron["neuron"])
        without = demo.ask(HOME_RUN, off=(off,), k=50)["prediction"]
        assert low < dict(zip(ids(without), numbers(without), strict=True))[run["id"]] < high


@pytest.mark.parametrize("kind", ["ff_value", "ff_key", "w_o"])
def test_seeds_find_animals_and_equal_brute_force(demo: Case, kind: str) -> None:
    ask = SeedsAsk(words=tuple(Term(word=word) for word in ("horse", "dog", "lion")), kind=(kind,), k=20)
    (found,) = demo.engine.seeds([ask])
    assert isinstance(found, dict)
    W = (demo.model.W_E if SIDES[kind] == "reads" else demo.model.W_U).numpy().astype(np.float64)
    tokens = [term["tokens"][0]["id"] for term in found["terms"]]
    assert [demo.engine.words.tokenizer.decode([token]) for token in tokens] == [" horse", " dog", " lion"]
    q = W[tokens].mean(axis=0) - W.mean(axis=0)
    scores = np.stack([demo.model.vectors(layer, kind).numpy().astype(np.float64) @ q for layer in range(30)])
    order = np.argsort(-scores, axis=None, kind="stable")[:20]
    assert [(result["layer"], result["index"]) for result in found["results"]] == [
        divmod(int(place), scores.shape[1]) for place in order
    ]
    np.testing.assert_allclose([result["score"] for result in found["results"]], scores.flatten()[order], rtol=1e-9)
    if kind == "ff_value":
        assert all(about_animals(demo, result["layer"], result["index"]) for result in found["results"][:3])


def about_animals(demo: Case, layer: int, neuron: int) -> bool:
    value = demo.model.vectors(layer, "ff_value")[neuron]
    first = (demo.model.W_U @ value).topk(10).indices.tolist()
    return len({demo.engine.words.tokenizer.decode([token]).strip().lower() for token in first} & ANIMALS) >= 2
