"""A run of the model, read as words: a worker's answer with its ids turned into tokens, and stored lists beside it.
Running the model is for the worker."""

from collections.abc import Iterable

from app.views.live_types import (
    ActiveView,
    AttentionView,
    ChangeView,
    ChosenView,
    CoverageView,
    EvolutionView,
    LikelyView,
    MessageView,
    PatternView,
    PromptView,
    UpView,
)
from app.views.parts import token_views
from app.views.seeds import first_tokens, scored_views
from app.views.view_types import TokenView
from app.wire import (
    ActiveNeuron,
    ChosenNeuron,
    EvolutionRow,
    HeadOff,
    HeadPattern,
    Intervention,
    Likely,
    PromptAnswer,
    PromptAsk,
)
from precompute.index.index import Index

FIRST = 5  # tokens of a neuron's key and value
FIRST_OF_CHOSEN = 15  # of the one that was asked about


def prompt_form(index: Index, panel: str, convention: str, changes: Iterable[Intervention]) -> PromptView:
    """The page that asks for a text."""
    return PromptView.of(
        model=index.manifest.model, text="", panel=panel, convention=convention, position=None, layer=None,
        head=None, changes=tuple(map(change_view, changes)), tokens=(), prediction=(), untouched=(), appears=None,
        evolution=None, evolution_untouched=None, attention=None, patterns=None, neurons=None, neuron=None,
        coverage=None,
    )  # fmt: skip


def prompt_page(index: Index, ask: PromptAsk, panel: str, answer: PromptAnswer) -> PromptView:
    attention: list[AttentionView] = [
        {"layer": each.layer, "head": each.head, "weights": each.weights} for each in answer.attention or ()
    ]
    coverage: list[CoverageView] = [
        {"layer": row.layer, "kind": row.kind, "covered": row.covered, "shuffled": row.shuffled}
        for row in answer.coverage or ()
    ]
    return PromptView.of(
        model=index.manifest.model,
        text=ask.text,
        panel=panel,
        convention=ask.convention,
        position=answer.position,
        layer=answer.layer,
        head=ask.head,
        changes=tuple(map(change_view, ask.interventions)),
        tokens=token_views(index.tokens, answer.tokens),
        prediction=_likely(index, answer.prediction),
        untouched=_likely(index, answer.untouched),
        appears=answer.appears,
        evolution=answer.evolution and _evolution(index, answer.evolution),
        evolution_untouched=answer.evolution_untouched and _evolution(index, answer.evolution_untouched),
        attention=None if answer.attention is None else tuple(attention),
        patterns=answer.patterns and tuple(_pattern(index, each) for each in answer.patterns),
        neurons=answer.neurons and tuple(_active(index, each) for each in answer.neurons),
        neuron=answer.neuron and _chosen(index, answer.neuron),
        coverage=None if answer.coverage is None else tuple(coverage),
    )


def change_view(change: Intervention) -> ChangeView:
    if isinstance(change, HeadOff):
        return {"layer": change.layer, "neuron": None, "head": change.head, "value": 0.0}
    return {"layer": change.layer, "neuron": change.neuron, "head": None, "value": change.value}


def _likely(index: Index, entries: Iterable[Likely]) -> tuple[LikelyView, ...]:
    texts = index.tokens.texts
    return tuple([{"id": entry.id, "token": texts[entry.id], "p": entry.p} for entry in entries])


def _evolution(index: Index, rows: Iterable[EvolutionRow]) -> tuple[EvolutionView, ...]:
    return tuple(
        [
            {
                "layer": row.layer,
                "after": row.after,
                "cells": tuple([_likely(index, cell) for cell in row.cells]),
                "answer": row.answer,
                "answer_rank": row.answer_rank,
            }
            for row in rows
        ]
    )


def _pattern(index: Index, each: HeadPattern) -> PatternView:
    messages: list[MessageView] = [
        {"position": message.position, "weight": message.weight, "tokens": scored_views(index, message.tokens)}
        for message in each.messages
    ]
    return {"head": each.head, "pattern": scored_views(index, each.pattern), "messages": tuple(messages)}


def _chosen(index: Index, each: ChosenNeuron) -> ChosenView:
    def listed(end: str) -> tuple[TokenView, ...]:
        return first_tokens(index, "ff_up", each.layer, each.neuron, FIRST_OF_CHOSEN, end)

    up: UpView | None = {"top": listed("top"), "bottom": listed("bottom")} if index.shape.gated else None
    active = _active(index, each, FIRST_OF_CHOSEN)
    return {**active, "up": up, "rank": each.rank, "coefficients": each.coefficients}


def _active(index: Index, each: ActiveNeuron, n: int = FIRST) -> ActiveView:
    """A negative coefficient turns the value round: what it then promotes stands at the bottom of its list."""
    end = "top" if each.coefficient >= 0 else "bottom"
    return {
        "layer": each.layer,
        "neuron": each.neuron,
        "coefficient": each.coefficient,
        "strength": each.strength,
        "first_only": each.first_only,
        "key": first_tokens(index, "ff_key", each.layer, each.neuron, n),
        "value": first_tokens(index, "ff_value", each.layer, each.neuron, n, end),
        "end": end,
    }
