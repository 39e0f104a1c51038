"""A run of the model, read as words: a worker's answer with its ids turned into tokens, and stored lists beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.views.attribution import Attribution, attribution_view
from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.first_tokens import FirstLists
from lexiscope.app.views.patterns import HeadPattern, PatternLists, TokenPattern
from lexiscope.app.views.seeds import COMPUTED
from lexiscope.app.views.tokens import ScoredToken, Token, ViewOfModel, tokens_of
from lexiscope.app.views.vectors import NOT_STORED
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire import answers as panels
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.live.wire.answers import Likely, PromptAnswer
from lexiscope.precompute.live.wire.asks import PromptArguments
from lexiscope.precompute.shape import Predicts

FIRST = 5  # tokens of a neuron's key and value
FIRST_OF_CHOSEN = 15  # of the one that was asked about
PREDICTS = (
    "What prediction and evolution hold. next: probabilities `p` of the next token; masked: `p` of the token at the "
    "position itself, by an encoder's MLM head; nearest: an encoder without such a head: the tokens that the stream is "
    "nearest to, their cosine as `score`, and no `p`"
)


class LikelyToken(Token):
    p: float


# Probabilities; or cosines, where the model predicts no tokens. Those are called scores, as cosines are on other pages.
Predicted = list[LikelyToken] | list[ScoredToken]


class EvolutionStep(TypedDict):
    """The stream after a step, at every position, read as the model's last step reads it."""

    layer: int
    after: str  # embedding, attention or ff
    cells: list[Predicted]  # by position
    answer: tuple[float, ...]  # by position: the probability, or cosine, of the token that the run ends up with there
    answer_rank: tuple[int, ...]


class HeadWeights(TypedDict):
    """Where a head looks."""

    layer: int
    head: int
    weights: tuple[tuple[float, ...], ...]  # by position that attends: up to itself, or to all in an encoder


class ActiveNeuron(TypedDict):
    layer: int
    neuron: int
    coefficient: float
    strength: float
    first_only: bool
    key: Annotated[list[Token] | None, NOT_STORED]
    value: Annotated[list[Token] | None, NOT_STORED]  # of the end to which its coefficient pushes
    end: str
    computed: Annotated[bool, COMPUTED]


class UpTokens(TypedDict):
    """A gated neuron's second input: on what it turns positive, and on what negative."""

    top: Annotated[list[Token] | None, NOT_STORED]
    bottom: Annotated[list[Token] | None, NOT_STORED]


class ChosenNeuron(ActiveNeuron):
    """A neuron that was asked about."""

    up: UpTokens | None  # None where neurons are not gated
    rank: int  # among the neurons of its layer, by strength
    coefficients: tuple[float, ...]  # by position


class TextNeuron(ActiveNeuron):
    """A neuron over the whole text; coefficient, strength and what it writes are those of its peak."""

    position: int  # of its peak; after the first token, unless it fires there only
    coefficients: tuple[float, ...]  # by position


class Coverage(TypedDict):
    """R_k: of the hidden state's first tokens, the share that the active vectors of a kind list."""

    layer: int
    kind: str
    covered: float
    shuffled: float | None  # the same vectors, the hidden states of other positions; None of a single token
    shuffled_sd: float | None  # the standard deviation over those positions; None of fewer than two
    others: int  # how many other positions there are
    as_covered: int  # how many of them are covered at least as much


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
    appears: int | None  # the layer from which on the answer leads
    evolution: list[EvolutionStep] | None = None
    evolution_untouched: list[EvolutionStep] | None = None
    attention: list[HeadWeights] | None = None
    patterns: list[HeadPattern] | None = None
    patterns_by_token: list[TokenPattern] | None = None
    neurons: list[ActiveNeuron] | None = None
    neuron: ChosenNeuron | None = None  # if one was asked about
    activations: list[TextNeuron] | None = None  # those that were asked for
    strongest: list[TextNeuron] | None = None  # of the whole text; then those that fire on its first token only
    coverage: list[Coverage] | None = None
    attribution: Attribution | None = None


def prompt_form(index: Index, arguments: PromptArguments) -> PromptView:
    """The page that asks for a text."""
    return PromptView(
        model=index.manifest.model, build=index.manifest.build, minus=minus_of(index),
        text="", panel=",".join(arguments.panel), convention=arguments.convention, lens=arguments.lens,
        rows=arguments.rows, predicts=index.shape.predicts, position=None, layer=None, head=None,
        changes=[_change(change) for change in arguments.changes], tokens=[], prediction=[], untouched=[],
        appears=None,
    )  # fmt: skip


