"""Declare a panel, which is a part of the result of a run: its tab on the page, its tables for people, and its rows of
the run's one long table for programs. That table has a row for every number."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Kind, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.lists.view import Token, visible
from lexiscope.precompute.live.wire.answers import PanelName, ScoredToken
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

Record = dict[str, Any]  # a row of the table: values by column
FIELDS = {"cosine": "score"}  # for a measure whose field in an entry has another name, that name


def _column(name: str, kind: Kind = "text") -> Column:
    return Column(name, kind, get=lambda record: record.get(name))


COLUMNS = (
    _column("panel"),
    _column("layer"),
    _column("part"),  # the last step in a layer, a vector of a neuron, a kind of vectors, or of a change
    _column("head"),
    _column("neuron"),
    _column("position"),
    _column("to_position"),  # the position that the head attends to
    _column("end"),
    _column("rank"),
    _column("token", "token"),
    _column("measure"),  # what kind of number `value` is
    _column("value"),
)


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The declaration of a panel, which is a part of the result of a run; its template is `_prompt_{name}.html`."""

    name: PanelName
    title: str  # the title of its tab
    working: str = ""  # the text for visitors while the worker computes the panel; only the name, if that takes no time
    rows: Callable[["PromptView"], Iterable[Record]] = lambda _: ()  # makes the panel's rows of the table for programs
    file_tables: Callable[["PromptView"], list[Table]] | None = None  # makes tables of its own for programs instead
    # columns that stay blank: only patterns have a convention, and only stored lists a lens
    says_nothing_of: tuple[str, ...] = ("convention", "lens")
    tables: Callable[["PromptView"], list[Table]]  # makes the tables for people without charts, as in a notebook
    has_text: bool = False  # True if these tables can be downloaded as Markdown and LaTeX
    has_lists: bool = False  # True if the panel has lists of tokens by score, from which hubs may be left out
    # Adds lists of the index to the worker's answer, by changing fields of the answer.
    add_lists: Callable[[dict[str, Any], FirstLists, PromptArguments], None] = _nothing

    def for_programs(self, view: "PromptView") -> list[Table]:
        if self.file_tables:
            return self.file_tables(view)
        return [Table("", COLUMNS, self.rows(view), "programs", self.says_nothing_of)]


def listed(where: Record, entries: Iterable[Token] | None, measure: str | None = None) -> Iterator[Record]:
    """Yield a row for each entry of a list; no rows for a list that is not stored."""
    for rank, entry in enumerate(entries or (), 1):
        value = {"measure": measure, "value": entry[FIELDS.get(measure, measure)]} if measure else {}  # type: ignore[literal-required]
        yield {**where, "rank": entry.get("rank", rank), "token": entry, **value}


def numbers(where: Record, row: Mapping[str, Any], names: Iterable[str]) -> Iterator[Record]:
    """Yield a row for each of these numbers of a row, where it has one."""
    for name in names:
        if row[name] is not None:
            yield {**where, "measure": name, "value": row[name]}


def cut_spare(tokens: list[ScoredToken], lists: FirstLists, k: int) -> list[ScoredToken]:
    """Return the first k tokens, not counting the hubs (tokens in very many lists) that will be left out; a longer list
    was requested to make up for these."""
    kept = [rank for rank, token in enumerate(tokens, 1) if token["id"] not in lists.hubs]
    return tokens[: kept[k - 1]] if len(kept) >= k else tokens


def token_at(view: "PromptView", position: int | None) -> str:
    """Return the token at a position as visible text."""
    return "" if position is None else visible(view.tokens[position]["token"])
