"""Keep the lists on a page to some tokens: to whole words (`preset=words`), to the tokens of a vocabulary, or to those
that are no hubs, which are tokens in so many lists of vectors that one more says little.

Stored lists of vectors and pairs are read whole and then cut (`first_entries`), short lists in tables are cut as they
are read (`first_kept`), a worker is sent the tokens as bits (`KeptTokens.packed`). Whatever other list a page has loses
its entries after the data of the page is made (`keep_tokens`). All entries keep their true ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from lexiscope.app.library.vocabularies import Vocabulary
from lexiscope.app.lists.view import Only, ScoredToken, Token, TokenPair, View
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.index.tokens import whole_words
from lexiscope.precompute.live.wire.fields import pack_tokens

ARGUMENTS = ("hubs", "preset", "vocabulary")  # those of an address that say which tokens stand in lists
READ_TO_SKIP_HUBS = 40  # how many entries of a list are read to find the first few that are not hubs
# If so many tokens are left out, as words and vocabularies do, lists are read as far as they are stored.
MANY, READ_WHOLE = 1000, 1000
MOST_KNOWN = 20  # choices of tokens that are kept in memory for an index

# Fields that are not filtered: predictions of the model, which are no vector's list; and long tables that hold no list
# by score.
PASSED_BY = frozenset({"prediction", "untouched", "cells", "places", "matches", "rows"})
# Tokens near another, whose hubs are others, and always left out.
NEAREST = frozenset({"nearest", "nearest_hubs"})
_TOKEN, _PAIR = {"id", "token", "score"}, {"from", "to", "score"}

V = TypeVar("V", bound=View)
L = TypeVar("L", bound=Any)  # a dataclass with the lists `top` and `bottom`
E = TypeVar("E", ScoredToken, TokenPair)

_words: WeakKeyDictionary[Index, Array] = WeakKeyDictionary()
_outside: WeakKeyDictionary[Index, dict["KeptTokens", frozenset[int]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class KeptTokens:
    """Which tokens may stand in the lists of a page: all, only whole words, only those of a vocabulary."""

    words: bool = False
    vocabulary: Vocabulary | None = None

    @property
    def are_all(self) -> bool:
        return not self.words and self.vocabulary is None

    def flags(self, index: Index) -> Array:
        """Return flags (d_vocab,) of these tokens."""
        kept: Array = np.ones(index.shape.d_vocab, bool) if self.vocabulary is None else self.vocabulary.tokens.copy()
        if self.words:
            if index not in _words:
                _words[index] = whole_words([*index.tokens])
            kept &= _words[index]
        return kept

    def outside(self, index: Index) -> frozenset[int]:
        """Return all other tokens."""
        if self.are_all:
            return frozenset()
        known = _outside.setdefault(index, {})
        if (outside := known.get(self)) is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            outside = known[self] = frozenset(np.flatnonzero(~self.flags(index)).tolist())
        return outside

    @property
    def of_pairs(self) -> "KeptTokens":
        """Return which tokens may stand in pairs, whose lists of words are stored: there `preset` is another list."""
        return KeptTokens(vocabulary=self.vocabulary)

    def packed(self, index: Index) -> bytes | None:
        """Return these tokens as an ask to a worker names them."""
        return None if self.are_all else pack_tokens(self.flags(index))

    def query(self) -> dict[str, str]:
        """Return the arguments of an address that ask for these tokens."""
        words = {"preset": "words"} if self.words else {}
        return words | ({"vocabulary": self.vocabulary.name} if self.vocabulary else {})

    def about(self) -> Only:
        """Return what the data of a page says of these tokens."""
        return {"words": self.words, "vocabulary": self.vocabulary.name if self.vocabulary else None}


ALL_TOKENS = KeptTokens()


def hubs_of(index: Index, lens: str | None = None) -> frozenset[int]:
    """Return the hubs (tokens in very many lists) of a lens, or of the first stored lens; return none for a lens that a
    live page offers but the index does not store."""
    lens = lens or index.stored.lens
    return index.hubs(lens) if lens in index.stored.lenses else frozenset()


def first_kept(rows: Iterable[Sequence[int]], left_out: frozenset[int], n: int) -> list[list[int]]:
    """Return the first n tokens of each list, without the given ones."""
    if not left_out:
        return [list(row[:n]) for row in rows]
    return [list(islice((token for token in row if token not in left_out), n)) for row in rows]


def first_kept_pairs(pairs: Iterable[list[int]], left_out: frozenset[int], n: int) -> list[tuple[int, int]]:
    """Return the first n pairs of ids of a list, without those that hold one of the given tokens."""
    return [*islice(((a, b) for a, b in pairs if left_out.isdisjoint((a, b))), n)]


def entries_to_read(left_out: frozenset[int], n: int) -> int:
    """Return how many entries of each list to read, so that n remain in most when the given tokens are left out."""
    if len(left_out) >= MANY:
        return READ_WHOLE
    return READ_TO_SKIP_HUBS if left_out else n


def first_tokens(
    shard: Shard, kind: str, rows: Array, lens: str, n: int, left_out: frozenset[int], end: str = "top"
) -> list[list[int]]:
    """Read the first n tokens at the top or the bottom of each vector's list, without the given ones."""
    return first_kept(shard.first_ids(kind, rows, lens, entries_to_read(left_out, n), end).tolist(), left_out, n)


def first_entries(entries: Sequence[E], outside: frozenset[int], n: int | None) -> list[E]:
    """Return the first n entries of a whole list by score, without those that hold one of the given tokens; the others
    get their ranks."""
    if not outside:
        return list(entries[:n])
    ranked: Iterator[Any] = ({**entry, "rank": rank} for rank, entry in enumerate(entries, 1))
    return [*islice((entry for entry in ranked if outside.isdisjoint(ids_of(entry))), n)]


