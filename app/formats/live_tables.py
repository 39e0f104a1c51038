"""The tables of live pages: what a worker computed, column by column."""

from collections.abc import Iterable
from typing import Any

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.stored_tables import FIRST_PAIR
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.views.relation import RelationPair, RelationView
from lexiscope.app.views.seeds import FIRST, SeedsView, SeedWord
from lexiscope.app.views.through_heads import ThroughHeadsView
from lexiscope.app.views.token_text import visible
from lexiscope.app.views.tokens import Token

SEED_COLUMNS = (
    Column("rank", "number", heading="#"),
    Column("kind"),
    Column("layer", "number"),
    Column("index", "number"),
    Column("head", "number"),
    Column("subhead", "number"),
    Column("direction", "number"),
    Column("score", "number"),
)
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


def seeds_tables(view: SeedsView) -> list[Table]:
    """The vectors; and where heads were asked for, what each writes and seeks: in CSV token by token."""
    columns = [*SEED_COLUMNS, *(column for at, seed in enumerate(view.seeds) for column in _of_seed(at, seed))]
    columns.append(Column("top", "words", heading="tokens", count=FIRST if view.words else 0))
    results = [{"rank": rank, **result} for rank, result in enumerate(view.results, 1)]
    tables = [Table(f"{view.model}, vectors about {view.words} ({view.lens})", tuple(columns), results)]
    if view.heads:
        wide = (
            Column("layer", "number"), Column("head", "number"),
            Column("writes", "words", heading="VO"), Column("seeks", "words", heading="QK"),
        )  # fmt: skip
        long = (
            Column("rank"), Column("kind"), Column("layer"), Column("head"), Column("score"), Column("token", "token"),
        )  # fmt: skip
        through = f"{view.model}, {view.words} through every head ({view.lens})"
        tables += [Table(through, wide, view.heads, "people"), Table("", long, _long_heads(view), "programs")]
    return tables


def _of_seed(at: int, seed: SeedWord) -> Iterable[Column]:
    """A word's own score."""
    heading = f"{seed.weight:g}*{seed.word}" if seed.weight != 1 else seed.word
    yield constant(f"word_{at + 1}", defused(seed.word))
    yield constant(f"weight_{at + 1}", seed.weight)
    yield Column(f"score_{at + 1}", "number", get=lambda row: row["scores"][at], heading=heading)


def _long_heads(view: SeedsView) -> list[dict[str, Any]]:
    return [
        {
            "rank": entry.get("rank", rank), "kind": kind, "layer": head["layer"], "head": head["head"],
            "score": entry["score"], "token": entry,
        }
        for head in view.heads
        for kind, entries in (("vo", head["writes"]), ("qk", head["seeks"]))
        for rank, entry in enumerate(entries, 1)
    ]  # fmt: skip


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
