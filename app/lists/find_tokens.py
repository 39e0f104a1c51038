"""Find tokens by their text: tokens that are equal to it, begin with it or contain it, regardless of case and
surrounding space. In a WordPiece vocabulary the ## of a piece is ignored, too."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, islice
from threading import Lock
from typing import Literal
from weakref import WeakKeyDictionary

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import TokenTable, text_surface, whole_words

Match = Literal["exact", "prefix", "substring"]

TOKEN_ID = re.compile(r"#?(\d{1,9})", re.ASCII)
FORMS = 3  # most endings after each other that are looked at: a vocabulary may have a chain of thousands
ENDINGS = ("s", "d", "ly")  # "ed" and "ing" are missing because a piece such as " improv" has these forms, too

# What is suggested while somebody types. A token's id stands for its rank by frequency: vocabularies of all kinds have
# frequent tokens first. A word so many letters longer than what is typed counts as so many times rarer, as does a piece
# of words such as " partic", or a word that is a form of another one.
CANDIDATES = 100
LETTER_COST, PIECE_COST = 4, 16

_BETWEEN = "\uffff"  # a code point that is no character, so that no search text holds it

_searches: WeakKeyDictionary[TokenTable, "TokenSearch"] = WeakKeyDictionary()
_searches_lock = Lock()


def token_search(tokens: TokenTable) -> "TokenSearch":
    """Return the search of a vocabulary. It is made once, which takes a tenth of a second for 50,000 tokens."""
    with _searches_lock:
        search = _searches.get(tokens)
        if search is None:
            search = _searches[tokens] = TokenSearch(tokens)
        return search


class TokenSearch:
    """Search a vocabulary. The texts of all tokens, in lower case and without surrounding space, are joined into one
    text, smallest ids (in a byte-pair vocabulary the most frequent tokens) first: a search is a few scans for a
    substring, and finds the best first."""

    def __init__(self, tokens: TokenTable) -> None:
        # the token table is not kept here, because the table keeps this search
        self._is_wordpiece = tokens.is_wordpiece
        self._continuing = {token for token in range(len(tokens)) if tokens.continues_word(token)}
        groups: dict[str, list[int]] = {}
        self._surfaces = []  # lower-case texts without surrounding space, by token id
        for token in range(len(tokens)):
            self._surfaces.append(tokens.surface(tokens.text(token)))
            groups.setdefault(self._surfaces[-1], []).append(token)
        self._groups = groups
        self._whole = whole_words([*tokens])
        self._blank = {tokens.text(token): token for token in reversed(groups.get("", [])) if tokens.raw(token)}
        self._order = [key for key in groups if key]
        self._text = _BETWEEN + _BETWEEN.join(self._order) + _BETWEEN
        self._starts = list(accumulate((len(key) + 1 for key in self._order), initial=1))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._order)

    def tokens(self, text: str) -> tuple[int, ...]:
        """Return the tokens that differ from this text only in case and surrounding space; for a blank text, only the
        token that equals it."""
        if key := text_surface(text, self._is_wordpiece):
            return tuple(self._groups.get(key, ()))
        return (self._blank[text],) if text in self._blank else ()

    def variants(self, token: int) -> tuple[int, ...]:
        """Return the other tokens that differ from this one only in case and surrounding space; a blank token has
        none."""
        key = self._surfaces[token]
        return tuple(other for other in self._groups[key] if other != token) if key else ()

    def is_piece(self, token: int) -> bool:
        """Return True if a token is more likely a part of words, such as " merchand", than a word: it has no variants
        in case or space, longer tokens begin with it, and none of these is the token with s, d or ly. In a WordPiece
        vocabulary the ## shows which tokens are parts."""
        if self._is_wordpiece:
            return token in self._continuing
        key = self._surfaces[token]
        if not (key.isascii() and key.isalpha()) or len(self._groups[key]) > 1:
            return False
        following = bisect_right(self._sorted, key)
        goes_on = following < len(self._sorted) and self._sorted[following].startswith(key)
        return goes_on and not any(key + ending in self._groups for ending in ENDINGS)

    def like(self, text: str, limit: int) -> list[tuple[str, Match]]:
        """Return token texts similar to `text`: first the equal one, then those that begin with it, then those that
        contain it."""
        key = text_surface(text, self._is_wordpiece)
        if not key or _BETWEEN in key or limit < 1:
            return []
        matches: dict[str, Match] = {key: "exact"} if key in self._groups else {}
        for kind, sought in (("prefix", _BETWEEN + key), ("substring", key)):
            if len(matches) < limit:
                others = (other for other in self._holding(sought) if other not in matches)
                matches |= dict.fromkeys(islice(others, limit - len(matches)), kind)  # type: ignore[arg-type]
        return list(matches.items())

    def suggest(self, text: str, limit: int) -> list[tuple[str, Match]]:
        """Return token texts for a text that is still being typed: as `like`, but of those that begin with it words
        first, before pieces and forms of words, and of these the frequent and the short ones."""
        found, key = self.like(text, limit), text_surface(text, self._is_wordpiece)
        if not found:
            return []
        longer = islice((other for other in self._holding(_BETWEEN + key) if other != key), CANDIDATES)
        prefixes = sorted(longer, key=lambda other: self._cost(other, len(key)))
        equal, holding = ([each for each in found if each[1] == kind] for kind in ("exact", "substring"))
        return [*equal, *((other, "prefix") for other in prefixes), *holding][:limit]

    def _cost(self, key: str, typed: int) -> int:
        is_form = any(key.endswith(ending) and key.removesuffix(ending) in self._groups for ending in ENDINGS)
        penalty = PIECE_COST if is_form or not self._is_word(key) else 1
        cost: int = (self._groups[key][0] + 1) * penalty * LETTER_COST ** (len(key) - typed)
        return cost

    def _is_word(self, key: str, forms: int = FORMS) -> bool:
        """Return True if the most frequent token of a text is a whole word, and is not there for longer ones alone:
        these are together rarer, by 1 / id as in Zipf's law, or the token with s, d or ly is a word, too."""
        if not self._whole[self._groups[key][0]]:
            return False
        longer = [key + ending for ending in ENDINGS if forms and key + ending in self._groups]
        if any(self._is_word(form, forms - 1) for form in longer):
            return True
        first, last = bisect_right(self._sorted, key), bisect_right(self._sorted, key + _BETWEEN)
        return self._frequencies[last] - self._frequencies[first] < 1 / (self._groups[key][0] + 1)

    @cached_property
    def _frequencies(self) -> list[float]:
        """Return sums of the frequencies of all texts before each one in `_sorted`."""
        return [*accumulate((1 / (self._groups[key][0] + 1) for key in self._sorted), initial=0.0)]

    def _holding(self, sought: str) -> Iterator[str]:
        position = self._text.find(sought)
        while position >= 0:
            # A text that begins with `text` is found by the separator before it.
            first = position + (sought[0] == _BETWEEN)
            group = bisect_right(self._starts, first) - 1
            if position == first or self._starts[group] == first:
                yield self._order[group]
            position = self._text.find(sought, self._starts[group + 1] - 1)


def token_named(index: Index, text: str) -> int:
    """Return the token that a word stands for: the one with a space before it if there is one, else the one without,
    else one in another case."""
    word = text.strip()
    if number := TOKEN_ID.fullmatch(word):
        index.tokens.raw(token := int(number[1]))
        return token
    candidates = token_search(index.tokens).tokens(word or text)
    for wanted in (f" {word}", word):
        for token in candidates:
            if index.tokens.text(token) == wanted:
                return token
    if not candidates:
        raise NotFound(
            f"token {text[:100]!r} is none of {index.manifest.model}: give a word that is, or an id as #2767"
        )
    return candidates[0]
