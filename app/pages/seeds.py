"""Find the vectors that are about seed words. A worker ranks the vectors, or the command `lexiscope seeds` does; the
first tokens of each vector's list come from the index or, if its layer is not built, from the weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.lists.first_tokens import FirstLists, unbuilt
from lexiscope.app.lists.kept_tokens import split_nearest
from lexiscope.app.lists.view import InHead, ScoredToken, Token, ViewOfModel, in_head, of_index, tokens_of
from lexiscope.app.pages.page import Address, ModelSite, Page
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import (
    COMPUTED,
    NOT_STORED,
    FirstTokens,
    HeadReading,
    SeedResult,
    SeedsAnswer,
    TermUsed,
    put_words,
)
from lexiscope.precompute.live.wire.asks import SeedsArguments, SeedsAsk
from lexiscope.precompute.live.wire.grammar import write_terms

if TYPE_CHECKING:
    from lexiscope.precompute.live.seed_ranking import Ranked
    from lexiscope.precompute.live.seed_words import Seed

VECTOR_TOKENS = 8  # how many tokens of each vector are shown
PULLING_WORDS = 3


class SeedsAt(Address):
    pattern = "seeds"


class SeedListing(InHead, SeedResult):
    """A vector that is about the seed words, with its first tokens."""

    top: Annotated[list[Token] | None, NOT_STORED]
    computed: Annotated[bool, COMPUTED]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedsView(ViewOfModel):
    words: str
    kind: str
    lens: str
    seeds: list[TermUsed]
    nearest: list[ScoredToken]  # nearest tokens without hubs
    nearest_hubs: list[Token]  # tokens that are near to very many others, and therefore left out of `nearest`
    results: list[SeedListing]
    heads: list[HeadReading]  # what heads do with the average of the words; empty unless asked for

    def pulling_words(self, scores: Sequence[float]) -> list[tuple[str, float]]:
        """Return the seed words that raise a vector's score most, each with the vector's score for the word alone."""
        words = sorted(zip(self.seeds, scores, strict=True), key=lambda word: -word[0]["weight"] * word[1])
        return [(seed["word"], score) for seed, score in words[:PULLING_WORDS]]

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "words": defused(self.words), "lens": self.lens}

    def tables(self) -> list[Table]:
        """Return the table of vectors and, if heads were asked for, of what each head writes and looks for; the latter
        has a row for each token in CSV."""
        columns = [*COLUMNS, *(column for at, seed in enumerate(self.seeds) for column in _of_seed(at, seed))]
        columns.append(Column("top", "words", heading="tokens", count=VECTOR_TOKENS if self.words else 0))
        results = [{"rank": rank, **result} for rank, result in enumerate(self.results, 1)]
        tables = [Table(f"{self.model}, vectors about {self.words} ({self.lens})", tuple(columns), results)]
        if self.heads:
            through = f"{self.model}, {self.words} through every head ({self.lens})"
            tables.append(Table(through, HEAD_COLUMNS, self.heads, "people"))
            tables.append(Table("", HEAD_TOKEN_COLUMNS, list(_head_tokens(self.heads)), "programs"))
        return tables


COLUMNS = (
    Column("rank", "number", heading="#"),
    Column("kind"),
    Column("layer", "number"),
    Column("index", "number"),
    Column("head", "number"),
    Column("subhead", "number"),
    Column("direction", "number"),
    Column("score", "number"),
)
HEAD_COLUMNS = (
    Column("layer", "number"), Column("head", "number"),
    Column("writes", "words", heading="VO"), Column("seeks", "words", heading="QK"),
)  # fmt: skip
HEAD_TOKEN_COLUMNS = (
    Column("rank"), Column("kind"), Column("layer"), Column("head"), Column("score"), Column("token", "token"),
)  # fmt: skip


def _of_seed(at: int, seed: TermUsed) -> Iterable[Column]:
    """Yield the column of a vector's score for one seed word alone."""
    word, weight = seed["word"], seed["weight"]
    yield constant(f"word_{at + 1}", defused(word))
    yield constant(f"weight_{at + 1}", weight)
    heading = f"{weight:g}*{word}" if weight != 1 else word
    yield Column(f"score_{at + 1}", "number", get=lambda row: row["scores"][at], heading=heading)


