"""Pairs of words and the heads that carry one to the other, from a worker's answer."""

from dataclasses import dataclass

from typing_extensions import TypedDict

from app.views.tokens import Token, View, token_of, tokens_of
from precompute.index.index import Index
from precompute.live.wire import HeadRelation, PairUsed, RelationAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word as the model has it: one token, or several pieces."""

    word: str
    tokens: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPair:
    source: Word
    target: Word
    ranked: Token  # the token whose rank counts: of a target of several pieces, the first


class RelationHead(TypedDict):
    layer: int
    head: int
    rank: float  # mean over the pairs; 1 is the best
    score: float
    ranks: tuple[int, ...]
    scores: tuple[float, ...]
    rank_from_bottom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationView(View):
    model: str
    lens: str
    pairs: list[RelationPair]
    heads: list[RelationHead]  # best mean rank first


def relation_view(index: Index, lens: str, answer: RelationAnswer | None) -> RelationView:
    """The page of a relation; without an answer, the one that asks for pairs."""
    return RelationView(
        model=index.manifest.model,
        lens=lens,
        pairs=[_pair(index, pair) for pair in answer.pairs] if answer else [],
        heads=[_head(head) for head in answer.heads] if answer else [],
    )


def _pair(index: Index, pair: PairUsed) -> RelationPair:
    tokens = index.tokens
    return RelationPair(
        source=Word(word=pair.source, tokens=tokens_of(tokens, pair.source_tokens)),
        target=Word(word=pair.target, tokens=tokens_of(tokens, pair.target_tokens)),
        ranked=token_of(tokens, pair.target_tokens[0]),
    )


def _head(head: HeadRelation) -> RelationHead:
    return {
        "layer": head.layer,
        "head": head.head,
        "rank": head.rank,
        "score": head.score,
        "ranks": head.ranks,
        "scores": head.scores,
        "rank_from_bottom": head.rank_from_bottom,
    }
