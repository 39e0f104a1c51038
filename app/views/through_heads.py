"""What heads do with words, from a worker's answer: a row for each head, and in it a cell for each word or group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from typing_extensions import TypedDict

from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.notes import POSITIONS
from lexiscope.app.views.readable import SAME, FreshWords, readable
from lexiscope.app.views.relation import Word
from lexiscope.app.views.tokens import PAGE_ONLY, ScoredToken, ViewOfModel
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import HeadReading, ThroughHeadsAnswer, WordUsed, put_words
from lexiscope.precompute.live.wire.grammar import parse_layers, write_layers

CARDS, CARD_TOKENS = 8, 6  # of the clearest lists


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGroup:
    """What goes through heads as one: the mean of its parts."""

    word: str
    parts: list[Word]


class HeadWord(TypedDict):
    """What a head does with a word."""

    word: str
    seeks: list[ScoredToken]
    seeks_itself: int | None  # the rank of the word itself in this list, whatever its case and space; None: not in it
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
    """A head in whose list a word comes back."""

    layer: int
    head: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Echoes:
    """Heads that look for a word itself, and heads that write it: best rank first."""

    seeks: list[Echo]
    writes: list[Echo]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearList:
    """A list whose tokens are words that are alike."""

    layer: int
    head: int
    word: str
    is_sought: bool  # what the head looks for with the word; else what it writes
    alike: float
    tokens: list[ScoredToken]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughHeadsView(ViewOfModel):
    words: str
    layers: str
    head: int | None  # None: all heads of these layers
    lens: str
    end: str
    groups: list[WordGroup]
    heads: list[HeadRow]
    clearest: Annotated[list[ClearList], PAGE_ONLY]
    echoes: Annotated[list[Echoes], PAGE_ONLY]  # of each group
    earlier: Annotated[str | None, PAGE_ONLY]  # as many layers before these, and after them; None: there are none
    later: Annotated[str | None, PAGE_ONLY]
    note: Annotated[str, PAGE_ONLY]


def through_heads_view(
    index: Index, words: str, layers: str, head: int | None, lens: str, end: str, answer: ThroughHeadsAnswer | None
) -> ThroughHeadsView:
    """The page of words through heads; without an answer, the one that asks for words."""
    if answer:
        put_words(answer, index.tokens.texts)
    groups = [_group(group) for group in answer["groups"]] if answer else []
    columns = [_cells(index, *column) for column in zip(groups, answer["heads"], strict=True)] if answer else []
    heads = answer["heads"][0] if answer else []
    rows: list[HeadRow] = [
        {"layer": reading["layer"], "head": reading["head"], "words": [column[at] for column in columns]}
        for at, reading in enumerate(heads)
    ]
    earlier, later = _around(index, chosen_layers(index, parse_layers(layers)))
    return ThroughHeadsView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        words=words,
        layers=layers,
        head=head,
        lens=lens,
        end=end,
        groups=groups,
        heads=rows,
        clearest=_clearest(index, rows),
        echoes=[_echoes(rows, at) for at in range(len(groups))],
        earlier=earlier,
        later=later,
        note=POSITIONS[index.shape.positions],
    )


def chosen_layers(index: Index, chosen: tuple[int, ...] | None) -> tuple[int, ...]:
    """The layers that an address asks for; NotFound if the model has not so many."""
    count = index.shape.n_layers
    if chosen is None:
        return tuple(range(count))
    if chosen[-1] >= count:
        raise NotFound(f"layer {chosen[-1]}: {index.manifest.model} has layers 0 to {count - 1}")
    return chosen


def first_layers(index: Index) -> str:
    """The layers of examples: the first four, where a word's embedding is still much of what heads are given."""
    return write_layers(tuple(range(min(4, index.shape.n_layers))))


def _group(group: Sequence[WordUsed]) -> WordGroup:
    parts = [Word(**word) for word in group]
    return WordGroup(word="+".join(part.word for part in parts), parts=parts)


def _cells(index: Index, group: WordGroup, readings: Sequence[HeadReading]) -> list[HeadWord]:
    """What each head does with a group."""
    surface = index.tokens.surface
    itself = {surface(part.word) for part in group.parts}
    itself |= {surface(part.tokens[0]["token"]) for part in group.parts if len(part.tokens) == 1}

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
    """The lists with the most alike tokens, of those that people can read, each with other words than those before."""
    lists = [
        ClearList(
            layer=row["layer"], head=row["head"], word=cell["word"], is_sought=is_sought, alike=alike, tokens=tokens
        )
        for row in rows
        for cell in row["words"]
        for is_sought, alike, tokens in (
            (True, cell["seeks_alike"], cell["seeks"]), (False, cell["writes_alike"], cell["writes"]),
        )
        if alike is not None and alike < SAME
    ]  # fmt: skip
    fresh = FreshWords(readable(index))
    found = (
        each
        for each in sorted(lists, key=lambda each: -each.alike)
        if fresh.take_if_readable([token["id"] for token in each.tokens[:CARD_TOKENS]])
    )
    return list(islice(found, CARDS))


def _echoes(rows: list[HeadRow], at: int) -> Echoes:
    """The heads that echo one of the groups."""

    def sorted_echoes(rank_in: Callable[[HeadWord], int | None]) -> list[Echo]:
        ranks = ((row, rank_in(row["words"][at])) for row in rows)
        echoes = [Echo(layer=row["layer"], head=row["head"], rank=rank) for row, rank in ranks if rank]
        return sorted(echoes, key=lambda echo: echo.rank)

    return Echoes(
        seeks=sorted_echoes(lambda cell: cell["seeks_itself"]), writes=sorted_echoes(lambda cell: cell["writes_itself"])
    )


def _around(index: Index, layers: tuple[int, ...]) -> tuple[str | None, str | None]:
    """As many layers before and after; none where there are gaps."""
    first, last, count = layers[0], layers[-1], len(layers)
    if last - first + 1 != count:
        return None, None
    before = tuple(range(max(0, first - count), first))
    after = tuple(range(last + 1, min(last + 1 + count, index.shape.n_layers)))
    return write_layers(before) if before else None, write_layers(after) if after else None
