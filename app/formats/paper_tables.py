"""The table of the lists that the paper printed, and that of one list entry by entry."""

from typing import Any

from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.views.paper import PaperView
from lexiscope.precompute.paper.lists import BASE

LIST_COLUMNS = (
    Column("address", get=lambda row: row.address, heading="list"),
    Column("column", get=lambda row: row.column),
    Column("section", get=lambda row: row.section, heading="in the paper"),
    Column("printed", get=lambda row: row.printed),
    Column("found", get=lambda row: row.found),
    Column("of", get=lambda row: row.of),
    Column("among", get=lambda row: row.among, heading="among our first"),
    Column("by_chance", "number", get=lambda row: row.by_chance, heading="by chance"),
    Column("why_not", get=lambda row: row.why_not, heading="not compared, because"),
    Column("ours", get=lambda row: row.ours, heading="our list"),
)
ENTRY_COLUMNS = (
    Column("column", get=lambda entry: entry.column),
    Column("first_token", "token", get=lambda entry: entry.tokens[0], heading="printed"),
    Column("second_token", "token", get=lambda entry: entry.tokens[1] if entry.tokens[1:] else None, heading="second"),
    Column("doubtful", get=lambda entry: "may be misread" if entry.doubtful else "", heading="doubt"),
    Column("rank", get=lambda entry: entry.rank, heading="our rank"),
)


def paper_tables(view: PaperView) -> list[Table]:
    title = f"{view.lists or 'nothing'} as printed, in {view.model} ({view.lens})"
    columns = tuple(column for column in LIST_COLUMNS if column.name != "by_chance" or view.lists == BASE)
    tables: list[tuple[str, Any, Any]] = [("list", columns, view.printed), ("entry", ENTRY_COLUMNS, view.entries)]
    return [Table(title, (constant("what", what), *shown), rows) for what, shown, rows in tables if rows]
