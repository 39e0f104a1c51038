"""Writes tables as CSV, Markdown and LaTeX, with whatever a token may hold escaped for each.
Which tables a view has is for tables.py."""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]

CSV_PART = 500  # rows


@dataclass(frozen=True)
class Tokens:
    """A cell of tokens as one can see them, one after the other; those of a group belong together: a pair."""

    groups: tuple[tuple[str, ...], ...]


Cell: TypeAlias = str | float | int | Tokens | None


@dataclass(frozen=True)
class Source:
    """Where a table comes from, so that whoever finds it can look it up."""

    url: str
    build: str  # of the model and the index; "" for tables of no model


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        """A title may quote a search: it stays on its line, and no control gets out of a terminal's hand."""
        object.__setattr__(self, "title", _CONTROLS.sub(" ", self.title))


def csv_parts(records: Iterable[Record], columns: Sequence[str] = ()) -> Iterator[str]:
    """Tokens as they are, beside their ids; the columns of the first record hold for all, these where there is none.

    In parts of some hundred rows, because there may be very many."""
    listed = iter(records)
    first = next(listed, None)
    if not (names := [*(columns if first is None else first)]):
        return
    rows: Iterable[Record] = listed if first is None else itertools.chain([first], listed)
    lines = itertools.chain([names], ([record[name] for name in names] for record in rows))
    while part := list(itertools.islice(lines, CSV_PART)):
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerows(part)
        yield out.getvalue()


def as_markdown(tables: Iterable[Table], source: Source) -> str:
    parts = []
    for table in tables:
        lines = [f"**{_md(table.title)}**", ""]
        lines.append(_md_row(map(_md, table.columns)))
        lines.append(_md_row("---:" if _is_number(column) else "---" for column in _columns(table)))
        lines += [_md_row(_md(_text(cell)) for cell in row) for row in table.rows]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"Source: <{source.url}>{source.build and ', ' + source.build}"]) + "\n"


def as_latex(tables: Iterable[Table], source: Source) -> str:
    """Plain tabulars: no package is needed, but a font for letters that the usual one lacks."""
    parts: list[str] = []
    for table in tables:
        places = "".join("r" if _is_number(column) else "l" for column in _columns(table))
        lines = [rf"\begin{{tabular}}{{{places}}}"]
        lines.append(rf"\multicolumn{{{len(table.columns)}}}{{l}}{{{_tex(table.title)}}} \\")
        lines += [r"\hline", _tex_row(map(_tex, table.columns)), r"\hline"]
        lines += [_tex_row(map(_tex_cell, row)) for row in table.rows]
        parts.append("\n".join([*lines, r"\hline", r"\end{tabular}"]))
    return "\n\n".join([_tex_head("".join(parts), source), *parts]) + "\n"


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:.3f}"
        case Tokens():
            return "  ".join(map(" → ".join, cell.groups))
        case _:
            return str(cell)


def _columns(table: Table) -> list[list[Cell]]:
    return [[row[at] for row in table.rows] for at in range(len(table.columns))]


def _is_number(cells: Sequence[Cell]) -> bool:
    return any(isinstance(cell, int | float) for cell in cells) and not any(
        isinstance(cell, str | Tokens) for cell in cells
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


def _tex_cell(cell: Cell) -> str:
    if isinstance(cell, Tokens):
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
