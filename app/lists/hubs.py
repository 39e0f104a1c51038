"""Leaves hubs out of what a page shows: tokens in so many lists of vectors that a place in one says little.

Lists by score lose their hubs once a view is made (`without_hubs`), whichever page they are of, and keep their true
ranks. Where a page shows only the first few tokens of a list, its view skips hubs as it reads (`first_kept`)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from lexiscope.app.lists.view import ScoredToken, Token, TokenPair, View
from lexiscope.precompute.index.index import Index

LOOKED_AT = 40  # tokens of a list, for the first few that are no hubs

# What the walk through a view passes by: what the model predicts, which is no vector's list; tokens near another, whose
# hubs are left out always; and long tables that hold no list by score.
PASSED_BY = frozenset({"prediction", "untouched", "cells", "nearest", "nearest_hubs", "places", "matches", "rows"})
_TOKEN, _PAIR = {"id", "token", "score"}, {"from", "to", "score"}

V = TypeVar("V", bound=View)


def hubs_of(index: Index, lens: str | None = None) -> frozenset[int]:
    """The hubs of a lens, or of the first that is stored; none where a live page has a lens that is not."""
    lens = lens or index.stored.lens
    return index.hubs(lens) if lens in index.stored.lenses else frozenset()


def first_kept(rows: Iterable[Sequence[int]], hubs: frozenset[int], n: int) -> list[list[int]]:
    """The first n tokens of each list that are no hubs."""
    return [list(islice((token for token in row if token not in hubs), n)) for row in rows]


def without_hub_pairs(pairs: Iterable[TokenPair], hubs: frozenset[int]) -> Iterator[TokenPair]:
    return (pair for pair in pairs if pair["from"]["id"] not in hubs and pair["to"]["id"] not in hubs)


def split_nearest(index: Index, nearest: Sequence[ScoredToken]) -> tuple[list[ScoredToken], list[Token]]:
    """Tokens near to something without those that are near to very many others; and these, which are left out."""
    hubs = index.nearest_hubs
    near = [token for token in nearest if token["id"] not in hubs]
    return near, [{"id": token["id"], "token": token["token"]} for token in nearest if token["id"] in hubs]


def without_hubs(index: Index, view: V) -> V:
    """The view with `hubs` and `hubs_hidden` set, and without the entries of lists, and pairs, that hold a hub; the
    tokens that the page itself is about stay."""
    walk = _Walk(index, _subjects(view))
    shown: V = walk.filter_fields(view, hubs_of(index) - walk.subjects)
    return replace(shown, hubs="hide", hubs_hidden=walk.hidden)


def _subjects(view: View) -> frozenset[int]:
    """The token of a token's page, the words of a search."""
    token, words = getattr(view, "token", None), getattr(view, "words", None)
    groups = [group.tokens for group in words] if isinstance(words, list) else []
    return frozenset(each["id"] for each in ([token] if token else []) + [t for group in groups for t in group])


class _Walk:
    """Goes through all parts of a view; what says its own lens is read under that one."""

    def __init__(self, index: Index, subjects: frozenset[int]) -> None:
        self.index = index
        self.subjects = subjects
        self.hidden = 0
        self._done: dict[int, Any] = {}  # what a view has at two places counts once

    def filter_fields(self, of: Any, hubs: frozenset[int]) -> Any:
        """A dataclass with its parts; one with two ends is told how many each has lost."""
        hubs = self._hubs(getattr(of, "lens", None), hubs)
        names = [field.name for field in fields(of)]
        values = {name: getattr(of, name) for name in names}
        changed = {name: self.filter_value(value, hubs) for name, value in values.items() if name not in PASSED_BY}
        if "hubs_hidden_by_end" in names:
            changed["hubs_hidden_by_end"] = tuple(len(values[end]) - len(changed[end]) for end in ("top", "bottom"))
        return replace(of, **changed)

    def filter_value(self, value: Any, hubs: frozenset[int]) -> Any:
        match value:
            case dict():
                hubs = self._hubs(value.get("lens"), hubs)
                return {
                    name: part if name in PASSED_BY else self.filter_value(part, hubs) for name, part in value.items()
                }
            case list() | tuple() if value and isinstance(value[0], dict) and _ends(value[0]):
                return self._kept(value, hubs)
            case list() | tuple() if value and (isinstance(value[0], dict | list | tuple) or is_dataclass(value[0])):
                return type(value)([self.filter_value(part, hubs) for part in value])
            case _:
                if is_dataclass(value) and id(value) not in self._done:
                    self._done[id(value)] = self.filter_fields(value, hubs)
                return self._done.get(id(value), value)

    def _kept(self, entries: Sequence[dict[str, Any]], hubs: frozenset[int]) -> list[dict[str, Any]]:
        """Entries of a list without hubs; with their ranks, unless all are left."""
        kept = [
            {**entry, "rank": entry.get("rank", rank)}
            for rank, entry in enumerate(entries, 1)
            if not any((entry[end] if end else entry)["id"] in hubs for end in _ends(entry))
        ]
        self.hidden += len(entries) - len(kept)
        return kept if len(kept) < len(entries) else list(entries)

    def _hubs(self, lens: Any, above: frozenset[int]) -> frozenset[int]:
        return hubs_of(self.index, lens) - self.subjects if isinstance(lens, str) else above


def _ends(entry: dict[str, Any]) -> tuple[str, ...]:
    """Where an entry of a list has its tokens: in itself, at both sides of a pair, or at the other side of a place."""
    if entry.keys() >= _TOKEN:
        return ("",)
    if entry.keys() >= _PAIR:
        return ("from", "to")
    return ("other",) if "other" in entry else ()
