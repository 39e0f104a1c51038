"""What asks cost, known before they are computed: against the multiplications that torch counts while they are."""

from collections.abc import Callable

import pytest
from torch.utils.flop_counter import FlopCounterMode

from precompute.live.cost import NUMBER_COST, PASS_TOKENS, ask_cost, row_cost, token_cost
from precompute.live.wire import (
    HeadOff,
    PairsReadingAsk,
    PromptAsk,
    ReadingAsk,
    RelationAsk,
    SeedsAsk,
    Term,
    ThroughHeadsAsk,
    Wire,
    Word,
    WordPair,
)
from tests.precompute.live.reference import TEXT, Case

OFF = (HeadOff(layer=0, head=0),)
DOG = (Term(word="dog"),)


def multiplications(work: Callable[[], object]) -> float:
    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 2  # it counts additions, too


@pytest.mark.parametrize("ask", [
    PromptAsk(text=TEXT),
    PromptAsk(text=TEXT * 3, panels=frozenset({"evolution"})),
    PromptAsk(text=TEXT, panels=frozenset({"coverage", "neurons"})),
    PromptAsk(text=TEXT, panels=frozenset({"attention", "patterns"}), head=1),
    PromptAsk(text=TEXT, panels=frozenset({"evolution"}), interventions=OFF),
])  # fmt: skip
def test_a_run(case: Case, ask: PromptAsk) -> None:
    tokens, s = case.engine.token_count(ask.text), case.engine.shape
    other: float = (
        (2 if ask.interventions else 1) * s.n_layers * PASS_TOKENS * token_cost(s)
    )  # what is no multiplication
    if "attention" in ask.panels:
        other += NUMBER_COST * s.n_layers * s.n_heads * tokens * (tokens + 1) / 2
    counted = multiplications(lambda: case.engine.prompts([ask]))
    assert case.engine.cost(ask, tokens) - other == pytest.approx(counted, rel=0.4)


@pytest.mark.parametrize("ask", [
    RelationAsk(pairs=(WordPair(source="dog", target="lion"),) * 3),
    ThroughHeadsAsk(groups=((Word(word="dog"),), (Word(word="lion"),)), layers=(0, 1)),
    ThroughHeadsAsk(groups=((Word(word="dog"),),), layers=(1,), head=1),
])  # fmt: skip
def test_heads(case: Case, ask: RelationAsk | ThroughHeadsAsk) -> None:
    def compute() -> object:
        return case.engine.relation(ask) if isinstance(ask, RelationAsk) else case.engine.through_heads(ask)

    assert case.engine.cost(ask) == pytest.approx(multiplications(compute), rel=0.3)


@pytest.mark.parametrize(("cheap", "dear"), [
    (SeedsAsk(terms=DOG, kinds=("ff_value",)), SeedsAsk(terms=DOG, kinds=("ff_value", "w_o"))),
    (SeedsAsk(terms=DOG, kinds=("w_o",)), SeedsAsk(terms=DOG, kinds=("w_o",), heads=True)),
    (ReadingAsk(kind="w_o", layer=0, index=0, reading="norm"), ReadingAsk(kind="w_o", layer=0, index=0, reading="mlp")),
    (PairsReadingAsk(matrix="vo", layer=0, head=0, reading="norm"),
     PairsReadingAsk(matrix="vo", layer=0, head=0, reading="mlp")),
    (ReadingAsk(kind="w_o", layer=0, index=0, reading="norm"),
     PairsReadingAsk(matrix="vo", layer=0, head=0, reading="norm")),
])  # fmt: skip
def test_cheap_and_dear(case: Case, cheap: Wire, dear: Wire) -> None:
    w = case.engine.weights
    assert 0 < row_cost(w.shape) <= ask_cost(w, cheap) < ask_cost(w, dear)


@pytest.mark.parametrize("again", [
    ReadingAsk(kind="w_o", layer=0, index=0, reading="mlp"),
    PairsReadingAsk(matrix="vo", layer=0, head=0, reading="mlp"),
])  # fmt: skip
def test_what_is_kept_costs_once(case: Case, again: Wire) -> None:
    w = case.engine.weights
    assert ask_cost(w, again, has_mlp_vocabulary=True) == ask_cost(w, again.model_copy(update={"reading": "norm"}))
    assert ask_cost(w, again) > ask_cost(w, again, has_mlp_vocabulary=True)


def test_it_is_known_how_fast_the_machine_is(case: Case) -> None:
    assert case.engine.speed > 0
