"""Show what heads do with words, from a worker's answer: a row for each head, with a cell for each word or group of
words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any

from typing_extensions import TypedDict

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.difference import check_can_run
from lexiscope.app.lists.notes import POSITIONS
from lexiscope.app.lists.readable import INDISTINCT, FreshWords, readable
from lexiscope.app.lists.view import PAGE_ONLY, ScoredToken, ViewOfModel, of_index
from lexiscope.app.lists.worth_reading import CARD_TOKENS, CARDS
from lexiscope.app.pages.page import Address, ModelSite, Page
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import HeadReading, ThroughHeadsAnswer, WordUsed, put_words
from lexiscope.precompute.live.wire.asks import ThroughHeadsArguments, ThroughHeadsAsk, WordSource
from lexiscope.precompute.live.wire.grammar import write_groups, write_layers


class HeadsAt(Address):
    pattern = "heads"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGroup:
    """A group of words that is sent through heads as one vector: the mean of the words in it."""

    word: str
    parts: list[WordUsed]


class HeadWord(TypedDict):
    """What a head does with a word: which tokens it looks for, and which it writes."""

    word: str
    seeks: list[ScoredToken]
    # The rank of the word itself in this list, regardless of case and space; None if it is not there.
    seeks_itself: int | None
    seeks_alike: float | None  # the mean cosine between the tokens of the list
    writes: list[ScoredToken]
    writes_itself: int | None
    writes_alike: float | None


class HeadRow(TypedDict):
    layer: int
    head: int
    words: list[HeadWord]  # in the order of the groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """A head that has the given word in its own list, and the rank of the word there."""

    layer: int
    head: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Echoes:
    """Heads that look for the given word itself, and heads that write it, best rank first."""

    seeks: list[Echo]
    writes: list[Echo]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearList:
    """A list whose tokens are words with similar embeddings."""

    layer: int
    head: int
    word: str
    is_sought: bool  # True: the list of what the head looks for; False: of what it writes
    alike: float
    tokens: list[ScoredToken]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughHeadsView(ViewOfModel):
    words: str
    layers: str
    head: int | None  # None: all heads of these layers
    lens: str
    end: str
    source: WordSource
    groups: list[WordGroup]
    heads: list[HeadRow]
    clearest: Annotated[list[ClearList], PAGE_ONLY] = field(default_factory=list)
    # for each group: the heads that look for its own words or write them
    echoes: Annotated[list[Echoes], PAGE_ONLY] = field(default_factory=list)
    earlier: Annotated[str | None, PAGE_ONLY] = None  # the value of `layers` for as many layers before these
    later: Annotated[str | None, PAGE_ONLY] = None
    note: Annotated[str, PAGE_ONLY] = ""

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "lens": self.lens, "end": self.end, "source": self.source}

    def tables(self) -> list[Table]:
        """Return the tables: one for each word for people, and one with a row for each token for CSV."""
        how = self.lens if self.end == "top" else f"{self.lens}, bottom"
        how += "" if self.source == "raw" else f", source {self.source}"
        tables = [
            Table(f"{self.model}, {group.word} through heads ({how})", COLUMNS, self._column(at), "people")
            for at, group in enumerate(self.groups)
        ]
        return [*tables, Table("", TOKEN_COLUMNS, _by_token(self.heads), "programs")]

    def _column(self, at: int) -> list[dict[str, Any]]:
        """Return the rows of one group of words: which tokens every head looks for with them, and writes for them."""
        return [{"layer": row["layer"], "head": row["head"], **row["words"][at]} for row in self.heads]


COLUMNS = (
    Column("layer", "number"), Column("head", "number"),
    Column("seeks", "words", heading="looks for (QK)"), Column("seeks_alike", "number", heading="alike"),
    Column("writes", "words", heading="writes (VO)"), Column("writes_alike", "number", heading="alike"),
)  # fmt: skip
TOKEN_COLUMNS = (
    Column("layer"), Column("head"), Column("word"), Column("list"), Column("rank"), Column("token", "token"),
    Column("score"), Column("itself"), Column("alike"),
)  # fmt: skip


def _by_token(rows: Iterable[HeadRow]) -> Iterable[dict[str, Any]]:
    for row in rows:
        for cell in row["words"]:
            for name, entries, itself, alike in (
                ("seeks", cell["seeks"], cell["seeks_itself"], cell["seeks_alike"]),
                ("writes", cell["writes"], cell["writes_itself"], cell["writes_alike"]),
            ):
                for rank, entry in enumerate(entries, 1):
                    yield {
                        "layer": row["layer"], "head": row["head"], "word": defused(cell["word"]), "list": name,
                        "rank": entry.get("rank", rank), "token": entry, "score": entry["score"],
                        "itself": int(entry.get("rank", rank) == itself), "alike": alike,
                    }  # fmt: skip


def heads(site: ModelSite, _: HeadsAt, ask: ThroughHeadsArguments) -> ThroughHeadsView:
    """What the heads of some layers do with some words: computed by the worker, for any words, without a run of the
    model.

    `seeks` are the tokens a head looks for with a word, e W_Q W_Kᵀ; `writes` those it writes having attended to it, e
    W_V W_O; `..._itself` is the rank of the word itself there. e is the word's embedding, without norm, bias or
    position, unless `source` says otherwise.
    """
    index = site.index
    answer: ThroughHeadsAnswer = site.answers[0] if site.answers else {"groups": [], "heads": []}
    put_words(answer, index.tokens.texts)
    groups = [_group(group) for group in answer["groups"]]
    columns = [_cells(index, *column) for column in zip(groups, answer["heads"], strict=True)]
    rows: list[HeadRow] = [
        {"layer": reading["layer"], "head": reading["head"], "words": [column[at] for column in columns]}
        for at, reading in enumerate(answer["heads"][0] if groups else [])
    ]
    earlier, later = _around(index, chosen_layers(index, ask.layers))
    return ThroughHeadsView(
        **of_index(index),
        words=write_groups(ask.words),
        layers=write_layers(ask.layers),
        head=ask.head,
        lens=ask.lens,
        end=ask.end,
        source=ask.source,
        groups=groups,
        heads=rows,
        clearest=_clearest(index, rows),
        echoes=[_echoes(rows, at) for at in range(len(groups))],
        earlier=earlier,
        later=later,
        note=POSITIONS[index.shape.positions],
    )


def chosen_layers(index: Index, chosen: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the layers that an address asks for; raise NotFound for a layer that the model does not have."""
    count = index.shape.n_layers
    if chosen is None:
        return tuple(range(count))
    if chosen[-1] >= count:
        raise NotFound(f"layer {chosen[-1]}: {index.manifest.model} has layers 0 to {count - 1}")
    return chosen


