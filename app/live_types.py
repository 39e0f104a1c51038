"""The shapes of live pages: what a worker answered, with its token ids turned into tokens and links' numbers.
Filling them is for views/; what a worker is asked and answers is in wire.py."""

from typing_extensions import TypedDict

from app.view_types import ScoredView, TokenView, View


class WordView(View):
    """A word as the model has it: one token, or several pieces."""

    word: str
    tokens: tuple[TokenView, ...]


class SeedTerm(WordView):
    weight: float


class SeedPlace(TypedDict):
    """A vector that the seed words found."""

    kind: str
    layer: int
    index: int
    head: int | None
    subhead: int | None
    score: float  # with the average
    scores: tuple[float, ...]  # with each word by itself
    top: tuple[TokenView, ...]  # empty while its layer is not built


class SeedHead(TypedDict):
    """What a head would do with the average: write it as, and look for."""

    layer: int
    head: int
    writes: tuple[ScoredView, ...]
    seeks: tuple[ScoredView, ...]


class SeedsPageView(View):
    model: str
    words: str
    kind: str
    seeds: tuple[SeedTerm, ...]
    nearest: tuple[ScoredView, ...]
    results: tuple[SeedPlace, ...]
    heads: tuple[SeedHead, ...]  # empty unless asked for


class RelationPair(View):
    source: WordView
    target: WordView  # of several tokens, the first counts


class RelationHead(TypedDict):
    layer: int
    head: int
    rank: float  # mean over the pairs; 1 is the best
    score: float
    ranks: tuple[int, ...]
    scores: tuple[float, ...]
    rank_from_bottom: float


class RelationView(View):
    model: str
    lens: str
    pairs: tuple[RelationPair, ...]
    heads: tuple[RelationHead, ...]  # best mean rank first
