"""The tables of live pages: what a worker computed, column by column."""

from collections.abc import Iterable
from typing import Any

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.stored_tables import FIRST_PAIR
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.views.relation import RelationPair, RelationView
from lexiscope.app.views.through_heads import ThroughHeadsView
from lexiscope.app.views.token_text import visible
from lexiscope.app.views.tokens import Token

RELATION_COLUMNS = (
    Column("layer", "number"),
    Column("head", "number"),
    Column("rank", "number", heading="mean rank"),
    Column("score", "number", heading="mean score"),
    Column("rank_from_bottom", "number", heading="mean rank from the bottom"),
    Column("shuffled", "number"),
    Column("identity", "number"),
    Column("chance", "number", heading="heads by chance"),
    Column("verdict"),
    Column("shuffled_from_bottom", "number", audience="programs"),
    Column("identity_from_bottom", "number", audience="programs"),
    Column("chance_from_bottom", "number", audience="programs"),
    Column("verdict_from_bottom", audience="programs"),
)


_SHUFFLED_WITH = {"pairs": "other pairs' targets", "words": "random words"}


def relation_tables(view: RelationView) -> list[Table]:
    names = [f"{pair.source.word} > {pair.target.word}" for pair in view.pairs]
    by_pair = [column for at, pair in enumerate(view.pairs) for column in _of_pair(at, pair, names[at])]
    shuffled = f"; shuffled with {_SHUFFLED_WITH[view.shuffled_with]}" if view.shuffled_with else ""
    how = f"{view.matrix}, {view.lens}{_first_pieces(view)}{shuffled}"
    title = f"{view.model}, heads that carry {', '.join(names)} ({how})"
    return [Table(title, (*RELATION_COLUMNS, *by_pair, *FIRST_PAIR), view.heads)]


def _of_pair(at: int, pair: RelationPair, name: str) -> Iterable[Column]:
    """The rank and the score of one pair's target."""
    number = at + 1
    yield constant(f"source_{number}", defused(pair.source.word))
    yield constant(f"target_{number}", defused(pair.target.word))
    yield Column(f"rank_{number}", "number", get=lambda head: head["ranks"][at], heading=name)
    yield Column(f"score_{number}", "number", get=lambda head: head["scores"][at], audience="programs")
    yield Column(f"ranked_{number}", "token", get=lambda _: pair.ranked, audience="programs")
    yield constant(f"pieces_{number}", len(pair.target.tokens))


def _first_pieces(view: RelationView) -> str:
    """Said of targets of several pieces: theirs is not the whole word's rank."""

    def first_piece(pair: RelationPair) -> str:
        ranked: Token = pair.ranked
        return f"of {pair.target.word}, {len(pair.target.tokens)} pieces, the first: {visible(ranked['token'])}"

    pieces = [first_piece(pair) for pair in view.pairs if len(pair.target.tokens) > 1]
    return f"; ranked is {'; '.join(pieces)}" if pieces else ""


def through_heads_tables(view: ThroughHeadsView) -> list[Table]:
    """For people a table for each word; in CSV token by token."""
    wide = (
        Column("layer", "number"), Column("head", "number"),
        Column("seeks", "words", heading="looks for (QK)"), Column("seeks_alike", "number", heading="alike"),
        Column("writes", "words", heading="writes (VO)"), Column("writes_alike", "number", heading="alike"),
    )  # fmt: skip
    long = (
        Column("layer"), Column("head"), Column("word"), Column("list"), Column("rank"), Column("token", "token"),
        Column("score"), Column("itself"), Column("alike"),
    )  # fmt: skip
    how = view.lens if view.end == "top" else f"{view.lens}, bottom"
    tables = [
        Table(f"{view.model}, {group.word} through heads ({how})", wide, _wide_heads(view, at), "people")
        for at, group in enumerate(view.groups)
    ]
    return [*tables, Table("", long, _long_words(view), "programs")]


def _wide_heads(view: ThroughHeadsView, at: int) -> list[dict[str, Any]]:
    """What every head does with one group of words."""
    return [{"layer": row["layer"], "head": row["head"], **row["words"][at]} for row in view.heads]


def _long_words(view: ThroughHeadsView) -> Iterable[dict[str, Any]]:
    for row in view.heads:
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
