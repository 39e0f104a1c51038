r"""Write tables as LaTeX that looks the same in pdfLaTeX and XeLaTeX, and needs no package. Tokens may hold any text.

Letters that the usual fonts of both have are written with accents, such as \'{e}. Any other character is written as
\lexchar{30F3}{ン} and shown as U+30F3; an author whose font has the character redefines \lexchar to show it.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.formats.text_formats import Cell, Source, Tokens, are_numbers, cells, for_people, text_of

TABLE_ROWS = 40  # most rows of one table, if each takes one line: about a page
FLOATS = 40  # most tables in a row: LaTeX keeps at most 52 that have no page yet

_HEAD = r"""% Compiles with pdfLaTeX and XeLaTeX; needs no package.
% Characters beyond their usual fonts are set as code points, U+30F3. With a font that has them:
% \newcommand{\lexchar}[2]{#2}
\providecommand{\lexchar}[2]{{\scriptsize U+#1}}"""
_WIDE = ("tokens", "words", "pairs")  # kinds of columns whose cells may take several lines

_ESCAPED = {
    **{character: rf"\{character}" for character in "$&#_%"},
    # These characters look the same in a code font as they are typed.
    **{character: rf"\texttt{{\char{ord(character)}}}" for character in '\\{}^~<>|"'},
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "␣": r"\textvisiblespace{}", "→": r"$\to$",
}  # fmt: skip
_LETTERS = {"ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}"}
_ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327", "`'^~=u.\"rHvc", strict=True)
)
_DOTLESS = {"i": r"\i", "j": r"\j"}
_LAST_LATIN = "\u017f"  # the last letter of the block Latin Extended-A


def as_latex(tables: Iterable[Table], source: Source) -> str:
    """Write each table as a LaTeX float with a caption and a label; a long table continues in further floats."""
    floats: list[str] = []
    labels: set[str] = set()
    for table in for_people(tables):
        columns, rows = table.columns_for("people"), cells(table)
        label = _unique(slug(table.title), labels)
        size = TABLE_ROWS // max(1, _n_wide(columns))  # the narrower these columns are, the more lines their cells take
        floats.append(_float(table.title, label, columns, rows[:size], source))
        for at in range(size, len(rows), size):
            part = f"{label}-{1 + at // size}"
            floats.append(_float(f"{table.title}, continued", part, columns, rows[at : at + size], source))
    for at in range(FLOATS, len(floats), FLOATS):
        floats[at] = "\\clearpage\n" + floats[at]
    head = "\n".join([*(f"% {line}" for line in (source.url, source.build) if line), _HEAD])
    return "\n\n".join([head, *floats]) + "\n"


def _float(title: str, label: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], source: Source) -> str:
    caption = escape(title) + (f". {escape(source.build[:1].upper() + source.build[1:])}." if source.build else "")
    lines = [
        r"\begin{table}[htbp]", r"\centering\small\sloppy", rf"\caption{{{caption}}}", rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{_column_types(columns, rows)}}}", r"\hline",
        _row(escape(column.title) for column in columns), r"\hline", *(_row(map(_cell, row)) for row in rows),
        r"\hline", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines)


def _column_types(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """Return the column types of a LaTeX table: numbers are aligned to the right, and columns with long cells share the
    rest of the line."""
    wide = _n_wide(columns)
    width = max(0.15, (1 - 0.035 * len(columns) - 0.07 * (len(columns) - wide)) / wide) if wide else 0.0
    return "".join(
        f"p{{{width:.2f}\\linewidth}}" if column.kind in _WIDE else "r" if is_number else "l"
        for column, is_number in zip(columns, are_numbers(columns, rows), strict=True)
    )


def _n_wide(columns: Sequence[Column]) -> int:
    return sum(column.kind in _WIDE for column in columns)


def _cell(cell: Cell) -> str:
    if isinstance(cell, Tokens):
        groups = (r" $\to$ ".join(rf"\texttt{{{escape(token)}}}" for token in group) for group in cell.groups)
        return r"\quad ".join(groups)
    # math mode writes a minus, not a hyphen
    return f"${text_of(cell)}$" if isinstance(cell, float) else escape(text_of(cell))


def _row(written: Iterable[str]) -> str:
    row = " & ".join(written) + r" \\"
    # Without {}, LaTeX would read [ or * as an argument of the row before.
    return "{}" + row if row.lstrip()[:1] in ("[", "*") else row


def escape(text: str) -> str:
    # the braces keep LaTeX from joining two hyphens into a dash
    return "".join(map(_character, text)).replace("--", "-{}-")


def _character(character: str) -> str:
    if found := _ESCAPED.get(character) or _LETTERS.get(character):
        return found
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFD", character)
    letter, accent = parts[0], _ACCENTS.get(parts[1:])
    if accent and character <= _LAST_LATIN and letter.isascii():
        return rf"\{accent}{{{_DOTLESS.get(letter, letter)}}}"
    return rf"\lexchar{{{ord(character):04X}}}{{{character}}}"


def slug(text: str) -> str:
    """Turn a title into the name of a LaTeX label, which has only letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "table"


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}-again{number}"
    taken.add(unique)
    return unique
