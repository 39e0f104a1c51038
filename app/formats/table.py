"""Declare the columns of a table once: the name of each value, how to get it from a row, and how it is printed.

HTML, CSV, Markdown, LaTeX and the terminal are made from the same declaration, which is in the module of its page: a
new column is one line there.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, Protocol

from lexiscope.app.lists.view import Token, TokenPair

Row = Any  # any value that the columns of the table can read, mostly a dict

Kind = Literal[
    "text",
    "number",
    "rank",
    "score",  # a number; pages draw a bar beside it
    "ratio",  # a number from 0 to 1; pages colour its cell
    "cosine",  # a number from -1 to 1, which pages write with few characters
    "change",  # how much a vector changed; pages write it in per cent
    "address",  # the name of the row's parameter; pages link it
    "token",  # a Token: a chip on a page, its visible text for people elsewhere, two columns `x` and `x_id` in CSV
    "tokens",  # several tokens: in CSV `x_1`, `x_1_id`, `x_2`, ...
    "words",  # several tokens, written as plain text
    "list",  # several plain values: a list in Parquet and frames, in CSV one cell with ` | ` between them
    "pairs",  # several TokenPairs, which CSV leaves out
]
Audience = Literal["everybody", "people", "programs"]  # people read HTML, Markdown, LaTeX, terminals; programs CSV

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Column:
    name: str  # the name in CSV, and the heading for people if there is no other
    kind: Kind = "text"
    # returns the value in a row; None: the row is a dict with a value of this name
    get: Callable[[Row], Any] | None = None
    heading: str = ""
    audience: Audience = "everybody"
    count: int = 0  # how many tokens have columns in CSV
    page_heading: str = ""  # the heading on a page of the site, if it is another one
    tip: str = ""  # the word of the glossary that explains the column on a page, or a sentence that explains it
    sort: str = ""  # the value of `sort` in an address that sorts by this column
    css: str = ""  # the CSS class of the column's cells on a page
    format: str = ""  # the format of a number on a page, such as .2f
    link: Callable[[Row], str] | None = None  # returns the link from a cell of kind `address` on a page
    # Returns text that a page shows in place of this column and those after it, or "" if the row has values for them.
    instead: Callable[[Row], str | None] | None = None

    def value(self, row: Row) -> Any:
        return self.get(row) if self.get else row[self.name]

    @property
    def holds_tokens(self) -> bool:
        return self.kind in ("token", "tokens", "words", "pairs")

    @property
    def title(self) -> str:
        return self.heading or self.name

    @property
    def page_title(self) -> str:
        return self.page_heading or self.title


RANK, SCORE = Column("rank", "rank", heading="#", tip="rank"), Column("score", "score", tip="score")
TOKEN_COLUMNS = (RANK, Column("token", "token", get=lambda entry: entry), SCORE)
COSINE = Column("cosine", "cosine", page_heading="cos", tip="true-cosine", css="cos")
MATRIX, CHANGE = Column("matrix"), Column("change", "number")


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: Iterable[Row]
    audience: Audience = "everybody"
    says_nothing_of: tuple[str, ...] = ()  # descriptive columns of the CSV that stay blank in the rows of this table
    key: Callable[[Row], Any] | None = None  # returns the id of a row on a page, which links lead to

    def __post_init__(self) -> None:
        """Make the title safe to print: it may quote a search, so it must be on one line and without control
        characters."""
        object.__setattr__(self, "title", _CONTROLS.sub(" ", self.title))

    def columns_for(self, audience: Audience) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.audience in ("everybody", audience))


def constant(name: str, value: Any) -> Column:
    """Make a column with the same value in every row, to tell the rows of one list in a CSV from those of another."""
    return Column(name, get=lambda _: value, audience="programs")


class Changed(Protocol):
    """A vector or matrix in the difference of two models (tuned - base): its norm, the norm in the base, and their
    ratio."""

    @property
    def norm(self) -> float | None: ...
    @property
    def base_norm(self) -> float | None: ...
    @property
    def change(self) -> float | None: ...


def change_columns(of: Changed) -> list[Column]:
    """Return the columns of CSV that say how much a vector or a head's matrix changed between two models."""
    return [constant("norm", of.norm), constant("base_norm", of.base_norm), constant("change", of.change)]


