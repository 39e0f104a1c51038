"""The entries that every list is made of, and what all views have in common.

JSON has the fields of a view, except those marked PAGE_ONLY, and those marked OMIT_NONE while they are None."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from precompute.index.tokens import TokenTable

PAGE_ONLY: Any = Field(exclude=True)  # for people's eyes; programs get it otherwise, or do not need it
OMIT_NONE: Any = Field(exclude_if=lambda value: value is None)


class View:
    """What a page shows, as data: the base of frozen dataclasses."""

    __slots__ = ()


class Token(TypedDict):
    id: int
    token: str


class ScoredToken(Token):
    score: float


TokenPair = TypedDict("TokenPair", {"from": Token, "to": Token, "score": float})


def token_of(tokens: TokenTable, token: int) -> Token:
    return {"id": token, "token": tokens.texts[token]}


def tokens_of(tokens: TokenTable, ids: Iterable[int]) -> list[Token]:
    texts = tokens.texts
    return [{"id": token, "token": texts[token]} for token in ids]


def scored_tokens(tokens: TokenTable, ids: Iterable[int], scores: Iterable[float]) -> list[ScoredToken]:
    texts = tokens.texts
    return [{"id": token, "token": texts[token], "score": score} for token, score in zip(ids, scores, strict=True)]


def token_pairs(tokens: TokenTable, pairs: Iterable[tuple[int, int]], scores: Iterable[float]) -> list[TokenPair]:
    texts = tokens.texts
    return [
        {"from": {"id": a, "token": texts[a]}, "to": {"id": b, "token": texts[b]}, "score": score}
        for (a, b), score in zip(pairs, scores, strict=True)
    ]
