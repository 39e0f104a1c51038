"""A run of the model, read as words: a worker's answer with its ids turned into tokens, and stored lists beside it."""

from collections.abc import Iterable
from dataclasses import dataclass

from typing_extensions import TypedDict

from app.views.seeds import first_tokens, from_worker
from app.views.tokens import ScoredToken, Token, View, tokens_of
from precompute.index.index import Index
from precompute.live import wire

FIRST = 5  # tokens of a neuron's key and value
FIRST_OF_CHOSEN = 15  # of the one that was asked about


class LikelyToken(Token):
    p: float


class EvolutionStep(TypedDict):
    """The stream after a step, at every position, read as a prediction."""

    layer: int
    after: str  # embedding, attention or ff
    cells: list[list[LikelyToken]]  # by position
    answer: tuple[float, ...]  # by position: how likely the token is that the run ends up with there
    answer_rank: tuple[int, ...]


class HeadWeights(TypedDict):
    """Where a head looks."""

    layer: int
    head: int
    weights: tuple[tuple[float, ...], ...]  # by position that attends, up to itself


class Message(TypedDict):
    position: int
    weight: float
    tokens: list[ScoredToken]


class HeadPattern(TypedDict):
    head: int
    pattern: list[ScoredToken]
    messages: list[Message]


class ActiveNeuron(TypedDict):
    layer: int
    neuron: int
    coefficient: float
    strength: float
    first_only: bool
    key: list[Token]
    value: list[Token]  # of the end to which its coefficient pushes
    end: str


class UpTokens(TypedDict):
    """A gated neuron's second input: on what it turns positive, and on what negative."""

    top: list[Token]
    bottom: list[Token]


class ChosenNeuron(ActiveNeuron):
    """A neuron that was asked about."""

    up: UpTokens | None  # None where neurons are not gated
    rank: int  # among the neurons of its layer, by strength
    coefficients: tuple[float, ...]  # by position


class Coverage(TypedDict):
    """R_k: of the hidden state's first tokens, the share that the active vectors of a kind list."""

    layer: int
    kind: str
    covered: float
    shuffled: float | None  # the same vectors, the hidden states of other positions; None of a single token


class Change(TypedDict):
    """What was changed in a run: a neuron's coefficient, or a head switched off."""

    layer: int
    neuron: int | None
    head: int | None
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView(View):
    model: str
    text: str
    panel: str
    convention: str
    position: int | None  # None while there is no text
    layer: int | None
    head: int | None  # of that layer, if one was asked about
    changes: list[Change]
    tokens: list[Token]
    prediction: list[LikelyToken]
    untouched: list[LikelyToken]  # without the changes; empty if there are none
    appears: int | None  # the layer from which on the answer leads
    evolution: list[EvolutionStep] | None = None
    evolution_untouched: list[EvolutionStep] | None = None
    attention: list[HeadWeights] | None = None
    patterns: list[HeadPattern] | None = None
    neurons: list[ActiveNeuron] | None = None
    neuron: ChosenNeuron | None = None  # if one was asked about
    coverage: list[Coverage] | None = None


def prompt_form(index: Index, panel: str, convention: str, changes: Iterable[wire.Intervention]) -> PromptView:
    """The page that asks for a text."""
    return PromptView(
        model=index.manifest.model, text="", panel=panel, convention=convention, position=None, layer=None,
        head=None, changes=[_change(change) for change in changes], tokens=[], prediction=[], untouched=[],
        appears=None,
    )  # fmt: skip


def prompt_view(index: Index, ask: wire.PromptAsk, panel: str, answer: wire.PromptAnswer) -> PromptView:
    return PromptView(
        model=index.manifest.model,
        text=ask.text,
        panel=panel,
        convention=ask.convention,
        position=answer.position,
        layer=answer.layer,
        head=ask.head,
        changes=[_change(change) for change in ask.interventions],
        tokens=tokens_of(index.tokens, answer.tokens),
        prediction=_likely(index, answer.prediction),
        untouched=_likely(index, answer.untouched),
        appears=answer.appears,
        evolution=None if answer.evolution is None else _evolution(index, answer.evolution),
        evolution_untouched=(
            None if answer.evolution_untouched is None else _evolution(index, answer.evolution_untouched)
        ),
        attention=None if answer.attention is None else [_attention(head) for head in answer.attention],
        patterns=None if answer.patterns is None else [_pattern(index, head) for head in answer.patterns],
        neurons=None if answer.neurons is None else [_neuron(index, neuron) for neuron in answer.neurons],
        neuron=None if answer.neuron is None else _chosen_neuron(index, answer.neuron),
        coverage=None if answer.coverage is None else [_coverage(row) for row in answer.coverage],
    )


def _change(change: wire.Intervention) -> Change:
    if isinstance(change, wire.HeadOff):
        return {"layer": change.layer, "neuron": None, "head": change.head, "value": 0.0}
    return {"layer": change.layer, "neuron": change.neuron, "head": None, "value": change.value}


def _likely(index: Index, entries: Iterable[wire.Likely]) -> list[LikelyToken]:
    texts = index.tokens.texts
    return [{"id": entry.id, "token": texts[entry.id], "p": entry.p} for entry in entries]


def _evolution(index: Index, rows: Iterable[wire.EvolutionRow]) -> list[EvolutionStep]:
    return [
        {
            "layer": row.layer,
            "after": row.after,
            "cells": [_likely(index, cell) for cell in row.cells],
            "answer": row.answer,
            "answer_rank": row.answer_rank,
        }
        for row in rows
    ]


def _attention(head: wire.HeadAttention) -> HeadWeights:
    return {"layer": head.layer, "head": head.head, "weights": head.weights}


def _pattern(index: Index, head: wire.HeadPattern) -> HeadPattern:
    messages: list[Message] = [
        {"position": message.position, "weight": message.weight, "tokens": from_worker(index, message.tokens)}
        for message in head.messages
    ]
    return {"head": head.head, "pattern": from_worker(index, head.pattern), "messages": messages}


def _neuron(index: Index, neuron: wire.ActiveNeuron, n: int = FIRST) -> ActiveNeuron:
    """A negative coefficient turns the value round: what it then promotes stands at the bottom of its list."""
    end = "top" if neuron.coefficient >= 0 else "bottom"
    return {
        "layer": neuron.layer,
        "neuron": neuron.neuron,
        "coefficient": neuron.coefficient,
        "strength": neuron.strength,
        "first_only": neuron.first_only,
        "key": first_tokens(index, "ff_key", neuron.layer, neuron.neuron, n),
        "value": first_tokens(index, "ff_value", neuron.layer, neuron.neuron, n, end),
        "end": end,
    }


def _chosen_neuron(index: Index, neuron: wire.ChosenNeuron) -> ChosenNeuron:
    def of_up(end: str) -> list[Token]:
        return first_tokens(index, "ff_up", neuron.layer, neuron.neuron, FIRST_OF_CHOSEN, end)

    return {
        **_neuron(index, neuron, FIRST_OF_CHOSEN),
        "up": {"top": of_up("top"), "bottom": of_up("bottom")} if index.shape.gated else None,
        "rank": neuron.rank,
        "coefficients": neuron.coefficients,
    }


def _coverage(row: wire.CoverageRow) -> Coverage:
    return {"layer": row.layer, "kind": row.kind, "covered": row.covered, "shuffled": row.shuffled}