def _head_tokens(heads: Iterable[HeadReading]) -> Iterable[dict[str, Any]]:
    for head in heads:
        for kind, entries in (("vo", head["writes"]), ("qk", head["seeks"])):
            for rank, entry in enumerate(entries, 1):
                where = {"kind": kind, "layer": head["layer"], "head": head["head"]}
                yield {"rank": entry.get("rank", rank), **where, "score": entry["score"], "token": entry}


def seeds(site: ModelSite, _: SeedsAt, ask: SeedsArguments) -> SeedsView:
    """The vectors that are about a few words, over all layers: computed by the worker, for any words.

    `scores` are those of each word by itself; `nearest` are the tokens nearest to the average of the words; with
    `heads=1`, what every head would write for the average (W_V W_O) and look for with it (W_Q W_Kᵀ). With `lens=cosine`
    only directions count: of the words' embeddings, and of the vectors.
    """
    answer: SeedsAnswer = site.answers[0] if site.answers else NOTHING_ASKED
    put_words(answer, site.index.tokens.texts)
    lists = FirstLists.of(site.index, ask.lens, answer["lists"], site.left_out(ask.lens))
    nearest, nearest_hubs = split_nearest(site.index, answer["nearest"])
    return SeedsView(
        **of_index(site.index),
        words=write_terms(ask.words),
        kind=",".join(ask.kind),
        lens=ask.lens,
        seeds=answer["terms"],
        nearest=nearest,
        nearest_hubs=nearest_hubs,
        results=[listing(lists, result) for result in answer["results"]],
        heads=answer["heads"],
    )


NOTHING_ASKED: SeedsAnswer = {"terms": [], "nearest": [], "results": [], "heads": [], "lists": [], "rank": None}


def listing(lists: FirstLists, result: SeedResult) -> SeedListing:
    place = result["kind"], result["layer"], result["index"]
    return {
        **result,
        **in_head(lists.index.shape, result["kind"], result["index"]),
        "top": lists.tokens(*place, VECTOR_TOKENS),
        "computed": lists.is_computed(*place),
    }


def asks(site: ModelSite, _: SeedsAt, ask: SeedsArguments) -> list[SeedsAsk]:
    return [SeedsAsk(**dict(ask), unbuilt=unbuilt(site.index, ask.lens))] if ask.words else []


SEEDS = Page(
    name="seeds", title="", at=SeedsAt, arguments=SeedsArguments, view=SeedsView, make=seeds, asks=asks, is_live=True
)


# The data for the command `lexiscope seeds`.


class RankedListing(TypedDict):
    kind: str
    layer: int
    index: int
    score: float
    top: list[Token] | None  # None if the index does not store this kind of vectors
    computed: bool  # True if the tokens were computed from the weights, because the index does not have the layer yet


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRankingView(ViewOfModel):
    """The list of vectors that the command `lexiscope seeds` prints, which ranks them without a worker."""

    kind: str
    lens: str
    seeds: list[TermUsed]
    results: list[RankedListing]


def seed_ranking_view(
    index: Index,
    kinds: Iterable[str],
    seeds: Iterable["Seed"],
    results: Iterable["Ranked"],
    lens: str = "dot",
    computed: Iterable[FirstTokens] = (),
) -> SeedRankingView:
    """Make the data of the list that the command `lexiscope seeds` prints. `computed` holds the lists of vectors in
    layers that are not built."""
    lists = FirstLists.of(index, lens, computed)
    return SeedRankingView(
        **of_index(index),
        kind=",".join(kinds),
        lens=lens,
        seeds=terms_used(index, seeds),
        results=[
            {
                "kind": result.kind,
                "layer": result.layer,
                "index": result.index,
                "score": result.score,
                "top": lists.read(result.kind, result.layer, result.index, VECTOR_TOKENS)
                if result.layer in index.manifest.shards and result.kind in index.stored.kinds
                else lists.tokens(result.kind, result.layer, result.index, VECTOR_TOKENS),
                "computed": lists.is_computed(result.kind, result.layer, result.index),
            }
            for result in results
        ],
    )


def terms_used(index: Index, seeds: Iterable["Seed"]) -> list[TermUsed]:
    return [
        {"word": seed.word, "weight": seed.weight, "tokens": tokens_of(index.tokens, seed.tokens)} for seed in seeds
    ]
