"""Write tables as HTML, from the same columns as CSV, Markdown, LaTeX and the terminal. A template writes `{{
table|html("grid", caption) }}`.

Python writes the HTML because a template that goes over rows and columns takes three times as long.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from lexiscope.app.formats.table import Column, Row, Table
from lexiscope.app.html.glossary import tip
from lexiscope.app.html.numbers import bar, heat, largest, number, ratio, score, z_text
from lexiscope.app.html.tokens import chips, pair_chips
from lexiscope.app.lists.difference import change_text
from lexiscope.app.lists.worth import standing
from lexiscope.precompute.index.layer.lists import Chance

Macro = Callable[[Row, str], Any]
Cell = Callable[[Row], str]  # a function that writes the cell of a row; "" if an earlier cell takes its place

_NUMBERS = ("number", "ratio", "change")


def html(
    table: Table,
    css: str = "grid",
    caption: str | Markup = "",
    *,
    model: str = "",
    lens: str = "dot",
    peak: float | None = None,
    row_id: str = "",
    marked: Container[Any] = (),
    heads: Mapping[str, Markup] | None = None,
    sorter: Callable[[Column], Any] | None = None,
    cells: Mapping[str, Macro] | None = None,
    empty: str | Markup = "",
    line: tuple[int, str] | None = None,
) -> Markup:
    """Write a table; its tokens link to the pages of a `model` and `lens`.

    A `caption` that is no Markup is hidden; `peak` is the score of the longest bar; ids of rows start with `row_id`,
    and their ranks are links to them; rows whose keys are `marked` get a dot. `heads` maps names of columns to HTML
    after their heading, `sorter` is a macro that writes the heading of a column by which the table can be sorted, and
    `cells` maps names of columns to macros that write a cell from a row and the column's name. A table without rows
    shows `empty`. A `line` is a number of rows and a text that is written below them, over the whole width.
    """
    columns = table.columns_for("people")
    rows = list(table.rows)
    writers = [
        _rank_cell(column, table.key, row_id)
        if row_id and table.key and column.kind == "rank"
        else _cell(column, rows, model, lens, peak, (cells or {}).get(column.name), "cards" in css.split())
        for column in columns
    ]
    hidden = "" if isinstance(caption, Markup) else ' class="u"'
    written = [f'<table class="{css}">', f"<caption{hidden}>{escape_text(caption)}</caption>\n" if caption else ""]
    written.append("<thead><tr>")
    written += [
        str(sorter(column)) if sorter and column.sort else _head(column, rows, (heads or {}).get(column.name, ""))
        for column in columns
    ]
    written.append("</thead>\n<tbody>\n")
    key = table.key if row_id or marked else None
    at_line = f'<tr class="line"><td colspan="{len(columns)}"><span>{escape_text(line[1])}</span>\n' if line else ""
    for at_row, row in enumerate(rows):
        if line and line[0] == at_row:
            written.append(at_line)
        of_row = key(row) if key else None
        identified = f' id="{row_id}{_name(of_row)}"' if row_id else ""
        written.append(f"<tr{identified}{_DOT if marked and of_row in marked else ''}>")
        for at, write in enumerate(writers):
            if (instead := columns[at].instead) and (why := instead(row)):
                written.append(f'<td colspan="{len(columns) - at}" class="none">{_ticked(why)}')
                break
            written.append(write(row))
        written.append("\n")
    if line and line[0] == len(rows):
        written.append(at_line)
    if not rows and empty:
        written.append(f'<tr><td><td colspan="{len(columns) - 1}" class="none">{escape_text(empty)}\n')
    written.append("</tbody></table>")
    return Markup("".join(written))


def z_cells(chance: Chance | None) -> Macro:
    """Return the function that writes the z of a row, marked where it is above chance."""

    def write(row: Row, _: str) -> str:
        z = row["z"]
        if z is None or not chance:
            return "–" if z is None else z_text(z)
        mark = f'<b>{z_text(z)} <small aria-hidden="true">▲</small></b>' if z > chance.line99 else z_text(z)
        return f'<span title="{standing(z, chance)}">{mark}</span>'

    return write


_DOT = ' class="m"'


def _name(key: Any) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _rank_cell(column: Column, key: Callable[[Row], Any], row_id: str) -> Cell:
    """Return the function that writes a row's rank as a link to the row. The Tab key passes these links by, because
    every row has one; the key # does the same in the row that has the focus."""

    def write(row: Row) -> str:
        rank = column.value(row)
        return f'<td><a href="#{row_id}{_name(key(row))}" tabindex="-1" aria-label="Link to row {rank}">{rank}</a>'

    return write


