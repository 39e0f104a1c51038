"""The tables of the paper's lists beside ours."""

import json
from dataclasses import asdict
from typing import Any

from app.formats.table import Column, Table, constant
from app.views.paper import PaperView
from app.views.paper_heads import PAIRS_FIRST, Direction, HeadCompared, PrintedPair
from app.views.paper_neurons import NeuronCompared
from app.views.paper_numbers import NumberCompared

COUNT_COLUMNS = tuple(
    map(Column, ("address", "preset", "direction", "first", "exactly", "exactly_of", "up_to_space", "of", "doubtful",
                 "doubtful_of"))
)  # fmt: skip
HEAD_COLUMNS = (
    Column("address", get=lambda head: head.address, heading="head"),
    Column("title", get=lambda head: head.title, heading="in the paper"),
    Column("of", get=lambda head: len(head.pairs), heading="printed"),
    Column("as_printed", get=lambda head: _count(head, 0, "as printed"), heading="first 50, as printed"),
    Column("turned", get=lambda head: _count(head, 0, "turned"), heading="turned, a baseline"),
    Column("exactly", get=lambda head: _exactly(head), heading="of these exactly"),
    Column("more", get=lambda head: _count(head, 1), heading="first 500"),
    Column("preset", get=lambda head: head.preset),
)
PAIR_COLUMNS = (
    Column("first_token", "token", get=lambda pair: pair.printed[0], heading="printed first"),
    Column("second_token", "token", get=lambda pair: pair.printed[1], heading="printed second"),
    Column("doubt", get=lambda pair: _doubt(pair), heading="doubt"),
    Column("rank", get=lambda pair: pair.rank, heading="our rank"),
    Column("how", get=lambda pair: pair.how, heading="the same"),
)
NEURON_COLUMNS = (
    Column("address", get=lambda row: row[0].address, heading="neuron"),
    Column("column", get=lambda row: row[1].column),
    Column("of", get=lambda row: len(row[1].tokens), heading="printed"),
    Column("in_key", get=lambda row: row[1].in_key and row[1].in_key.up_to_space, heading="in our key"),
    Column("in_key_exactly", get=lambda row: row[1].in_key and row[1].in_key.exactly, heading="exactly"),
    Column("in_value", get=lambda row: row[1].in_value and row[1].in_value.up_to_space, heading="in our value"),
    Column("in_value_exactly", get=lambda row: row[1].in_value and row[1].in_value.exactly, heading="exactly"),
    Column("in_either", get=lambda row: row[1].in_either, heading="in either"),
)
MISSING_COLUMNS = (
    Column("address", get=lambda row: row[0], heading="not compared"),
    Column("why_not", get=lambda row: row[1], heading="because"),
)
TOKEN_COLUMNS = (
    Column("token", "token", get=lambda token: token.token),
    Column("doubt", get=lambda token: "may be misread" if token.doubtful else ""),
    Column("in_key", get=lambda token: token.in_key, heading="rank in our key"),
    Column("in_value", get=lambda token: token.in_value, heading="rank in our value"),
)
RANK_COLUMNS = (
    Column("address", get=lambda row: row[0].address, heading="neuron"),
    Column("seeds", get=lambda row: ", ".join(row[0].seeds)),
    Column("printed_rank", get=lambda row: row[0].printed_rank, heading="printed rank"),
    Column("spelling", get=lambda row: row[1] and row[1]["spelling"], heading="seeds as tokens"),
    Column("rank", get=lambda row: row[1] and row[1]["rank"], heading="our rank"),
)
WORD_COLUMNS = (
    Column("kind", get=lambda group: group.kind),
    Column("layer", get=lambda group: group.layer),
    Column("words", get=lambda group: len(group.words), heading="printed words"),
    Column("found", get=lambda group: group.found),
    Column("by_chance", "number", get=lambda group: group.by_chance, heading="by chance"),
)
NUMBER_COLUMNS = (
    Column("id", get=lambda number: number.id, heading="what"),
    Column("section", get=lambda number: number.section),
    Column("printed", get=lambda number: plain_value(number.printed)),
    Column("ours", get=lambda number: plain_value(number.ours)),
    Column("remark", get=lambda number: number.remark),
    Column("description", get=lambda number: number.description, audience="programs"),
)


