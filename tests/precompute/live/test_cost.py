"""What asks cost, known before they are computed: against the multiplications that torch counts while they are."""

from collections.abc import Callable
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from lexiscope.precompute.live.by_words.transition import DRAWS
from lexiscope.precompute.live.cost import PASS_OVERHEAD_TOKENS, RANK_COST, ask_cost, row_cost, token_cost
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.panels.attention import NUMBER_COST
from lexiscope.precompute.live.panels.token_rows import COSINE_ROWS
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.fields import Ask, Lens
from lexiscope.precompute.live.wire.grammar import HeadOff, Term, Word, WordPair
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case

OFF = (HeadOff(layer=0, head=0),)
DOG = (Term(word="dog"),)


def multiplications(work: Callable[[], object]) -> float:
    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 2  # it counts additions, too


@pytest.mark.parametrize("ask", [
    asks.PromptAsk(text=TEXT),
    asks.PromptAsk(text=TEXT * 3, panel=("evolution",)),
    asks.PromptAsk(text=TEXT, panel=("coverage", "neurons",)),
    asks.PromptAsk(text=TEXT, panel=("attention", "patterns",), head=1),
    asks.PromptAsk(text=TEXT, panel=("patterns",), head=1, rows="tokens"),
    asks.PromptAsk(text=TEXT, panel=("patterns",), lens="cosine", convention="exact"),
    asks.PromptAsk(text=TEXT, panel=("evolution",), off=OFF),
    asks.PromptAsk(text=TEXT, panel=("attribution",)),
    asks.PromptAsk(text=TEXT, panel=("sweep",)),
    asks.PromptAsk(text=TEXT, panel=("sweep",), over="neurons"),
    asks.PromptAsk(text=TEXT, panel=("updates",), layer=1),
])  # fmt: skip
def test_a_run(case: Case, ask: asks.PromptAsk) -> None:
    tokens, s = case.engine.token_count(ask.text), case.engine.shape
    runs = 2 if ask.changes else 1
    other: float = runs * s.n_layers * PASS_OVERHEAD_TOKENS * token_cost(s)  # what is no multiplication
    if "attention" in ask.panel:
        other += NUMBER_COST * s.n_layers * s.n_heads * tokens * (tokens + 3) / 2
    if ask.lens == "cosine":  # of all tokens, sums and lengths
        other += COSINE_ROWS * row_cost(s)
    counted = multiplications(lambda: case.engine.prompts([ask]))
    assert case.engine.cost(ask, tokens) - other == pytest.approx(counted, rel=0.4)


@pytest.mark.parametrize("ask", [
    asks.RelationAsk(pairs=(WordPair(source="dog", target="lion"),) * 3),
    asks.ThroughHeadsAsk(words=((Word(word="dog"),), (Word(word="lion"),)), layers=(0, 1)),
    asks.ThroughHeadsAsk(words=((Word(word="dog"),),), layers=(1,), head=1),
])  # fmt: skip
def test_heads(case: Case, ask: Ask[Any]) -> None:
    assert case.engine.cost(ask) == pytest.approx(multiplications(lambda: case.engine.answer(ask)), rel=0.3)


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_a_transition(case: Case, lens: Lens) -> None:
    """The deviations of scores are kept; ranks are the products that torch counts, strengths are no products."""
    pairs = (WordPair(source="dog", target="lion"), WordPair(source="horse", target="dog"))
    s, engine = case.engine.shape, Engine.load(Checkpoint.open(case.folder), "cpu")
    few, many = (asks.TransitionAsk(pairs=pairs, k=k, lens=lens) for k in (1, 1000))
    before, counted = engine.cost(few), multiplications(lambda: engine.answer(many))
    kinds = [kind for kind in s.kinds if kind.startswith("ff_")]
    tokens = s.d_vocab * (1 if s.tied else 2)
    deviations = s.d_model**2 * (len(kinds) * s.n_layers * s.d_mlp + tokens)
    if lens == "dot":  # those of some kinds are known from the start, for seed words
        assert 0 < before - engine.cost(few) < deviations
    else:
        assert before - engine.cost(few) == deviations
    comparing = RANK_COST * len(pairs) * s.d_vocab  # for each vector, which is no product
    rows = 2 * len(kinds) * (s.n_layers * s.d_mlp - 1)
    assert (engine.cost(many) - engine.cost(few)) / rows - comparing == pytest.approx(row_cost(s))
    assert counted == pytest.approx(2 * len(kinds) * s.n_layers * s.d_mlp * row_cost(s), rel=0.3)
    assert engine.cost(few) > DRAWS * len(kinds) * s.n_layers * s.d_mlp * s.d_model