def escape_text(text: Any) -> str:
    return str(text) if isinstance(text, Markup) else escape(str(text))


def _head(column: Column, rows: Sequence[Row], after: str) -> str:
    explained = column.tip if " " in column.tip else column.tip and tip(column.tip)
    says = f' title="{escape(explained)}"' if explained else ""
    if column.kind == "rank":
        return f'<th scope="col"><abbr{says}>{escape(column.page_title)}</abbr>'
    is_number = column.kind in _NUMBERS or (column.kind == "address" and rows and _is_number(column.value(rows[0])))
    aligned = ' class="cos"' if column.kind == "cosine" else ' class="n"' if is_number or column.css == "n" else ""
    return f'<th scope="col"{aligned}{says}>{escape(column.page_title)}{after}'


def _ticked(text: str) -> str:
    """Escape text, and write the parts between backticks as code; a backtick without a partner stays as it is."""
    pieces = escape(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _cell(
    column: Column, rows: Sequence[Row], model: str, lens: str, peak: float | None, macro: Macro | None, is_card: bool
) -> Cell:
    """Return the function that writes the cells of a column. In a table that narrow screens show as cards, every cell
    also names its column."""
    value = column.value
    label = f' data-label="{escape(column.page_title)}"' if is_card else ""
    if column.kind == "address":
        return lambda row: _address(column, row, macro and macro(row, column.name))
    css = column.css or ("n" if column.kind in _NUMBERS else "")
    start = f'<td class="{css}"{label}>' if css else f"<td{label}>"
    if column.kind == "ratio":
        written = (lambda row: macro(row, column.name)) if macro else lambda row: ratio(value(row))
        blank = f'<td class="n"{label}>–'
        return lambda row: (
            blank if value(row) is None else f'<td class="n"{label} data-heat="{heat(value(row))}">{written(row)}'
        )
    if macro:
        return lambda row: f"{start}{macro(row, column.name)}"
    match column.kind:
        case "score":
            longest = largest(value(row) for row in rows) if peak is None else peak
            return lambda row: f'<td data-bar="{bar(value(row), longest)}">{score(value(row), longest)}'
        case "cosine":
            return lambda row: start + ratio(value(row))
        case "change":
            return lambda row: start + change_text(value(row))
        case "token":
            return lambda row: f"{start}{chips((value(row),), model, lens)}"
        case "tokens":
            return lambda row: f"{start}{chips(value(row) or (), model, lens)}"
        case "pairs":
            return lambda row: start + " ".join(pair_chips(pair, model, lens) for pair in value(row) or ())
        case "number":
            return lambda row: start + _number(value(row), column.format)
        case _:
            return lambda row: start + escape_text("" if value(row) is None else value(row))


def _number(value: float | None, format: str) -> str:
    if value is None:
        return "–"
    return f"{value:{format}}".replace("-", "−") if format else str(value) if isinstance(value, int) else number(value)


def _address(column: Column, row: Row, written: Any) -> str:
    """Write the name of a row's parameter as a link to its page, or the HTML that a macro has `written` for the
    name."""
    value = column.value(row)
    aligned = ' class="n"' if _is_number(value) else ""
    if written is None:
        written = escape_text(f"{value:{column.format}}" if column.format else value)
        if column.link:
            written = f'<a href="{escape(column.link(row))}">{written}</a>'
    return f'<th scope="row"{aligned}>{written}'
