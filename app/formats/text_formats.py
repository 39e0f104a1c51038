"""Tables as Markdown and LaTeX, with whatever a token may hold escaped for each."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.formats.table import Column, Row, Table, token_texts
from app.views.token_text import visible


@dataclass(frozen=True)
class Source:
    """Where a table comes from, so that whoever finds it can look it up."""

    url: str
    build: str  # of the model and the index; "" for tables of no model


@dataclass(frozen=True)
class _Tokens:
    """A cell of tokens as one can see them, one after the other; those of a group belong together: a pair."""

    groups: tuple[tuple[str, ...], ...]


_Cell = str | float | int | _Tokens | None


def as_markdown(tables: Iterable[Table], source: Source) -> str:
    parts = []
    for table in _for_people(tables):
        columns, rows = table.columns_for("people"), _cells(table)
        lines = [f"**{_md(table.title)}**", "", _md_row(_md(column.title) for column in columns)]
        lines.append(_md_row("---:" if is_number else "---" for is_number in _are_numbers(columns, rows)))
        lines += [_md_row(_md(_text(cell)) for cell in row) for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"Source: <{source.url}>{source.build and ', ' + source.build}"]) + "\n"


def as_latex(tables: Iterable[Table], source: Source) -> str:
    """Plain tabulars: no package is needed, but a font for letters that the usual one lacks."""
    parts: list[str] = []
    for table in _for_people(tables):
        columns, rows = table.columns_for("people"), _cells(table)
        places = "".join("r" if is_number else "l" for is_number in _are_numbers(columns, rows))
        lines = [rf"\begin{{tabular}}{{{places}}}"]
        lines.append(rf"\multicolumn{{{len(columns)}}}{{l}}{{{_tex(table.title)}}} \\")
        lines += [r"\hline", _tex_row(_tex(column.title) for column in columns), r"\hline"]
        lines += [_tex_row(map(_tex_cell, row)) for row in rows]
        parts.append("\n".join([*lines, r"\hline", r"\end{tabular}"]))
    return "\n\n".join([_tex_head("".join(parts), source), *parts]) + "\n"


def _for_people(tables: Iterable[Table]) -> list[Table]:
    return [table for table in tables if table.audience != "programs"]


def _cells(table: Table) -> list[list[_Cell]]:
    columns = table.columns_for("people")
    return [[_cell(column, row) for column in columns] for row in table.rows]


def _cell(column: Column, row: Row) -> _Cell:
    value: Any = column.value(row)
    if column.kind in ("text", "number", "ratio") or value is None:
        cell: _Cell = value
        return cell
    groups = tuple(tuple(map(visible, group)) for group in token_texts(column, value))
    return "  ".join(text for (text,) in groups) if column.kind == "words" else _Tokens(groups)


def _text(cell: _Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:.3f}"
        case _Tokens():
            return "  ".join(map(" → ".join, cell.groups))
        case _:
            return str(cell)


def _are_numbers(columns: Sequence[Column], rows: Sequence[Sequence[_Cell]]) -> list[bool]:
    return [_is_number([row[at] for row in rows]) for at in range(len(columns))]


def _is_number(cells: Sequence[_Cell]) -> bool:
    return any(isinstance(cell, int | float) for cell in cells) and not any(
        isinstance(cell, str | _Tokens) for cell in cells
    )


_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")  # of ASCII, all of which Markdown lets one escape
_HARMLESS = frozenset(".,:;-+()/'%=?")  # inside a cell


def _md(text: str) -> str:
    return _PUNCTUATION.sub(lambda found: found[1] if found[1] in _HARMLESS else "\\" + found[1], text)


def _md_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_LATIN = "\u024f"  # what comes after it is in few fonts of LaTeX
LISTED = 40  # letters
_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\texttt{\char34}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "␣": r"\textvisiblespace{}", "→": r"$\to$",
}  # fmt: skip


def _tex_cell(cell: _Cell) -> str:
    if isinstance(cell, _Tokens):
        return r"\quad ".join(r" $\to$ ".join(rf"\texttt{{{_tex(token)}}}" for token in group) for group in cell.groups)
    return f"${_text(cell)}$" if isinstance(cell, float) else _tex(_text(cell))  # a minus, not a hyphen


def _tex(text: str) -> str:
    return "".join([_TEX.get(character, character) for character in text]).replace("--", "-{}-")  # no dash


def _tex_row(cells: Iterable[str]) -> str:
    row = " & ".join(cells) + r" \\"
    return "{}" + row if row.lstrip()[:1] in ("[", "*") else row  # or it would belong to the end of the row before


def _tex_head(written: str, source: Source) -> str:
    """What it takes to set these tables; LaTeX leaves out letters that its font lacks, and hardly says so."""
    lines = [f"% {line}" for line in (source.url, source.build) if line]
    if beyond := sorted({character for character in written if character > _LATIN}):
        lines.append(
            f"% XeLaTeX or LuaLaTeX, and a font with {' '.join(beyond[:LISTED])}{' ...' * (len(beyond) > LISTED)}"
        )
        lines.append(r"% such as \usepackage{fontspec} \setmonofont{Noto Sans Mono CJK SC}")
    elif not written.isascii():
        lines.append("% XeLaTeX or LuaLaTeX, for tokens beyond ASCII")
    return "\n".join(lines)