def change_of(key: str, name: str) -> Column:
    """Return a column with the number named `key` among the changes of a row, which has one for each kind of vector."""
    return Column(name, "number", get=lambda row: row["change"][key])


def csv_order(*columns: Column | str) -> Table:
    """Make an empty table whose columns become the first columns of the CSV, in this order."""
    declared = tuple(Column(column) if isinstance(column, str) else column for column in columns)
    return Table("", declared, (), "programs")


def ranked(entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Turn the entries of a list into rows with ranks from 1; entries that already have a rank keep it."""
    return [{"rank": rank, **entry} for rank, entry in enumerate(entries, 1)]


def token_columns(entries: Sequence[Any]) -> tuple[Column, ...]:
    """Return the columns of a list of tokens, for people: with their cosines, if the entries have them."""
    rank, token, score = TOKEN_COLUMNS
    return (rank, token, COSINE, score) if entries and "cosine" in entries[0] else TOKEN_COLUMNS


def token_list(entries: Sequence[Any], lens: str = "dot") -> Table:
    """Make a table of tokens with their scores under a lens, for a page."""
    columns = token_columns(entries)
    if lens == "cosine":
        columns = (*columns[:-1], replace(SCORE, tip="The cosine × the length of the vector"))
    return Table("", columns, ranked(entries), key=lambda row: row["id"])


def beside(columns: Sequence[Column], top: Sequence[Any], bottom: Sequence[Any]) -> tuple[tuple[Column, ...], Any]:
    """Put the top and the bottom of a list side by side: they share the first column, and each column of tokens is
    named "top" or "bottom". If entries are left out, each end has its own ranks, and no row is blank in between."""

    def of_list(column: Column, at: int) -> Column:
        heading = ("top", "bottom")[at] if column.kind == "token" else column.title
        return replace(column, get=lambda row: column.value(row[at]) if row[at] else None, heading=heading)

    if any("rank" in entry for entry in (*top, *bottom)):
        each = tuple(of_list(column, at) for at in (0, 1) for column in columns)
        return each, list(zip_longest(ranked(top), ranked(bottom)))
    shared, *others = columns
    either = replace(shared, get=lambda row: shared.value(row[0] or row[1]))
    side_by_side = tuple(of_list(column, at) for at in (0, 1) for column in others)
    return (either, *side_by_side), list(zip_longest(ranked(top), ranked(bottom)))


def both_ends(
    title: str, which: Sequence[Column], top: Sequence[Any], bottom: Sequence[Any], numbers: Iterable[Column] = ()
) -> list[Table]:
    """Make tables of the top and the bottom of a vector's list: one table with both side by side for people, and one
    after the other for CSV, where the columns `which` name the list and `numbers` describe the vector."""
    shown = token_columns(top or bottom)
    columns, rows = beside(shown, top, bottom)
    numbers = (*numbers, *(column for column in shown if column is COSINE))  # a new column of CSV is the last
    tables = [Table(title, columns, rows, "people")]
    for end, entries in (("top", top), ("bottom", bottom)):
        of_end = (*which, constant("end", end), *TOKEN_COLUMNS, *numbers)
        tables.append(Table("", of_end, ranked(entries), "programs"))
    return tables


def token_texts(column: Column, value: Any) -> tuple[tuple[str, ...], ...]:
    """Return the texts of a cell of tokens as tuples: one text for a token alone, two for a pair of tokens."""
    if value is None:
        return ()
    match column.kind:
        case "token":
            token: Token = value
            return ((token["token"],),)
        case "pairs":
            pairs: list[TokenPair] = value
            return tuple((pair["from"]["token"], pair["to"]["token"]) for pair in pairs)
        case _:
            return tuple((token["token"],) for token in value)
