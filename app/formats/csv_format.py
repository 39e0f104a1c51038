"""Write tables as CSV: one row per entry of a list, with all its numbers and ids. Tokens may hold any text.

All lists of a page are in one file; a column that a list does not have is blank in its rows. The last columns describe
the page, so that several files can be joined into one.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from lexiscope.app.formats.table import Column, Table

ROWS_PER_CHUNK = 500

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes a cell that begins with one of these for a formula

Cells = dict[str, Any]


def csv_chunks(tables: Sequence[Table], about: Mapping[str, Any]) -> Iterator[str]:
    """Write the CSV in chunks. `about` holds the columns that describe the whole file, with the same values in every
    row."""
    names, rows = table_rows(tables, about)
    if any(column.kind == "list" for table in tables for column in table.columns):
        rows = map(_joined, rows)
    lines = chain([names], rows)
    while chunk := list(islice(lines, ROWS_PER_CHUNK)):
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerows(chunk)
        yield out.getvalue()


def table_rows(tables: Sequence[Table], about: Mapping[str, Any]) -> tuple[list[str], Iterator[list[Any]]]:
    """Return the names of all columns, and the rows of all tables, one table after the other."""
    tables = [table for table in tables if table.audience != "people"]
    names = _header(tables, about)
    return names, _lines(tables, about, names)


def _joined(cells: list[Any]) -> list[Any]:
    """Write lists as texts with ` | ` between their values."""
    return [" | ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in cells]


def defused(typed: str) -> str:
    """Return a text that a visitor typed, changed so that no spreadsheet computes it as a formula."""
    return f"'{typed}" if typed.startswith(_FORMULA) else typed


def _header(tables: Iterable[Table], about: Mapping[str, Any]) -> list[str]:
    declared = [name for table in tables for column in table.columns_for("programs") for name in _names(column)]
    return list(dict.fromkeys([*(name for name in declared if name not in about), *about]))


def _lines(tables: Iterable[Table], about: Mapping[str, Any], names: list[str]) -> Iterator[list[Any]]:
    for table in tables:
        about_list = {name: None if name in table.says_nothing_of else value for name, value in about.items()}
        columns = [(column, _cells(column)) for column in table.columns_for("programs")]
        for row in table.rows:
            # A column of the list replaces a column of the same name that describes the file.
            cells: Cells = about_list.copy()
            for column, expand in columns:
                cells |= expand(column.value(row))
            yield [cells.get(name) for name in names]


def _names(column: Column) -> list[str]:
    match column.kind:
        case "token":
            return [column.name, f"{column.name}_id"]
        case "tokens" | "words":
            return [f"{column.name}_{at}{part}" for at in range(1, column.count + 1) for part in ("", "_id")]
        case _:
            return [column.name]


def _cells(column: Column) -> Callable[[Any], Cells]:
    """Return a function that turns a row's value in this column into cells of CSV."""
    name = column.name
    match column.kind:
        case "token":
            return lambda token: {name: token and token["token"], f"{name}_id": token and token["id"]}
        case "tokens" | "words":
            return lambda tokens: {
                f"{name}_{at}{part}": token[key]
                for at, token in enumerate((tokens or ())[: column.count], 1)
                for part, key in (("", "token"), ("_id", "id"))
            }
        case _:
            return lambda value: {name: value}
