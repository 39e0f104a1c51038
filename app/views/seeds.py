"""Seed words: which vectors are about them. A worker, or the command `lexiscope seeds`, ranks the vectors;
the tokens that each lists come from the index, or where its layer is not built, from the weights, too."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Protocol

from typing_extensions import TypedDict

from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.first_tokens import FirstLists
from lexiscope.app.views.hubs import split_nearest
from lexiscope.app.views.tokens import ScoredToken, Token, ViewOfModel, tokens_of
from lexiscope.app.views.vector_place import InHead, in_head
from lexiscope.app.views.vectors import NOT_STORED
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import (
    COMPUTED,
    FirstTokens,
    HeadReading,
    SeedResult,
    SeedsAnswer,
    put_words,
)

FIRST = 8  # tokens of each vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedWord:
    word: str
    weight: float
    tokens: list[Token]  # one, or the pieces of a word that is no token


class SeedListing(InHead, SeedResult):
    """A vector that is about the seed words."""

    top: Annotated[list[Token] | None, NOT_STORED]
    computed: Annotated[bool, COMPUTED]


class SeedHead(TypedDict):
    """What a head would do with the average: write it as, and look for."""

    layer: int
    head: int
    writes: list[ScoredToken]
    seeks: list[ScoredToken]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedsView(ViewOfModel):
    words: str
    kind: str
    lens: str
    seeds: list[SeedWord]
    nearest: list[ScoredToken]  # hubs left out
    nearest_hubs: list[Token]  # tokens that are near to very many: left out of `nearest`
    results: list[SeedListing]
    heads: list[SeedHead]  # empty unless asked for


def seeds_view(
    index: Index, words: str, kind: str, lens: str, answer: SeedsAnswer | None, hubs: frozenset[int] = frozenset()
) -> SeedsView:
    """The page of seeds; without an answer, the one that asks for words. Hubs that are given are skipped."""
    if answer is None:
        return SeedsView(
            model=index.manifest.model, build=index.manifest.build, words=words, kind=kind, lens=lens, seeds=[],
            nearest=[], nearest_hubs=[], results=[], heads=[],
        )  # fmt: skip
    put_words(answer, index.tokens.texts)
    lists = FirstLists.of(index, lens, answer["lists"], hubs)
    nearest, nearest_hubs = split_nearest(index, answer["nearest"])
    return SeedsView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        words=words,
        kind=kind,
        lens=lens,
        seeds=[SeedWord(**term) for term in answer["terms"]],
        nearest=nearest,
        nearest_hubs=nearest_hubs,
        results=[_listing(lists, result) for result in answer["results"]],
        heads=[_head(head) for head in answer["heads"]],
    )


def _listing(lists: FirstLists, result: SeedResult) -> SeedListing:
    place = result["kind"], result["layer"], result["index"]
    return {
        **result,
        **in_head(lists.index.shape, result["kind"], result["index"]),
        "top": lists.tokens(*place, FIRST),
        "computed": lists.is_computed(*place),
    }


def _head(head: HeadReading) -> SeedHead:
    return {"layer": head["layer"], "head": head["head"], "writes": head["writes"], "seeks": head["seeks"]}


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
    top: list[Token] | None  # None where the index does not store its kind
    computed: bool  # its tokens are not from the index, which does not have its layer yet


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRankingView(ViewOfModel):
    """What the command `lexiscope seeds` prints, which ranks without a worker."""

    kind: str
    lens: str
    seeds: list[SeedWord]
    results: list[RankedListing]


def seed_ranking_view(
    index: Index,
    kinds: Iterable[str],
    seeds: Iterable[SeedTokens],
    results: Iterable[RankedVector],
    lens: str = "dot",
    computed: Iterable[FirstTokens] = (),
) -> SeedRankingView:
    """`computed` are the lists of results in layers that are not built."""
    lists = FirstLists.of(index, lens, computed)
    return SeedRankingView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        kind=",".join(kinds),
        lens=lens,
        seeds=_seed_words(index, seeds),
        results=[
            {
                "kind": result.kind,
                "layer": result.layer,
                "index": result.index,
                "score": result.score,
                "top": lists.read(result.kind, result.layer, result.index, FIRST)
                if result.layer in index.manifest.shards and result.kind in index.stored.kinds
                else lists.tokens(result.kind, result.layer, result.index, FIRST),
                "computed": lists.is_computed(result.kind, result.layer, result.index),
            }
            for result in results
        ],
    )


def _seed_words(index: Index, seeds: Iterable[SeedTokens]) -> list[SeedWord]:
    return [SeedWord(word=seed.word, tokens=tokens_of(index.tokens, seed.tokens), weight=seed.weight) for seed in seeds]
