"""Find the vectors that are about seed words. A worker ranks the vectors; the tokens of each vector's list come from
the index or, if its layer is not built, from the worker."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.lists.bias import biased_tokens, is_high_bias
from lexiscope.app.lists.difference import check_can_run
from lexiscope.app.lists.first_tokens import FirstLists, unbuilt
from lexiscope.app.lists.kept_tokens import first_kept, split_nearest
from lexiscope.app.lists.view import InHead, ScoredToken, Token, ViewOfModel, in_head, of_index, tokens_of
from lexiscope.app.pages.page import Address, ModelSite, Page
from lexiscope.precompute.index.parameter_names import vector_name
from lexiscope.precompute.live.wire.answers import (
    CHANCE_OF_FIT,
    COMPUTED,
    NOT_STORED,
    HeadReading,
    SeedResult,
    SeedsAnswer,
    TermUsed,
    put_words,
)
from lexiscope.precompute.live.wire.asks import SeedRank, SeedsArguments, SeedsAsk, SeedSource
from lexiscope.precompute.live.wire.grammar import write_terms
from lexiscope.precompute.shape import SIDES, Side

VECTOR_TOKENS = 8  # how many tokens of each vector are shown
NEAR_TOKENS = 5  # how many of its tokens that are near to the words
PULLING_WORDS = 3
COLUMNS_OF_WORDS = 6  # most words with a column of their own for people
NEAR: Any = Field(
    description="Tokens of its list that are near to the words, the nearest first; none that any list may hold"
)
BIAS: Any = Field(description="Whether most of its first tokens are such as any list may hold: frequent, special, hubs")


RANK: Any = Field(description="What results are ranked by. Only in a notebook: `listed`, by stored lists alone")


class SeedsAt(Address):
    pattern = "seeds"


class SeedListing(InHead, SeedResult):
    """A vector that is about the seed words, with tokens of its list."""

    top: Annotated[list[Token] | None, NOT_STORED]
    computed: Annotated[bool, COMPUTED]
    near: Annotated[list[Token], NEAR]
    bias: Annotated[bool, BIAS]


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
    rank: Annotated[SeedRank | Literal["listed"], RANK] = "score"
    widen: int = 1
    source: SeedSource = "raw"
    chance: Annotated[float | None, CHANCE_OF_FIT] = None

    @property
    def ranked(self) -> list[dict[str, Any]]:
        """Return the rows of the table: results with their ranks, and with the tokens that people see."""
        return [{"rank": rank, "tokens": _shown(result), **result} for rank, result in enumerate(self.results, 1)]

    def table(self, folded: bool) -> Table:
        """Make the page's table of the vectors whose lists say little, which are folded, or of the others."""
        rows = [row for row in self.ranked if (row["bias"] or row["top"] == []) == folded]
        return Table("", tuple(column for column in self._columns() if column.name != "bias"), rows)

    @property
    def said_of_chance(self) -> str:
        """Return the sentence of the line between rows above and below chance."""
        words = "1 random word" if len(self.seeds) == 1 else f"{len(self.seeds)} random words"
        tried = f"with {words} as frequent, the best of all vectors stays below {self.chance:.3f} in 95 % of draws"
        return f"Chance: {tried}. Few searches reach this; rows below may be on topic: read their words."

    @property
    def above_chance(self) -> int:
        """Return how many rows, of those not folded, have a larger fit than random words reach."""
        rows = [row for row in self.table(folded=False).rows if row["fit"] is not None]
        return sum(row["fit"] > self.chance for row in rows) if self.chance is not None else 0

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "words": defused(self.words), "lens": self.lens, "source": self.source}

    def _columns(self) -> Iterable[Column]:
        yield from COLUMNS
        columns = [column for at, seed in enumerate(self.seeds) for column in _of_seed(at, seed)]
        few = len(self.seeds) <= COLUMNS_OF_WORDS
        yield from columns if few else (replace(column, audience="programs") for column in columns)
        if not few:
            yield Column("pulled", get=self._pulling, heading="pulled up by", audience="people")
        yield Column("top", "words", count=VECTOR_TOKENS if self.words else 0, audience="programs")
        yield Column("near", "words", count=NEAR_TOKENS if self.words else 0, audience="programs")

    def _pulling(self, row: dict[str, Any]) -> str:
        """Return the seed words that raise a vector's score most, each with the vector's score for the word alone."""
        words = sorted(zip(self.seeds, row["scores"], strict=True), key=lambda word: -word[0]["weight"] * word[1])
        return ", ".join(f"{seed['word']} {score:.3f}" for seed, score in words[:PULLING_WORDS])

    def tables(self) -> list[Table]:
        """Return the table of vectors and, if heads were asked for, of what each head writes and looks for; the latter
        has a row for each token in CSV."""
        by = f"{self.lens}, by {self.rank}" if self.rank == "fit" else self.lens
        by += "" if self.source == "raw" else f", source {self.source}"
        tables = [Table(f"{self.model}, vectors about {self.words} ({by})", tuple(self._columns()), self.ranked)]
        if self.heads:
            through = f"{self.model}, {self.words} through every head ({self.lens})"
            tables.append(Table(through, HEAD_COLUMNS, self.heads, "people"))
            tables.append(Table("", HEAD_TOKEN_COLUMNS, list(_head_tokens(self.heads)), "programs"))
        return tables


