"""A run of the model, read as words: a worker's answer with its ids turned into tokens, and stored lists beside it."""

from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.views.attribution import attribution_view
from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.first_tokens import FirstLists
from lexiscope.app.views.patterns import without_spare
from lexiscope.app.views.tokens import ViewOfModel
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.live.wire.answers import (
    ActiveNeuron,
    Attribution,
    ChosenNeuron,
    CoverageRow,
    EvolutionRow,
    HeadAttention,
    HeadPattern,
    Predicted,
    PromptAnswer,
    TextNeuron,
    Token,
    TokenPattern,
    put_words,
)
from lexiscope.precompute.live.wire.asks import PromptArguments
from lexiscope.precompute.shape import Predicts

N = TypeVar("N", bound=ActiveNeuron)

FIRST = 5  # tokens of a neuron's key and value
FIRST_OF_CHOSEN = 15  # of the one that was asked about
PREDICTS = (
    "What prediction and evolution hold. next: probabilities `p` of the next token; masked: `p` of the token at the "
    "position itself, by an encoder's MLM head; nearest: an encoder without such a head: the tokens that the stream is "
    "nearest to, their cosine as `score`, and no `p`"
)


class Change(TypedDict):
    """What was changed in a run: a neuron's coefficient, or a head switched off."""

    layer: int
    neuron: int | None
    head: int | None
    value: float
    position: int | None  # None: at all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView(ViewOfModel):
    text: str
    panel: str
    convention: str  # of patterns and messages
    lens: str  # of patterns and messages, and of the stored lists
    rows: str  # of patterns: heads at the position, or tokens at the head
    predicts: Annotated[Predicts, Field(description=PREDICTS)]
    position: int | None  # None while there is no text
    layer: int | None
    head: int | None  # of that layer, if one was asked about
    changes: list[Change]
    tokens: list[Token]
    prediction: Predicted
    untouched: Predicted  # without the changes; empty if there are none
    appears: int | None = None  # the layer from which on the answer leads
    evolution: list[EvolutionRow] | None = None
    evolution_untouched: list[EvolutionRow] | None = None
    attention: list[HeadAttention] | None = None
    patterns: list[HeadPattern] | None = None
    patterns_by_token: list[TokenPattern] | None = None
    neurons: list[ActiveNeuron] | None = None
    neuron: ChosenNeuron | None = None  # if one was asked about
    activations: list[TextNeuron] | None = None  # those that were asked for
    strongest: list[TextNeuron] | None = None  # of the whole text; then those that fire on its first token only
    coverage: list[CoverageRow] | None = None
    attribution: Attribution | None = None


def prompt_form(index: Index, arguments: PromptArguments) -> PromptView:
    """The page that asks for a text."""
    return PromptView(
        model=index.manifest.model, build=index.manifest.build, minus=minus_of(index),
        text="", panel=",".join(arguments.panel), convention=arguments.convention, lens=arguments.lens,
        rows=arguments.rows, predicts=index.shape.predicts, position=None, layer=None, head=None,
        changes=[_change(change) for change in arguments.changes], tokens=[], prediction=[], untouched=[],
    )  # fmt: skip


def prompt_view(
    index: Index, ask: PromptArguments, answer: PromptAnswer, hubs: frozenset[int] = frozenset()
) -> PromptView:
    """Put words beside the answer's ids and neurons. Hubs that are given are skipped among the first tokens of neurons,
    and take no place among the k of patterns."""
    put_words(answer, index.tokens.texts)
    lists = FirstLists.of(index, ask.lens, answer["lists"], hubs)
    panels: dict[str, Any] = {name: part for name, part in answer.items() if name != "lists"}
    for name in ("neurons", "activations", "strongest"):
        panels[name] = _neurons(lists, panels.get(name))
    if neuron := answer.get("neuron"):
        panels["neuron"] = _chosen_neuron(lists, neuron)
    if attribution := answer.get("attribution"):
        panels["attribution"] = attribution_view(lists, attribution)
    for name in ("patterns", "patterns_by_token"):
        if rows := panels.get(name):
            panels[name] = [without_spare(row, ask.k, hubs) for row in rows]
    return PromptView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        text=ask.text,
        panel=",".join(ask.panel),
        convention=ask.convention,
        lens=ask.lens,
        rows=ask.rows,
        head=_head(ask),
        changes=[_change(change) for change in ask.changes],
        **panels,
    )


def _head(ask: PromptArguments) -> int | None:
    """The head of a table of tokens is the first, unless another was asked about."""
    return 0 if ask.head is None and ask.rows == "tokens" and "patterns" in ask.panel else ask.head


def _change(change: grammar.Change) -> Change:
    if isinstance(change, grammar.HeadOff):
        number: tuple[int | None, int | None, float] = (None, change.head, 0.0)
    else:
        number = (change.neuron, None, change.value)
    neuron, head, value = number
    return {"layer": change.layer, "neuron": neuron, "head": head, "value": value, "position": change.position}


def _neuron(lists: FirstLists, neuron: N, n: int = FIRST) -> N:
    """Return a copy of the neuron with its words."""
    with_words, layer, number = copy(neuron), neuron["layer"], neuron["neuron"]
    with_words["key"] = lists.tokens("ff_key", layer, number, n)
    with_words["value"] = lists.tokens("ff_value", layer, number, n, neuron["end"])
    with_words["computed"] = lists.is_computed("ff_key", layer, number)
    return with_words


def _neurons(lists: FirstLists, neurons: list[N] | None) -> list[N] | None:
    return None if neurons is None else [_neuron(lists, neuron) for neuron in neurons]


def _chosen_neuron(lists: FirstLists, neuron: ChosenNeuron) -> ChosenNeuron:
    def of_up(end: str) -> list[Token] | None:
        return lists.tokens("ff_up", neuron["layer"], neuron["neuron"], FIRST_OF_CHOSEN, end)

    with_words = _neuron(lists, neuron, FIRST_OF_CHOSEN)
    with_words["up"] = {"top": of_up("top"), "bottom": of_up("bottom")} if lists.index.shape.gated else None
    return with_words
