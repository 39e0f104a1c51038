"""A parameter's page as a label: JSON with its address and the first entries of its list, ready for a file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lexiscope.app.views.tokens import TokenPair
from lexiscope.app.views.vectors import Vector

ENTRIES = 10  # of a list
TITLE_WORDS = 3
LONGEST = 200  # characters of a token: few are so long

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """What a label of a parameter starts with: its address below the model, and the first entries of its list."""

    path: str
    lens: str
    tokens: Sequence[str] = ()
    pairs: Sequence[Sequence[str]] = ()
    preset: str = "all"


class Labelled(Protocol):
    """The view of a page that can be copied as a label."""

    @property
    def model(self) -> str: ...

    def label_entries(self) -> list[LabelEntry]: ...


def vector_entry(path: str, lens: str, vector: Vector | None) -> LabelEntry:
    tokens = [entry["token"] for entry in vector.top if len(entry["token"]) <= LONGEST][:ENTRIES] if vector else []
    return LabelEntry(path, lens, tokens)


def pairs_entry(path: str, lens: str, preset: str, top: Sequence[TokenPair]) -> LabelEntry:
    texts = [[pair["from"]["token"], pair["to"]["token"]] for pair in top]
    pairs = [pair for pair in texts if max(map(len, pair)) <= LONGEST][:ENTRIES]
    return LabelEntry(path, lens, pairs=pairs, preset=preset)


def as_label(view: Labelled) -> str:
    """A whole file: a list of one label, or of a head or direction one for each matrix. Titles are to be changed."""
    return _json([_fields(view.model, entry) for entry in view.label_entries()])


def _fields(model: str, entry: LabelEntry) -> Fields:
    entries = [*entry.tokens, *entry.pairs]
    texts = [*entry.tokens, *(text for pair in entry.pairs for text in pair)]
    return (
        _label(model, entry.path, texts)
        | _lists("tokens", [*entry.tokens])
        | _lists("pairs", [*entry.pairs])
        | _unless("lens", entry.lens, "dot", entries)
        | _unless("preset", entry.preset, "all", entries)
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