def paper_tables(view: PaperView) -> list[Table]:
    title = f"{view.model} beside the paper ({view.lens})"
    neurons = [each for each in (*view.neurons, *view.lookups) if not each.why_not]
    tables = [
        Table(title, (Column("finding", get=lambda sentence: sentence, heading=f"printed lists of {view.lists}"),),
              _findings(view), "people"),
        Table(f"{title}: heads, pairs among ours up to the space", HEAD_COLUMNS,
              [head for head in view.heads if not head.why_not], "people"),
        Table("", _about("counts", COUNT_COLUMNS), [row for head in view.heads for row in _counts(head)], "programs"),
        Table(f"{title}: neurons, tokens among our first 100 up to the space", _about("column", NEURON_COLUMNS),
              [(neuron, column) for neuron in neurons for column in neuron.columns]),
        Table(f"{title}: looked-up neurons", _about("lookup", RANK_COLUMNS),
              [(each, spelt) for each in view.lookups for spelt in (each.ranks or (None,))]),
        Table(f"{title}: words of fine-tuned vectors", _about("words", WORD_COLUMNS),
              [group for group in view.words if not group.why_not]),
        Table(f"{title}: numbers", _about("number", NUMBER_COLUMNS), _numbers(view), "people"),
        Table("", _about("number", NUMBER_COLUMNS), view.numbers, "programs"),
        Table(f"{title}: what is not compared", _about("missing", MISSING_COLUMNS), _missing(view)),
        *_entries(view),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def plain_value(value: Any) -> str | int | float | None:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _about(what: str, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """With a column that tells the tables apart in a CSV."""
    return (constant("what", what), *columns)


def _entries(view: PaperView) -> list[Table]:
    """Printed entries one by one: for programs all of them, for people those of the one list they chose."""
    audience: Any = "everybody" if view.chosen else "programs"
    lists: list[tuple[HeadCompared | NeuronCompared, str, tuple[Column, ...], list[Any]]] = [
        *((head, "pair", PAIR_COLUMNS, head.pairs) for head in view.heads),
        *((neuron, f"token of {column.column}", TOKEN_COLUMNS, column.tokens)
          for neuron in (*view.neurons, *view.lookups) for column in neuron.columns),
    ]  # fmt: skip
    return [
        Table(
            f"{view.model} beside the paper, {each.address}: {what}s",
            (constant("what", what), constant("address", each.address), *columns),
            entries,
            audience,
        )
        for each, what, columns, entries in lists
    ]


def _findings(view: PaperView) -> list[str]:
    directions = [f"Direction of {each.matrix} pairs: {each.means}." for each in view.orientation]
    where = f"The lists are from {view.source['citation']}, {view.source['url']} ({view.source['licence']})."
    return [*filter(None, [view.summary]), *view.details, *directions, where] if view.lists else []


def _numbers(view: PaperView) -> list[NumberCompared]:
    """For people: those that there is something to say of."""
    return [number for number in view.numbers if number.ours is not None or number.remark]


def _missing(view: PaperView) -> list[tuple[str, str]]:
    printed: list[HeadCompared | NeuronCompared] = [*view.heads, *view.neurons, *view.lookups]
    lists = [(each.address, each.why_not) for each in printed if each.why_not]
    words = [
        (each.kind if each.layer is None else f"{each.kind}, layer {each.layer}", each.why_not)
        for each in view.words
        if each.why_not
    ]
    return [*lists, *words]


def _counts(head: HeadCompared) -> list[dict[str, Any]]:
    return [{"address": head.address, **asdict(count)} for count in head.counts]


def _count(head: HeadCompared, first: int, direction: Direction = "as printed") -> str:
    count = head.count(PAIRS_FIRST[first], direction=direction)
    return f"{count.up_to_space} of {count.of}"


def _exactly(head: HeadCompared) -> str:
    count = head.count(PAIRS_FIRST[0])
    return f"{count.exactly} of {count.exactly_of}"


def _doubt(pair: PrintedPair) -> str:
    return "garbled print" if pair.doubtful else "lost space" if any(pair.space_unknown) else ""
