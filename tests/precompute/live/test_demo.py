"""The demo model live: it runs as in `transformers`, and what it says of France."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from lexiscope.precompute.live.wire.asks import SeedsAsk
from lexiscope.precompute.live.wire.grammar import NeuronSet, Term
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live import test_run
from tests.precompute.live.panels import test_attribution
from tests.precompute.live.reference import Case, ids, make_case, numbers

FRANCE = "The capital of France is"
HOME_RUN = "The baseball player hit a home"
ANIMALS = {"animal", "animals", "bird", "cat", "cats", "dog", "dogs", "horse", "horses", "lion", "mammal", "shark"}


@pytest.fixture(scope="module")
def demo(smollm2: Checkpoint) -> Iterator[Case]:
    threads = torch.get_num_threads()
    yield make_case(smollm2.folder)
    torch.set_num_threads(threads)


def test_the_run_equals_transformers(demo: Case) -> None:
    """Logits, attention of every head, mixed values, coefficients, the stream after each step."""
    test_run.test_everything_equals_transformers(demo)


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


def test_terms_sum_to_the_models_logit(demo: Case) -> None:
    found, at = test_attribution.asked(demo, FRANCE, against="mean")
    logits = test_attribution.scores(demo, demo.engine.words.prompt(FRANCE), at)
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


@pytest.mark.parametrize("kind", ["ff_value", "w_o"])
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
