"""Asks that are made of words: seed words, pairs of words to heads, words through heads."""

from typing import Annotated, Literal

from pydantic import Field

from precompute.live.wire.shared import End, FirstTokens, Lens, Matrix, Scored, Unbuilt, Wire

# Which tokens stand for a seed word: the one with a leading space if there is one, or else the other; or always the
# tokens of the word with a space, or of the word without.
Spelling = Literal["usual", "spaced", "bare"]
Baseline = Literal["pairs", "words"]  # what sources are shuffled with: other pairs' targets, or random words


# Seed words


class Term(Wire):
    word: str = Field(min_length=1, max_length=100)
    weight: float = Field(default=1.0, ge=-1e6, le=1e6)
    spelling: Spelling = "usual"


class VectorPlace(Wire):
    kind: str
    layer: int = Field(ge=0)
    index: int = Field(ge=0)


class SeedsAsk(Wire):
    terms: tuple[Term, ...] = Field(min_length=1)
    kinds: tuple[str, ...] = Field(min_length=1)
    n: int = Field(50, ge=1, le=1000)
    heads: bool = False  # also what every head would do with the average
    lens: Lens = "dot"
    unbuilt: Unbuilt | None = None
    rank_of: VectorPlace | None = None  # also the rank of this vector, however far behind


class TermUsed(Wire):
    word: str
    weight: float
    tokens: tuple[int, ...]


class SeedResult(Wire):
    kind: str
    layer: int
    index: int
    score: float  # of the average
    scores: tuple[float, ...]  # of each term by itself


class HeadReading(Wire):
    layer: int
    head: int
    writes: tuple[Scored, ...]  # W_V W_O
    seeks: tuple[Scored, ...]  # W_Q W_Kᵀ
    writes_alike: float | None  # the mean cosine between the tokens' centred embeddings; None if there are not two
    seeks_alike: float | None


class SeedsAnswer(Wire):
    terms: tuple[TermUsed, ...]
    nearest: tuple[Scored, ...]  # tokens, by cosine with the average
    results: tuple[SeedResult, ...]
    heads: tuple[HeadReading, ...]  # empty unless asked for
    lists: tuple[FirstTokens, ...] = ()  # of results in layers that are not built
    rank: int | None = None  # from 1, among all vectors of its kind, of the one that was asked for


# Pairs to heads


class WordPair(Wire):
    source: str = Field(min_length=1, max_length=100)
    target: str = Field(min_length=1, max_length=100)


class RelationAsk(Wire):
    pairs: tuple[WordPair, ...] = Field(min_length=1)
    lens: Lens = "dot"
    matrix: Matrix = "vo"  # qk: the source is the query's word, the target the key's


class PairUsed(Wire):
    source: str
    source_tokens: tuple[int, ...]
    target: str
    target_tokens: tuple[int, ...]


class HeadRelation(Wire):
    layer: int
    head: int
    rank: float  # mean over the pairs of the target's rank among all tokens, 1 is the best
    score: float  # mean
    ranks: tuple[int, ...]  # of each pair
    scores: tuple[float, ...]
    rank_from_bottom: float  # mean; small where the head suppresses the target
    shuffled: float  # the mean rank of other pairs' targets, or of random words
    identity: float  # the mean rank of the sources themselves
    chance: float  # how many heads would reach `rank` if ranks were drawn at random
    shuffled_from_bottom: float
    identity_from_bottom: float
    chance_from_bottom: float


class RelationAnswer(Wire):
    pairs: tuple[PairUsed, ...]
    heads: tuple[HeadRelation, ...]  # all of them, best mean rank first
    shuffled_with: Baseline


# Words through heads


class Word(Wire):
    word: str = Field(min_length=1, max_length=100)
    token: int | None = Field(None, ge=0)  # this token, whatever else stands for the word


Group = Annotated[tuple[Word, ...], Field(min_length=1)]  # stands for the mean of its words


class ThroughHeadsAsk(Wire):
    groups: tuple[Group, ...] = Field(min_length=1)
    layers: tuple[int, ...] = Field(min_length=1)
    head: int | None = None  # of each layer; None: all of them
    lens: Lens = "dot"
    end: End = "top"
    k: int = Field(8, ge=1, le=50)  # tokens of each list


class WordUsed(Wire):
    word: str
    tokens: tuple[int, ...]


class ThroughHeadsAnswer(Wire):
    groups: tuple[tuple[WordUsed, ...], ...]
    heads: tuple[tuple[HeadReading, ...], ...]  # by group: all heads, in the order of the layers asked for