def _shown(result: SeedListing) -> list[Token]:
    """Return the tokens of a vector's list that people see: those near to the words, then its first ones."""
    near = {token["id"] for token in result["near"]}
    return [*result["near"], *(token for token in result["top"] or () if token["id"] not in near)][:VECTOR_TOKENS]


COLUMNS = (
    Column("rank", "rank", heading="#", css="n", tip="rank"),
    Column("where", "address", get=vector_name, audience="people"),
    Column("kind"),
    *(Column(name, "number", audience="programs") for name in ("layer", "index", "head", "subhead", "direction")),
    Column("tokens", "tokens", page_heading="tokens of its list, near to the words first",
           audience="people", css="many"),
    Column("fit", "number", tip="fit"),
    Column("score", "number", tip="seeds"),
    Column("cosine", "ratio", tip="cosine-with-words"),
    Column("bias", "text", get=lambda row: "high bias" if row["bias"] else None, heading="", audience="people"),
    Column("bias", "number", get=lambda row: int(row["bias"]), audience="programs"),
)  # fmt: skip
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

    With `rank=fit` they are ranked by how well they fit: the dot product with the average of the words and of the
    tokens nearest to them (not of those with `widen=0`), over the spread of the vector's scores of all tokens; `chance`
    is what random words reach. Otherwise by the paper's score, which is the dot product with the average, and with
    `lens=cosine` the mean of the cosines with the words. `scores` are those of each word by itself, `cosine` is that of
    the vector with the average; `nearest` are the tokens nearest to it; with `heads=1`, what every head would write for
    the average (W_V W_O) and look for with it (W_Q W_Kᵀ).
    """
    answer: SeedsAnswer = site.answers[0] if site.answers else NOTHING_ASKED
    put_words(answer, site.index.tokens.texts)
    lists = FirstLists.of(site.index, ask.lens, answer["lists"], site.left_out(ask.lens))
    nearest, nearest_hubs = split_nearest(site.index, answer["nearest"])
    return SeedsView(
        **of_index(site.index),
        words=write_terms(ask.words),
        kind=",".join(ask.kinds),
        lens=ask.lens,
        seeds=answer["terms"],
        nearest=nearest,
        nearest_hubs=nearest_hubs,
        results=listings(lists, answer["results"], answer["near"]),
        heads=answer["heads"],
        rank=ask.rank,
        widen=ask.widen,
        source=ask.source,
        chance=answer["chance"],
    )


NOTHING_ASKED: SeedsAnswer = {
    "terms": [], "nearest": [], "results": [], "heads": [], "lists": [], "rank": None, "near": {}, "chance": None,
}  # fmt: skip


def listings(lists: FirstLists, results: Iterable[SeedResult], near: Mapping[Side, Sequence[int]]) -> list[SeedListing]:
    """Put tokens of their lists beside the vectors that were found. `near` are the tokens nearest to the words; those
    that any list may hold are passed over."""
    biased = biased_tokens(lists.index, lists.lens)
    order = {side: {token: n for n, token in enumerate(ids) if not biased[token]} for side, ids in near.items()}
    return [_listing(lists, result, order.get(SIDES[result["kind"]], {}), biased) for result in results]


def _listing(lists: FirstLists, result: SeedResult, order: Mapping[int, int], biased: bytes) -> SeedListing:
    index, place = lists.index, (result["kind"], result["layer"], result["index"])
    ids = lists.ids(*place) or ()
    (kept,) = first_kept([ids], lists.hubs, len(ids))
    near = sorted(order.keys() & set(kept), key=order.__getitem__)[:NEAR_TOKENS]
    return {
        **result,
        **in_head(index.shape, result["kind"], result["index"]),
        "top": lists.tokens(*place, VECTOR_TOKENS),
        "computed": lists.is_computed(*place),
        "near": tokens_of(index.tokens, near),
        "bias": not index.stored.difference and is_high_bias(biased, ids),
    }


def asks(site: ModelSite, _: SeedsAt, ask: SeedsArguments) -> list[SeedsAsk]:
    if ask.source != "raw":
        check_can_run(site.index)
    return [SeedsAsk(**dict(ask), unbuilt=unbuilt(site.index, ask.lens))] if ask.words else []


SEEDS = Page(
    name="seeds", title="", at=SeedsAt, arguments=SeedsArguments, view=SeedsView, make=seeds, asks=asks, is_live=True
)