def keep_vectors(vectors: Sequence[L], outside: frozenset[int], n: int) -> list[L]:
    """Return vectors, whose lists are whole, with the first n entries of each list."""
    ends = ("top", "bottom")
    return [replace(each, **{end: first_entries(getattr(each, end), outside, n) for end in ends}) for each in vectors]


def without_pairs(pairs: Iterable[TokenPair], left_out: frozenset[int]) -> Iterator[TokenPair]:
    return (pair for pair in pairs if left_out.isdisjoint(ids_of(pair)))


def split_nearest(index: Index, nearest: Sequence[ScoredToken]) -> tuple[list[ScoredToken], list[Token]]:
    """Split the tokens nearest to something into those to show and those to leave out because they are near to very
    many others."""
    hubs = index.nearest_hubs
    near = [token for token in nearest if token["id"] not in hubs]
    return near, [{"id": token["id"], "token": token["token"]} for token in nearest if token["id"] in hubs]


def keep_tokens(index: Index, view: V, hide_hubs: bool, kept: KeptTokens = ALL_TOKENS) -> V:
    """Return the data of a page without entries and pairs that hold other tokens than these or, with `hide_hubs`, a hub
    (a token in very many lists). The tokens that the page itself is about stay."""
    if not hide_hubs and kept.are_all:
        return view
    walk = _Walk(index, _subjects(view), hide_hubs, kept)
    shown: V = walk.filter_fields(view, walk.hubs(index.stored.lens, frozenset()))
    if hide_hubs:
        shown = replace(shown, hubs="hide", hubs_hidden=walk.hubs_hidden)
    return shown if kept.are_all else replace(shown, only=kept.about(), only_hidden=walk.only_hidden)


def _subjects(view: View) -> frozenset[int]:
    """Return the tokens that a page is about: the token of a token's page, or the words of a search."""
    token, words = getattr(view, "token", None), getattr(view, "words", None)
    groups = [group.tokens for group in words] if isinstance(words, list) else []
    return frozenset(each["id"] for each in ([token] if token else []) + [t for group in groups for t in group])


class _Walk:
    """Go through the data of a page and leave out entries. A part with a lens of its own loses the hubs of that
    lens."""

    def __init__(self, index: Index, subjects: frozenset[int], hide_hubs: bool, kept: KeptTokens) -> None:
        self.index, self.subjects, self.hide_hubs = index, subjects, hide_hubs
        self.outside, self.outside_pairs = (tokens.outside(index) - subjects for tokens in (kept, kept.of_pairs))
        self.hubs_hidden = self.only_hidden = 0
        # filtered values by id, so that a value that occurs twice in the data is counted once
        self._done: dict[int, Any] = {}

    def hubs(self, lens: Any, above: frozenset[int]) -> frozenset[int]:
        """Return the hubs to leave out under a lens; where a part of the data has no lens, those of the part above."""
        return hubs_of(self.index, lens) - self.subjects if self.hide_hubs and isinstance(lens, str) else above

    def filter_fields(self, of: Any, hubs: frozenset[int]) -> Any:
        """Return a dataclass with all its fields filtered. A dataclass with the top and the bottom of a list also gets
        the number of hidden hubs at each."""
        hubs = self.hubs(getattr(of, "lens", None), hubs)
        names = [each.name for each in fields(of)]
        values = {name: getattr(of, name) for name in names}
        changed = {name: self._filter_field(name, value, hubs) for name, value in values.items()}
        if self.hide_hubs and "hubs_hidden_by_end" in names:
            changed["hubs_hidden_by_end"] = tuple(len(values[end]) - len(changed[end]) for end in ("top", "bottom"))
        return replace(of, **changed)

    def filter_value(self, value: Any, hubs: frozenset[int]) -> Any:
        match value:
            case dict():
                hubs = self.hubs(value.get("lens"), hubs)
                return {name: self._filter_field(name, part, hubs) for name, part in value.items()}
            case list() | tuple() if value and isinstance(value[0], dict) and ids_of(value[0]):
                return self._kept(value, hubs)
            case list() | tuple() if value and (isinstance(value[0], dict | list | tuple) or is_dataclass(value[0])):
                return type(value)([self.filter_value(part, hubs) for part in value])
            case _:
                if is_dataclass(value) and id(value) not in self._done:
                    self._done[id(value)] = self.filter_fields(value, hubs)
                return self._done.get(id(value), value)

    def _filter_field(self, name: str, value: Any, hubs: frozenset[int]) -> Any:
        if name in PASSED_BY:
            return value
        return self.filter_value(value, frozenset() if name in NEAREST else hubs)

    def _kept(self, entries: Sequence[dict[str, Any]], hubs: frozenset[int]) -> list[dict[str, Any]]:
        """Return the entries of a list that may stand there. If any entry is left out, the others get their ranks."""
        kept = []
        for rank, entry in enumerate(entries, 1):
            ids = ids_of(entry)
            if not (self.outside if "id" in entry else self.outside_pairs).isdisjoint(ids):
                self.only_hidden += 1
            elif not hubs.isdisjoint(ids):
                self.hubs_hidden += 1
            else:
                kept.append({**entry, "rank": entry.get("rank", rank)})
        return kept if len(kept) < len(entries) else list(entries)


def ids_of(entry: Any) -> tuple[int, ...]:
    """Return the tokens of an entry: its own, the two sides of a pair, or the other side of a pair that holds a token;
    none for what is no entry of a list by score."""
    if entry.keys() >= _TOKEN:
        return (entry["id"],)
    if entry.keys() >= _PAIR:
        return entry["from"]["id"], entry["to"]["id"]
    return (entry["other"]["id"],) if "other" in entry else ()