@pytest.mark.parametrize(("layer", "layers"), [(None, 3), (0, 1), (1, 2)])
def test_states(case: Case, layer: int | None, layers: int) -> None:
    """Only the layers up to the one that is asked for run."""
    ask, s = asks.StatesAsk(text=TEXT, layer=layer), case.engine.shape
    tokens = case.engine.token_count(TEXT)
    other = layers * PASS_OVERHEAD_TOKENS * token_cost(s)
    counted = multiplications(lambda: case.engine.answer(ask))
    assert case.engine.cost(ask, tokens) - other == pytest.approx(counted, rel=0.3)
    given = asks.StatesReadingAsk(states=case.engine.answer(ask)["states"])
    counted = multiplications(lambda: case.engine.answer(given))
    assert case.engine.cost(given, tokens) == pytest.approx(counted, rel=0.3)


@pytest.mark.parametrize(("cheap", "dear"), [
    (asks.SeedsAsk(words=DOG, kind=("ff_value",)), asks.SeedsAsk(words=DOG, kind=("ff_value", "w_o"))),
    (asks.SeedsAsk(words=DOG, kind=("w_o",)), asks.SeedsAsk(words=DOG, kind=("w_o",), heads=True)),
    (asks.ReadingAsk(kind="w_o", layer=0, index=0, reading="norm"),
     asks.ReadingAsk(kind="w_o", layer=0, index=0, reading="mlp")),
    (asks.PairsReadingAsk(matrix="vo", layer=0, head=0, reading="norm"),
     asks.PairsReadingAsk(matrix="vo", layer=0, head=0, reading="mlp")),
    (asks.ReadingAsk(kind="w_o", layer=0, index=0, reading="norm"),
     asks.PairsReadingAsk(matrix="vo", layer=0, head=0, reading="norm")),
])  # fmt: skip
def test_cheap_and_dear(case: Case, cheap: Ask[Any], dear: Ask[Any]) -> None:
    w = case.engine.weights
    assert 0 < row_cost(w.shape) <= ask_cost(w, cheap) < ask_cost(w, dear)


@pytest.mark.parametrize("reading", ["mlp", "first", "pseudo"])
@pytest.mark.parametrize("again", [
    asks.ReadingAsk(kind="w_o", layer=0, index=0, reading="norm"),
    asks.PairsReadingAsk(matrix="vo", layer=0, head=0, reading="norm"),
])  # fmt: skip
def test_what_is_kept_costs_once(case: Case, again: Ask[Any], reading: str) -> None:
    w, dear = case.engine.weights, again.model_copy(update={"reading": reading})
    assert ask_cost(w, dear, made={reading}) == ask_cost(w, again)
    assert ask_cost(w, dear) > ask_cost(w, dear, made={reading})


def test_directions_cost_once(case: Case) -> None:
    """Those of a matrix are made together, and then kept; what a kind costs is that of its signs."""
    engine = Engine.load(Checkpoint.open(case.folder), "cpu")
    w, s = engine.weights, engine.shape
    ask = asks.SeedsAsk(words=DOG, kind=("vo_out", "qk_key"))
    first, one = ask_cost(w, ask), ask_cost(w, ask.model_copy(update={"kind": ("vo_in",)}))
    counted = multiplications(lambda: [w.vectors("vo_in", layer) for layer in range(s.n_layers)])
    assert 1 <= counted / (s.n_layers * s.n_heads * s.d_head * row_cost(s)) < 2  # decompositions are small beside it
    after = ask_cost(w, ask.model_copy(update={"kind": ("vo_in",)}))
    assert one - after == s.n_layers * s.n_heads * s.d_head * row_cost(s)
    assert first - ask_cost(w, ask) == one - after  # those of qk are to be made
    reading = asks.ReadingAsk(kind="qk_key", layer=0, index=0, reading="norm")
    assert ask_cost(w, reading) == row_cost(s) * (1 + s.n_heads * s.d_head)
    assert ask_cost(w, reading.model_copy(update={"kind": "vo_in"})) == row_cost(s)


def test_it_is_known_how_fast_the_machine_is(case: Case) -> None:
    assert case.engine.speed > 0
