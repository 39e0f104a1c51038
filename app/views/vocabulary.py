"""The tokens of a model as they stand in JSON and in pages, by id: each made once, because every list holds hundreds.
Lists by id, since looking tokens up is waiting for memory more than anything; which token is where is for lists.py."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import orjson
from numpy.typing import NDArray

from app.views.token_text import shown
from precompute.index.tokens import TokenTable

T = TypeVar("T")

_WIDTH = 48  # bytes of JSON: enough for all but a few tokens
_CUT = 9  # lists side by side have room for about as many characters


class Made(Generic[T]):
    """Something for each token, never empty, made when it is first asked for."""

    def __init__(self, texts: list[str], make: Callable[[int, str], T]) -> None:
        self._texts = texts
        self._make = make
        self._made: list[T | None] = [None] * len(texts)

    def column(self, ids: Iterable[int]) -> list[T]:
        made, add = self._made, self._add
        return [made[token] or add(token) for token in ids]

    def _add(self, token: int) -> T:
        made = self._made[token] = self._make(token, self._texts[token])
        return made


class Fragments:
    """Of each token a piece of the JSON of a list, made when it is first asked for; side by side in one table, because
    objects of their own lie all over the memory. The few that are too long for it are kept apart."""

    def __init__(self, texts: list[str], before: bytes, after: bytes) -> None:
        """`before` and `after` stand around `"id":3290,"token":" dog"`."""
        self._texts = texts
        self._before, self._after = before, after
        self._width = _WIDTH + len(before + after)
        self._table = np.zeros(len(texts), f"S{self._width}")
        self._long: dict[int, bytes] = {}

    def column(self, ids: NDArray[np.intp]) -> list[bytes]:
        made: list[bytes] = self._table[ids].tolist()
        if all(made):
            return made
        return [each or self._added(token) for each, token in zip(made, ids.tolist(), strict=True)]

    def _added(self, token: int) -> bytes:
        made = self._long.get(token) or self._before + _members(token, self._texts[token]) + self._after
        if len(made) > self._width:
            self._long[token] = made
        else:
            self._table[token] = made
        return made


class Vocabulary:
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        # Each begins with the end of the entry before it: the fewer pieces, the sooner they are joined.
        self.scored = Fragments(texts, b"},{", b',"score":')
        self.from_ = Fragments(texts, b'},{"from":{', b'},"to":{')
        self.to = Fragments(texts, b"", b'},"score":')
        self.markup = Made(texts, lambda _, text: token_markup(text))


def vocabulary_of(tokens: TokenTable) -> Vocabulary:
    """One for each table, for as long as that is in use."""
    known = _KNOWN.get(tokens)
    if known is None:
        known = _KNOWN[tokens] = Vocabulary(tokens.texts)
    return known


_KNOWN: WeakKeyDictionary[TokenTable, Vocabulary] = WeakKeyDictionary()


def _members(token: int, text: str) -> bytes:
    """What JSON says of a token: `"id":3290,"token":" dog"`."""
    return orjson.dumps({"id": token, "token": text})[1:-1]


def token_markup(text: str) -> str:
    """The spaces around a token, which are easily overlooked, are set apart by colour; one that may be cut is whole
    in its title."""
    seen = shown(text)
    bdi = f'<bdi title="{escape(seen)}">' if len(seen) > _CUT else "<bdi>"
    word = seen.strip("␣")
    if not word:
        return f"{bdi}{escape(seen)}</bdi>"
    before, after = seen.split(word, 1)
    marks = [f"<i>{mark}</i>" if mark else "" for mark in (before, after)]
    return f"{bdi}{marks[0]}{escape(word)}{marks[1]}</bdi>"
