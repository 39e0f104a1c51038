"""Seed words: which vectors are about them. A worker, or the command `lexiscope seeds`, ranks the vectors;
the tokens that each lists come from the index."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Protocol

from typing_extensions import TypedDict

from app.views.token import head_of
from app.views.tokens import ScoredToken, Token, View, scored_tokens, tokens_of
from app.views.vectors import NOT_STORED
from precompute.errors import IndexFault, NotFound
from precompute.index.index import Index
from precompute.live.wire import HeadReading, Scored, SeedResult, SeedsAnswer

FIRST = 8  # tokens of each vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedWord:
    word: str
    weight: float
    tokens: list[Token]  # one, or the pieces of a word that is no token


class SeedListing(TypedDict):
    """A vector that is about the seed words."""

    kind: str
    layer: int
    index: int
    head: int | None
    subhead: int | None
    score: float  # with the average
    scores: tuple[float, ...]  # with each word by itself
    top: Annotated[list[Token] | None, NOT_STORED]  # empty while its layer is not built


class SeedHead(TypedDict):
    """What a head would do with the average: write it as, and look for."""

    layer: int
    head: int
    writes: list[ScoredToken]
    seeks: list[ScoredToken]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedsView(View):
    model: str
    words: str
    kind: str
    seeds: list[SeedWord]
    nearest: list[ScoredToken]
    results: list[SeedListing]
    heads: list[SeedHead]  # empty unless asked for


def seeds_view(index: Index, words: str, kind: str, answer: SeedsAnswer | None) -> SeedsView:
    """The page of seeds; without an answer, the one that asks for words."""
    if answer is None:
        return SeedsView(model=index.manifest.model, words=words, kind=kind, seeds=[], nearest=[], results=[], heads=[])
    return SeedsView(
        model=index.manifest.model,
        words=words,
        kind=kind,
        seeds=_seed_words(index, answer.terms),
        nearest=from_worker(index, answer.nearest),
        results=[_listing(index, result) for result in answer.results],
        heads=[_head(index, head) for head in answer.heads],
    )


def _listing(index: Index, result: SeedResult) -> SeedListing:
    head, subhead = head_of(index.shape, result.kind, result.index)
    return {
        "kind": result.kind,
        "layer": result.layer,
        "index": result.index,
        "head": head,
        "subhead": subhead,
        "score": result.score,
        "scores": result.scores,
        "top": first_tokens(index, result.kind, result.layer, result.index, FIRST),
    }


def _head(index: Index, head: HeadReading) -> SeedHead:
    return {
        "layer": head.layer,
        "head": head.head,
        "writes": from_worker(index, head.writes),
        "seeks": from_worker(index, head.seeks),
    }


class SeedTokens(Protocol):
    @property
    def word(self) -> str: ...
    @property
    def tokens(self) -> tuple[int, ...]: ...
    @property
    def weight(self) -> float: ...


class RankedVector(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def layer(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def score(self) -> float: ...


class RankedListing(TypedDict):
    kind: str
    layer: int
    index: int
    score: float
    top: list[Token] | None  # empty while its layer is not built; None where the index does not store its kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRankingView(View):
    """What the command `lexiscope seeds` prints, which ranks without a worker."""

    model: str
    kind: str
    seeds: list[SeedWord]
    results: list[RankedListing]


def seed_ranking_view(
    index: Index, kinds: Iterable[str], seeds: Iterable[SeedTokens], results: Iterable[RankedVector]
) -> SeedRankingView:
    return SeedRankingView(
        model=index.manifest.model,
        kind=",".join(kinds),
        seeds=_seed_words(index, seeds),
        results=[
            {
                "kind": result.kind,
                "layer": result.layer,
                "index": result.index,
                "score": result.score,
                "top": read_first_tokens(index, result.kind, result.layer, result.index, FIRST)
                if result.layer in index.manifest.shards or result.kind not in index.stored.kinds
                else [],
            }
            for result in results
        ],
    )


def _seed_words(index: Index, seeds: Iterable[SeedTokens]) -> list[SeedWord]:
    return [SeedWord(word=seed.word, tokens=tokens_of(index.tokens, seed.tokens), weight=seed.weight) for seed in seeds]


def from_worker(index: Index, entries: tuple[Scored, ...]) -> list[ScoredToken]:
    return scored_tokens(index.tokens, (entry.id for entry in entries), (entry.score for entry in entries))


def first_tokens(index: Index, kind: str, layer: int, row: int, n: int, end: str = "top") -> list[Token] | None:
    """The beginning of a stored list, under the first lens there is; empty while its layer is not built, or while its
    file is damaged; None where the index does not store its kind."""
    try:
        return read_first_tokens(index, kind, layer, row, n, end)
    except (IndexFault, NotFound):
        return []


def read_first_tokens(index: Index, kind: str, layer: int, row: int, n: int, end: str = "top") -> list[Token] | None:
    if kind not in index.stored.kinds:
        return None
    lists = index.shard(layer).vector(kind, row, index.stored.lens)
    ids = lists.top_ids if end == "top" else lists.bottom_ids
    return tokens_of(index.tokens, ids[:n].tolist())
