"""Leave hubs out of the lists on a page. Hubs are tokens in so many lists of vectors that one more says little.

Lists by score lose their hubs after the data of a page is made (`without_hubs`), and the other entries keep their true
ranks. A page that shows only the first few tokens of a list skips hubs as it reads them (`first_kept`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from lexiscope.app.lists.view import ScoredToken, Token, TokenPair, View
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.tensor_file import Array

READ_TO_SKIP_HUBS = 40  # how many tokens of a list are read to find the first few that are not hubs

# Fields that are not filtered: predictions of the model, which are no vector's list; tokens near another, whose hubs
# are always left out; and long tables that hold no list by score.
PASSED_BY = frozenset({"prediction", "untouched", "cells", "nearest", "nearest_hubs", "places", "matches", "rows"})
_TOKEN, _PAIR = {"id", "token", "score"}, {"from", "to", "score"}

V = TypeVar("V", bound=View)


def hubs_of(index: Index, lens: str | None = None) -> frozenset[int]:
    """Return the hubs (tokens in very many lists) of a lens, or of the first stored lens; return none for a lens that a
    live page offers but the index does not store."""
    lens = lens or index.stored.lens
    return index.hubs(lens) if lens in index.stored.lenses else frozenset()


def first_kept(rows: Iterable[Sequence[int]], hubs: frozenset[int], n: int) -> list[list[int]]:
    """Return the first n tokens of each list, without the given hubs (tokens in very many lists)."""
    return [list(islice((token for token in row if token not in hubs), n)) for row in rows]


def first_tokens(
    shard: Shard, kind: str, rows: Array, lens: str, n: int, hubs: frozenset[int], end: str = "top"
) -> list[list[int]]:
    """Read the first n tokens at the top or the bottom of each vector's list, without the given hubs (tokens in very
    many lists)."""
    return first_kept(shard.first_ids(kind, rows, lens, READ_TO_SKIP_HUBS if hubs else n, end).tolist(), hubs, n)


def without_hub_pairs(pairs: Iterable[TokenPair], hubs: frozenset[int]) -> Iterator[TokenPair]:
    return (pair for pair in pairs if pair["from"]["id"] not in hubs and pair["to"]["id"] not in hubs)


def split_nearest(index: Index, nearest: Sequence[ScoredToken]) -> tuple[list[ScoredToken], list[Token]]:
    """Split the tokens nearest to something into those to show and those to leave out because they are near to very
    many others."""
    hubs = index.nearest_hubs
    near = [token for token in nearest if token["id"] not in hubs]
    return near, [{"id": token["id"], "token": token["token"]} for token in nearest if token["id"] in hubs]


def without_hubs(index: Index, view: V) -> V:
    """Return the data of a page with `hubs` and `hubs_hidden` set, and without entries and pairs that hold a hub (a
    token in very many lists). The tokens that the page itself is about stay."""
    walk = _Walk(index, _subjects(view))
    shown: V = walk.filter_fields(view, hubs_of(index) - walk.subjects)
    return replace(shown, hubs="hide", hubs_hidden=walk.hidden)


def _subjects(view: View) -> frozenset[int]:
    """Return the tokens that a page is about: the token of a token's page, or the words of a search."""
    token, words = getattr(view, "token", None), getattr(view, "words", None)
    groups = [group.tokens for group in words] if isinstance(words, list) else []
    return frozenset(each["id"] for each in ([token] if token else []) + [t for group in groups for t in group])


class _Walk:
    """Go through the data of a page and leave out hubs (tokens in very many lists). A part with a lens of its own is
    filtered by the hubs of that lens."""

    def __init__(self, index: Index, subjects: frozenset[int]) -> None:
        self.index = index
        self.subjects = subjects
        self.hidden = 0
        # filtered values by id, so that a value that occurs twice in the data is counted once
        self._done: dict[int, Any] = {}

    def filter_fields(self, of: Any, hubs: frozenset[int]) -> Any:
        """Return a dataclass with all its fields filtered. A dataclass with the top and the bottom of a list also gets
        the number of hidden entries at each."""
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
        """Return the entries of a list without hubs (tokens in very many lists). If any entry is left out, the others
        get their ranks."""
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
    """Return the keys of an entry that hold its tokens: its own id, the two sides of a pair, or the other side of a
    pair that holds a token."""
    if entry.keys() >= _TOKEN:
        return ("",)
    if entry.keys() >= _PAIR:
        return ("from", "to")
    return ("other",) if "other" in entry else ()
