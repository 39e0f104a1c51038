"""Pairs of words and the heads that carry one to the other, from a worker's answer; beside each head's mean rank, what
baselines give."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.first_words import FIRST_PAIR, first_pair
from lexiscope.app.views.tokens import Token, TokenPair, ViewOfModel
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.by_words.chance import expected_heads
from lexiscope.precompute.live.wire.answers import CHANCE, Baseline, HeadRelation, PairUsed, RelationAnswer, put_words
from lexiscope.precompute.live.wire.fields import Matrix

BETTER = 2  # times smaller than a baseline's is a mean rank that does better

# How a head's mean rank stands to its baselines. own: better than both; copies: the first words themselves come as
# early; any: the second words of other pairs come as early.
Verdict = Literal["own", "copies", "any"]
VERDICT: Any = Field(
    description="own: the mean rank is at most half of both `shuffled` and `identity`; copies: not of `identity`, the "
    "sources themselves come about as early; any: not of `shuffled`, other pairs' targets come about as early"
)


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


class RelationHead(HeadRelation):
    verdict: Annotated[Verdict, VERDICT]
    verdict_from_bottom: Annotated[Verdict, VERDICT]
    first: Annotated[TokenPair | None, FIRST_PAIR]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationView(ViewOfModel):
    lens: str
    matrix: Matrix  # vo: having attended to the source, a head writes the target; qk: at the source it looks for it
    pairs: list[RelationPair]
    shuffled_with: Baseline | None  # other pairs' targets, or random words where there are none; None without pairs
    clear_rank: int  # up to this mean rank a head is said to carry or to suppress the pairs
    clear_chance: Annotated[float | None, CHANCE]  # None without pairs
    heads: list[RelationHead]  # best mean rank first


def clear_rank(d_vocab: int) -> int:
    """Up to which mean rank a head is said to carry or to suppress a relation: 1 % of the tokens."""
    return max(1, d_vocab // 100)


def relation_view(index: Index, matrix: Matrix, lens: str, answer: RelationAnswer | None) -> RelationView:
    """The page of a relation; without an answer, the one that asks for pairs."""
    if answer:
        put_words(answer["pairs"], index.tokens.texts)
    s = index.shape
    clear = clear_rank(s.d_vocab)
    chance = expected_heads([clear] * len(answer["pairs"]), s.d_vocab, s.n_layers * s.n_heads) if answer else None
    return RelationView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        lens=lens,
        matrix=matrix,
        pairs=[_pair(pair) for pair in answer["pairs"]] if answer else [],
        shuffled_with=answer["shuffled_with"] if answer else None,
        clear_rank=clear,
        clear_chance=chance,
        heads=[_head(index, matrix, head) for head in answer["heads"]] if answer else [],
    )


def _pair(pair: PairUsed) -> RelationPair:
    return RelationPair(source=Word(**pair["source"]), target=Word(**pair["target"]), ranked=pair["ranked"])


def _head(index: Index, matrix: Matrix, head: HeadRelation) -> RelationHead:
    return {
        **head,
        "verdict": _verdict(head["rank"], head["shuffled"], head["identity"]),
        "verdict_from_bottom": _verdict(
            head["rank_from_bottom"], head["shuffled_from_bottom"], head["identity_from_bottom"]
        ),
        "first": first_pair(index, matrix, head["layer"], head["head"]) if index.stored.pairs else None,
    }


def _verdict(rank: float, shuffled: float, identity: float) -> Verdict:
    return "any" if BETTER * rank > shuffled else "copies" if BETTER * rank > identity else "own"