def prompt_view(
    index: Index, ask: PromptArguments, answer: PromptAnswer, hubs: frozenset[int] = frozenset()
) -> PromptView:
    """Hubs that are given are skipped among the first tokens of neurons, and take no place among the k of patterns."""
    lists = FirstLists.of(index, ask.lens, answer.lists, hubs)
    of_heads = PatternLists(index, ask.k, hubs)
    return PromptView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        text=ask.text,
        panel=",".join(ask.panel),
        convention=ask.convention,
        lens=ask.lens,
        rows=ask.rows,
        predicts=answer.predicts,
        position=answer.position,
        layer=answer.layer,
        head=_head(ask),
        changes=[_change(change) for change in ask.changes],
        tokens=tokens_of(index.tokens, answer.tokens),
        prediction=predicted_tokens(index, answer.predicts, answer.prediction),
        untouched=predicted_tokens(index, answer.predicts, answer.untouched),
        appears=answer.appears,
        evolution=_evolution(index, answer.predicts, answer.evolution),
        evolution_untouched=_evolution(index, answer.predicts, answer.evolution_untouched),
        attention=None if answer.attention is None else [_attention(head) for head in answer.attention],
        patterns=None if answer.patterns is None else [of_heads.head(head) for head in answer.patterns],
        patterns_by_token=None
        if answer.patterns_by_token is None
        else [of_heads.token(token) for token in answer.patterns_by_token],
        neurons=None if answer.neurons is None else [_neuron(lists, neuron) for neuron in answer.neurons],
        neuron=None if answer.neuron is None else _chosen_neuron(lists, answer.neuron),
        activations=_text_neurons(lists, answer.activations),
        strongest=_text_neurons(lists, answer.strongest),
        coverage=None if answer.coverage is None else [_coverage(row) for row in answer.coverage],
        attribution=None if answer.attribution is None else attribution_view(lists, answer.attribution),
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


def predicted_tokens(index: Index, predicts: Predicts, entries: Iterable[Likely]) -> Predicted:
    texts = index.tokens.texts
    if predicts == "nearest":
        near: list[ScoredToken] = [{"id": e.id, "token": texts[e.id], "score": e.p} for e in entries]
        return near
    likely: list[LikelyToken] = [{"id": e.id, "token": texts[e.id], "p": e.p} for e in entries]
    return likely


def _evolution(
    index: Index, predicts: Predicts, rows: Iterable[panels.EvolutionRow] | None
) -> list[EvolutionStep] | None:
    if rows is None:
        return None
    return [
        {
            "layer": row.layer,
            "after": row.after,
            "cells": [predicted_tokens(index, predicts, cell) for cell in row.cells],
            "answer": row.answer,
            "answer_rank": row.answer_rank,
        }
        for row in rows
    ]


def _attention(head: panels.HeadAttention) -> HeadWeights:
    return {"layer": head.layer, "head": head.head, "weights": head.weights}


def _neuron(lists: FirstLists, neuron: panels.ActiveNeuron, n: int = FIRST) -> ActiveNeuron:
    """A negative coefficient turns the value round: what it then promotes stands at the bottom of its list."""
    end = "top" if neuron.coefficient >= 0 else "bottom"
    return {
        "layer": neuron.layer,
        "neuron": neuron.neuron,
        "coefficient": neuron.coefficient,
        "strength": neuron.strength,
        "first_only": neuron.first_only,
        "key": lists.tokens("ff_key", neuron.layer, neuron.neuron, n),
        "value": lists.tokens("ff_value", neuron.layer, neuron.neuron, n, end),
        "end": end,
        "computed": lists.is_computed("ff_key", neuron.layer, neuron.neuron),
    }


def _chosen_neuron(lists: FirstLists, neuron: panels.ChosenNeuron) -> ChosenNeuron:
    def of_up(end: str) -> list[Token] | None:
        return lists.tokens("ff_up", neuron.layer, neuron.neuron, FIRST_OF_CHOSEN, end)

    return {
        **_neuron(lists, neuron, FIRST_OF_CHOSEN),
        "up": {"top": of_up("top"), "bottom": of_up("bottom")} if lists.index.shape.gated else None,
        "rank": neuron.rank,
        "coefficients": neuron.coefficients,
    }


def _text_neurons(lists: FirstLists, neurons: Iterable[panels.TextNeuron] | None) -> list[TextNeuron] | None:
    if neurons is None:
        return None
    return [
        {**_neuron(lists, neuron), "position": neuron.position, "coefficients": neuron.coefficients}
        for neuron in neurons
    ]


def _coverage(row: panels.CoverageRow) -> Coverage:
    return {
        "layer": row.layer,
        "kind": row.kind,
        "covered": row.covered,
        "shuffled": row.shuffled,
        "shuffled_sd": row.shuffled_sd,
        "others": row.others,
        "as_covered": row.as_covered,
    }
