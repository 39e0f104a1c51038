"""Display objects of a notebook: as the tables of their page in HTML, as text elsewhere. Tokens are hostile text: the
template escapes all of it, and nothing is downloaded or run."""

import io
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from jinja2 import Template
from rich.console import Console

from lexiscope.app.formats.table import Column, Row, Table, token_texts
from lexiscope.app.html.assets import folder, template_environment
from lexiscope.app.html.numbers import number
from lexiscope.app.lists.view import View, visible
from lexiscope.app.terminal import print_tables, print_view

TEXT_COLUMNS = 120  # most characters in a line of text
MOST_ROWS = 25  # how many rows of a table are displayed; frames have all rows


class Shown:
    """The base class of objects that display their tables: as HTML in Jupyter, as text with `str()`, and as one line in
    `repr()`."""

    def _title(self) -> str:
        """Return one line that says what the object is."""
        raise NotImplementedError

    def _tables(self) -> Sequence[Table]:
        raise NotImplementedError

    def _notes(self) -> Sequence[str]:
        """Return the notes that are displayed below the tables."""
        return ()

    def __repr__(self) -> str:
        return f"<lexiscope {self._title()}>"

    def __str__(self) -> str:
        return as_text(self._tables(), self._notes())

    def _repr_html_(self) -> str:
        return as_html(self._tables(), self._notes())


def as_text(tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    shown = [_short(table) for table in tables if table.audience != "programs"]
    return _printed(lambda console: print_tables(console, shown, notes))


def view_text(view: View, notes: Sequence[str] = ()) -> str:
    """Return the data of a page as text, as `lexiscope show` prints it."""

    def print_all(console: Console) -> None:
        print_view(console, view)
        print_tables(console, (), notes)

    return _printed(print_all)


def _printed(print_to: Callable[[Console], None]) -> str:
    out = io.StringIO()
    print_to(Console(file=out, width=TEXT_COLUMNS, highlight=False, color_system=None, force_jupyter=False))
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


def as_html(tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    shown = [
        {"title": table.title, "columns": _columns(table, rows := [*table.rows]), "rows": rows}
        for table in tables
        if table.audience != "programs"
    ]
    return _template().render(tables=shown, notes=notes, most=MOST_ROWS)


def _columns(table: Table, rows: Sequence[Row]) -> list[Column]:
    """Return the columns that have a value in at least one row."""
    columns = table.columns_for("people")
    return [column for column in columns if not rows or any(column.value(row) is not None for row in rows)]


def _short(table: Table) -> Table:
    rows = [*table.rows]
    more = f" (the first {MOST_ROWS} of {len(rows)})" if len(rows) > MOST_ROWS else ""
    return Table(table.title + more, tuple(_columns(table, rows)), rows[:MOST_ROWS])


@cache
def _template() -> Template:
    environment = template_environment(folder("templates"))
    environment.filters["cell"] = _cell
    return environment.get_template("notebook.html")


def _cell(column: Column, row: Row) -> dict[str, Any]:
    """Return a cell for the template: tokens in groups (a pair is a group), or a text."""
    value = column.value(row)
    if not column.holds_tokens:
        text = "" if value is None else number(value) if isinstance(value, float) else str(value)
        return {
            "text": text,
            "is_number": column.kind not in ("text", "address") or isinstance(value, int | float),
            "groups": (),
        }
    groups = [[visible(text) for text in group] for group in token_texts(column, value)]
    return {"text": "", "is_number": False, "groups": groups}