def _group(group: list[WordUsed]) -> WordGroup:
    return WordGroup(word="+".join(part["word"] for part in group), parts=group)


def _cells(index: Index, group: WordGroup, readings: Sequence[HeadReading]) -> list[HeadWord]:
    """Return what each head does with a group of words."""
    surface = index.tokens.surface
    itself = {surface(part["word"]) for part in group.parts}
    itself |= {surface(part["tokens"][0]["token"]) for part in group.parts if len(part["tokens"]) == 1}

    def rank_of_itself(tokens: list[ScoredToken]) -> int | None:
        return next((rank for rank, token in enumerate(tokens, 1) if surface(token["token"]) in itself), None)

    cells: list[HeadWord] = []
    for reading in readings:
        seeks, writes = reading["seeks"], reading["writes"]
        cells.append(
            {
                "word": group.word,
                "seeks": seeks,
                "seeks_itself": rank_of_itself(seeks),
                "seeks_alike": reading["seeks_alike"],
                "writes": writes,
                "writes_itself": rank_of_itself(writes),
                "writes_alike": reading["writes_alike"],
            }
        )
    return cells


def _clearest(index: Index, rows: list[HeadRow]) -> list[ClearList]:
    """Return the lists with the most similar tokens, of those that people can read, each with other words than those
    before."""
    lists = [
        ClearList(
            layer=row["layer"], head=row["head"], word=cell["word"], is_sought=is_sought, alike=alike, tokens=tokens
        )
        for row in rows
        for cell in row["words"]
        for is_sought, alike, tokens in (
            (True, cell["seeks_alike"], cell["seeks"]), (False, cell["writes_alike"], cell["writes"]),
        )
        if alike is not None and alike < INDISTINCT
    ]  # fmt: skip
    fresh = FreshWords(readable(index))
    found = (
        each
        for each in sorted(lists, key=lambda each: -each.alike)
        if fresh.take_if_readable([token["id"] for token in each.tokens[:CARD_TOKENS]])
    )
    return list(islice(found, CARDS))


def _echoes(rows: list[HeadRow], at: int) -> Echoes:
    """Return the heads that look for a group's own words, and those that write them, best rank first."""

    def sorted_echoes(rank_in: Callable[[HeadWord], int | None]) -> list[Echo]:
        ranks = ((row, rank_in(row["words"][at])) for row in rows)
        echoes = [Echo(layer=row["layer"], head=row["head"], rank=rank) for row, rank in ranks if rank]
        return sorted(echoes, key=lambda echo: echo.rank)

    return Echoes(
        seeks=sorted_echoes(lambda cell: cell["seeks_itself"]), writes=sorted_echoes(lambda cell: cell["writes_itself"])
    )


def _around(index: Index, layers: tuple[int, ...]) -> tuple[str | None, str | None]:
    """Return the values of `layers` for as many layers before these and after them; None where there are none, or if
    these layers have gaps."""
    first, last, count = layers[0], layers[-1], len(layers)
    if last - first + 1 != count:
        return None, None
    before = tuple(range(max(0, first - count), first))
    after = tuple(range(last + 1, min(last + 1 + count, index.shape.n_layers)))
    return write_layers(before) if before else None, write_layers(after) if after else None


def asks(site: ModelSite, _: HeadsAt, ask: ThroughHeadsArguments) -> list[ThroughHeadsAsk]:
    if ask.source != "raw":
        check_can_run(site.index)
    chosen = {"layers": chosen_layers(site.index, ask.layers), "only": site.kept.packed(site.index)}
    return [ThroughHeadsAsk(**dict(ask) | chosen)] if ask.words else []


HEADS = Page(
    name="heads", template="through_heads", title="", at=HeadsAt, arguments=ThroughHeadsArguments,
    view=ThroughHeadsView, make=heads, asks=asks, is_live=True,
)  # fmt: skip
