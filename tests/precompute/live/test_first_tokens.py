"""First tokens of vectors in layers that an index does not have: a full sort of float64 scores gives the same."""

from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from lexiscope.precompute.live.first_tokens import FIRST_TOKENS_MADE, ListEnd, first_tokens
from lexiscope.precompute.live.wire.answers import ActiveNeuron, FirstTokens
from lexiscope.precompute.live.wire.asks import SeedsAsk
from lexiscope.precompute.live.wire.fields import End, Lens, Unbuilt
from lexiscope.precompute.live.wire.grammar import Term
from lexiscope.precompute.shape import SIDES
from tests.precompute.live.reference import Case
from tests.support.brute import vector_lists


def check(case: Case, lists: list[FirstTokens], lens: Lens) -> None:
    for found in lists:
        W = (case.model.W_E if SIDES[found["kind"]] == "reads" else case.model.W_U).numpy()
        v = case.model.vectors(found["layer"], found["kind"]).numpy()[found["index"]]
        ids, _ = vector_lists(W, v[None], FIRST_TOKENS_MADE)
        assert found["tokens"] == ids[0, int(lens == "cosine"), int(found["end"] == "bottom")].tolist()


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_lists_equal_a_full_sort_and_are_of_these_layers_only(case: Case, lens: Lens) -> None:
    w, words = case.engine.weights, case.engine.words
    ends: tuple[End, ...] = ("top", "bottom")
    every = product(w.shape.kinds, range(w.shape.n_layers), (0, 3), ends)
    wanted = [ListEnd(*each) for each in every]
    unbuilt = Unbuilt(layers=frozenset({1}), lens=lens)
    lists = first_tokens(w.vectors, words.reads, words.writes, unbuilt, wanted * 2)
    assert {(x["kind"], x["layer"], x["index"], x["end"]) for x in lists} == {
        (x.kind, x.layer, x.index, x.end) for x in wanted if x.layer == 1
    }
    assert len(lists) == len(w.shape.kinds) * 4
    check(case, lists, lens)
    assert first_tokens(w.vectors, words.reads, words.writes, None, wanted) == []


def shown_ends(neurons: Iterable[ActiveNeuron]) -> Iterator[tuple[str, int, int, str]]:
    for neuron in neurons:
        yield "ff_key", neuron["layer"], neuron["neuron"], "top"
        yield "ff_value", neuron["layer"], neuron["neuron"], "top" if neuron["coefficient"] >= 0 else "bottom"


def test_a_run_carries_those_of_its_neurons(case: Case) -> None:
    unbuilt = Unbuilt(layers=frozenset({0}), lens="cosine")
    answer = case.ask(panel=("neurons",), layer=0, neuron=2, unbuilt=unbuilt)
    assert answer["neurons"]
    assert answer["neuron"]
    every = (*answer["neurons"], *(answer["activations"] or ()), *(answer["strongest"] or ()), answer["neuron"])
    shown = set(shown_ends(neuron for neuron in every if neuron["layer"] == 0))
    if case.engine.shape.gated:
        shown |= {("ff_up", 0, 2, "top"), ("ff_up", 0, 2, "bottom")}
    assert {(x["kind"], x["layer"], x["index"], x["end"]) for x in answer["lists"]} == shown
    check(case, answer["lists"], "cosine")
    assert case.ask(panel=("neurons",))["lists"] == []


def test_a_seed_search_carries_those_of_its_results(case: Case) -> None:
    ask = SeedsAsk(words=(Term(word="dog"),), kind=("ff_value", "w_q"), k=30, unbuilt=Unbuilt(layers=frozenset({1})))
    (answer,) = case.engine.seeds([ask])
    assert isinstance(answer, dict)
    expected = [
        (result["kind"], result["layer"], result["index"]) for result in answer["results"] if result["layer"] == 1
    ]
    assert sorted((x["kind"], x["layer"], x["index"]) for x in answer["lists"]) == sorted(expected)
    check(case, answer["lists"], "dot")


def test_lists_cost_as_many_rows_as_are_made(case: Case) -> None:
    s = case.engine.shape
    every = Unbuilt(layers=frozenset(range(s.n_layers)))
    plain = SeedsAsk(words=(Term(word="dog"),), kind=("ff_value",), k=7)
    cost = case.engine.cost(plain.model_copy(update={"unbuilt": every})) - case.engine.cost(plain)
    assert cost == pytest.approx(7 * s.d_vocab * s.d_model)
