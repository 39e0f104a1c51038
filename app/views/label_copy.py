"""A parameter's page as a label: JSON with its address and the first entries of its list, ready for a file."""

import json
from collections.abc import Iterable
from typing import Any

from app.views.direction import DirectionView
from app.views.head import HeadView, MatrixGlance
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.subhead import SubheadView
from app.views.tokens import TokenPair
from app.views.vectors import Vector

ENTRIES = 10  # of a list
TITLE_WORDS = 3
LONGEST = 200  # characters of a token: few are so long

Fields = dict[str, Any]
ParameterView = NeuronView | SubheadView | DirectionView | PairsView | HeadView


def as_label(view: ParameterView) -> str:
    """A whole file: a list of one label, or of a head or direction one for each matrix. Titles are to be changed."""
    return _json([entry for entry in _entries(view) if entry])


def _entries(view: ParameterView) -> list[Fields]:
    match view:
        case NeuronView():
            return [_of_vector(view, f"ff/{view.layer}/{view.neuron}", view.value or view.key or view.up)]
        case SubheadView():
            path = f"sub/{view.layer}/{view.head}/{view.subhead}"
            return [_of_vector(view, path, view.o or view.v or view.q or view.k)]
        case DirectionView():
            path, written = f"{view.layer}/{view.head}/{view.direction}", {"vo_out": "out", "qk_key": "key"}
            sides = {kind: view.vectors[side] for kind, side in written.items()}
            entries = [_of_vector(view, f"{kind}/{path}", vector) for kind, vector in sides.items() if vector]
            return entries or [_label(view.model, f"svd/{path}", [])]
        case PairsView():
            return [_of_pairs(view, view.matrix, view.top)]
        case HeadView():
            matrices: dict[str, MatrixGlance | None] = {"vo": view.vo, "qk": view.qk}
            entries = [_of_pairs(view, matrix, of.top) for matrix, of in matrices.items() if of]
            return entries or [_label(view.model, f"head/{view.layer}/{view.head}", [])]


def _of_vector(view: NeuronView | SubheadView | DirectionView, path: str, vector: Vector | None) -> Fields:
    tokens = [entry["token"] for entry in vector.top if len(entry["token"]) <= LONGEST][:ENTRIES] if vector else []
    return _label(view.model, path, tokens) | _lists("tokens", tokens) | _unless("lens", view.lens, "dot", tokens)


def _of_pairs(view: PairsView | HeadView, matrix: str, top: list[TokenPair]) -> Fields:
    texts = [[pair["from"]["token"], pair["to"]["token"]] for pair in top]
    pairs = [pair for pair in texts if max(map(len, pair)) <= LONGEST][:ENTRIES]
    path = f"{matrix}/{view.layer}/{view.head}"
    return (
        _label(view.model, path, [text for pair in pairs for text in pair])
        | _lists("pairs", pairs)
        | _unless("lens", view.lens, "dot", pairs)
        | _unless("preset", view.preset, "all", pairs)
    )


def _label(model: str, path: str, tokens: Iterable[str]) -> Fields:
    """The title is made of the first words, until a person has a better one."""
    words = dict.fromkeys(word for token in tokens if (word := token.strip()).isalpha())
    title = ", ".join([*words][:TITLE_WORDS]) or path
    return {"address": f"{model}/{path}", "title": title[:LONGEST], "text": "", "source": "", "url": ""}


def _lists(name: str, entries: list[Any]) -> Fields:
    return {name: entries} if entries else {}


def _unless(name: str, value: str, default: str, entries: list[Any]) -> Fields:
    return {name: value} if entries and value != default else {}


def _json(entries: list[Fields]) -> str:
    """A field on each line, and a list on one."""
    objects = [
        "  {\n" + ",\n".join(f'    "{name}": {_value(value)}' for name, value in entry.items()) + "\n  }"
        for entry in entries
    ]
    return "[\n" + ",\n".join(objects) + "\n]\n"


def _value(value: Any) -> str:
    """What cannot be seen is written as an escape."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
