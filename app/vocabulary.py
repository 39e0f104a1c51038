"""The tokens of a model as they stand in JSON and in pages, by id: each made once, because every list holds hundreds.
Lists by id, since looking tokens up is waiting for memory more than anything; which token is where is for lists.py."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import orjson

from app.token_text import shown
from precompute.tokens import TokenTable

T = TypeVar("T")

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


class Vocabulary:
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.openings = Made(texts, opening)
        self.markup = Made(texts, lambda _, text: token_markup(text))


def vocabulary_of(tokens: TokenTable) -> Vocabulary:
    """One for each table, for as long as that is in use."""
    known = _KNOWN.get(tokens)
    if known is None:
        known = _KNOWN[tokens] = Vocabulary(tokens.texts)
    return known


_KNOWN: WeakKeyDictionary[TokenTable, Vocabulary] = WeakKeyDictionary()


def opening(token: int, text: str) -> bytes:
    """A token as a JSON object that may go on: `{"id":3290,"token":" dog"`."""
    return orjson.dumps({"id": token, "token": text})[:-1]


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
