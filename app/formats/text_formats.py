"""Write tables as text for people: the texts of cells, and Markdown. LaTeX is in latex.py."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lexiscope.app.formats.table import Column, Row, Table, token_texts
from lexiscope.app.lists.view import visible


@dataclass(frozen=True)
class Source:
    """The source of a table, named so that a reader can look it up."""

    url: str
    build: str  # the build of the model and the index; "" if the table is about no model


@dataclass(frozen=True)
class Tokens:
    """The tokens of a cell as visible text, in groups: a pair is a group of two tokens."""

    groups: tuple[tuple[str, ...], ...]


Cell = str | float | int | Tokens | None


def as_markdown(tables: Iterable[Table], source: Source) -> str:
    parts = []
    for table in for_people(tables):
        columns, rows = table.columns_for("people"), cells(table)
        lines = [f"**{_md(table.title)}**", "", _md_row(_md(column.title) for column in columns)]
        lines.append(_md_row("---:" if is_number else "---" for is_number in are_numbers(columns, rows)))
        lines += [_md_row(_md(text_of(cell)) for cell in row) for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"Source: <{source.url}>{source.build and ', ' + source.build}"]) + "\n"


def for_people(tables: Iterable[Table]) -> list[Table]:
    return [table for table in tables if table.audience != "programs"]


def cells(table: Table) -> list[list[Cell]]:
    columns = table.columns_for("people")
    return [[_cell(column, row) for column in columns] for row in table.rows]


def _cell(column: Column, row: Row) -> Cell:
    value: Any = column.value(row)
    if not column.holds_tokens or value is None:
        cell: Cell = value
        return cell
    groups = tuple(tuple(map(visible, group)) for group in token_texts(column, value))
    return "  ".join(text for (text,) in groups) if column.kind == "words" else Tokens(groups)


def text_of(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:.3f}"
        case Tokens():
            return "  ".join(map(" → ".join, cell.groups))
        case _:
            return str(cell)


def are_numbers(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[bool]:
    return [_is_number([row[at] for row in rows]) for at in range(len(columns))]


def _is_number(cells: Sequence[Cell]) -> bool:
    return any(isinstance(cell, int | float) for cell in cells) and not any(
        isinstance(cell, str | Tokens) for cell in cells
    )


_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")  # ASCII punctuation: Markdown allows a backslash before each of these
_HARMLESS = frozenset(".,:;-+()/'%=?")  # characters that need no backslash inside a cell


def _md(text: str) -> str:
    return _PUNCTUATION.sub(lambda found: found[1] if found[1] in _HARMLESS else "\\" + found[1], text)


def _md_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
