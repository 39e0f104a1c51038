"""Show the panel `sheet`: every head at every position of a text, and the strongest neurons of every layer. People see
a page of the rows that pass their filters; files have all of these."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.lists.bias import biased_tokens, is_high_bias
from lexiscope.app.lists.checks import count_pages, page_slice
from lexiscope.app.lists.find_tokens import TOKEN_ID, token_search
from lexiscope.app.lists.first_tokens import FirstLists, stored_lens
from lexiscope.app.lists.view import Token, tokens_of
from lexiscope.app.pages.page import ModelSite, PageNumber
from lexiscope.app.pages.prompt.panel import Panel
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.answers import HEAD_LISTS, Sheet
from lexiscope.precompute.live.wire.asks import MAX_NUMBER, PromptArguments
from lexiscope.precompute.shape import Shape

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

NEURON_TOKENS = 5  # how many tokens of a neuron's key and value are shown
Rows = Literal["heads", "neurons"]
Row = Any  # a SheetHead or a SheetNeuron

# By what rows can be sorted: the value of a row, of which the largest comes first.
SORTS: Mapping[Rows, Mapping[str, Callable[[Row, int | None], Any]]] = {
    "heads": {
        "moved": lambda row, _: row["moved"],
        "message": lambda row, _: row["message"],
        "weight": lambda row, _: row["attends"]["weight"],
    },
    "neurons": {
        "adds": lambda row, _: abs(row["adds"]),
        "strength": lambda row, _: row["strength"],
        "coefficient": lambda row, at: abs(coefficient(row, at)),
    },
}


def coefficient(row: Row, at: int | None) -> float:
    """Return a neuron's coefficient at a position, or at its peak."""
    value: float = row["coefficients"][row["peak"] if at is None else at]
    return value


class SheetArguments(PromptArguments):
    """The arguments of a run, and those that choose rows of its sheet. The worker does not get the latter: it answers
    all rows."""

    of: Rows | None = Field(
        None,
        description="Of `sheet`: rows of `heads` or `neurons`. If not given, a page has heads and a file both",
    )
    at: int | None = Field(
        None,
        ge=0,
        le=MAX_NUMBER,
        description="Of `sheet`: heads at this position alone; of neurons, the position whose coefficient counts, else "
        "that of the peak",
    )
    word: str | None = Field(
        None, max_length=100, description="Of `sheet`: rows in whose lists this word, or token by its id, stands"
    )
    least: float | None = Field(
        None, ge=0, description="Of `sheet`: rows with at least this weight or, of neurons, this |coefficient|"
    )
    bias: Literal["hide"] | None = Field(
        None, description="Of `sheet`: `hide` leaves out rows all of whose lists are of high bias"
    )
    sort: Literal["layer", "moved", "message", "weight", "adds", "strength", "coefficient"] | None = Field(
        None, description="Of `sheet`: by what its rows are sorted, the largest first; `layer`: as the model has them"
    )
    page: PageNumber = 1


@dataclass(frozen=True)
class ShownRows:
    """What a page says of the rows that it shows."""

    of: Rows
    at: int | None
    sort: str
    page: int
    pages: int
    every: Mapping[str, int]  # how many rows there are before the filters
    sought: list[Token]  # the tokens that the argument `word` stands for


def check_sheet(ask: SheetArguments, shape: Shape, is_page: bool) -> None:
    """Raise BadRequest if the model has no such layer or head, or if these rows are not sorted so."""
    _check_number("layer", ask.layer, shape.n_layers)
    _check_number("head", ask.head, shape.n_heads)
    of = ask.of or ("heads" if is_page else None)
    if of and ask.sort and ask.sort not in ("layer", *SORTS[of]):
        raise BadRequest(f"sort = {ask.sort!r}: {of} are sorted by layer, {', '.join(SORTS[of])}")


def _check_number(name: str, number: int | None, count: int) -> None:
    if number is not None and number >= count:
        raise BadRequest(f"{name} = {number}: there are 0 to {count - 1}")


def chosen_rows(site: ModelSite, ask: SheetArguments, sheet: Sheet, lists: FirstLists, n_tokens: int) -> dict[str, Any]:
    """Return the fields of the view: the rows that pass the filters, with the words of neurons; for people one page of
    them. The worker's answer stays as it is."""
    _check_number("at", ask.at, n_tokens)
    choice, is_page, of = _Choice(site, ask, lists), site.format in ("html", "events"), ask.of or "heads"
    rows: dict[Rows, list[Row]] = {
        "heads": choice.heads(sheet["heads"]) if ask.of != "neurons" else [],
        "neurons": choice.neurons(sheet["neurons"]) if ask.of != "heads" else [],
    }
    total = {each: len(found) for each, found in rows.items()}
    for each, found in rows.items():
        _sort(found, each, ask.sort if is_page else ask.sort or "layer", ask.at)
    shown = None
    if is_page:
        size, sought = site.settings.layer_rows, tokens_of(site.index.tokens, sorted(choice.sought or ()))
        rows = {each: found[page_slice(ask.page, size)] if each == of else [] for each, found in rows.items()}
        pages, usual = count_pages(total[of], ask.page, size), next(iter(SORTS[of]))
        shown = ShownRows(of, ask.at, ask.sort or usual, ask.page, pages, sheet["total"], sought)  # type: ignore[arg-type]
    found_rows = {"heads": rows["heads"], "neurons": choice.with_words(rows["neurons"]), "total": total}
    return {"sheet": found_rows, "shown_rows": shown}


def _sort(rows: list[Row], of: Rows, by: str | None, at: int | None) -> None:
    """Sort rows, which the worker gives in the order of the model. If nothing is asked for, heads that attend to the
    first token come last: there they rest, and there are many."""
    if by == "layer" or (by and by not in SORTS[of]):
        return
    value = SORTS[of][by or next(iter(SORTS[of]))]
    rows.sort(key=lambda row: value(row, at), reverse=True)
    if by is None and of == "heads":
        rows.sort(key=lambda row: row["attends"]["position"] == 0)


class _Choice:
    """Choose rows by the arguments of an address."""

    def __init__(self, site: ModelSite, ask: SheetArguments, lists: FirstLists) -> None:
        self.ask, self.lists, self.tokens = ask, lists, site.index.tokens
        self.sought: frozenset[int] | None = None
        if ask.word:
            number = TOKEN_ID.fullmatch(ask.word.strip())
            by_id = {int(number[1])} if number and int(number[1]) < site.index.shape.d_vocab else set()
            self.sought = frozenset(by_id.union(token_search(self.tokens).tokens(ask.word)))
        self.biased = biased_tokens(site.index, stored_lens(site.index, ask.lens)) if ask.bias else b""

    def heads(self, rows: Iterable[Row]) -> list[Row]:
        layer, head, at, least = self.ask.layer, self.ask.head, self.ask.at, self.ask.least or 0
        return [
            row for row in rows
            if (layer is None or row["layer"] == layer) and (head is None or row["head"] == head)
            and (at is None or row["position"] == at) and row["attends"]["weight"] >= least
            and self._passes(row, HEAD_LISTS)
        ]  # fmt: skip

    def neurons(self, rows: Iterable[Row]) -> list[Row]:
        """Choose neurons; none if a head is asked for."""
        ask, least = self.ask, self.ask.least or 0
        chosen = [
            row for row in rows
            if ask.head is None and ask.layer in (None, row["layer"]) and abs(coefficient(row, ask.at)) >= least
        ]  # fmt: skip
        if self.sought is None and not self.biased:
            return chosen
        return [row for row in self.with_words(chosen) if self._passes(row, ("key", "value"))]

    def with_words(self, rows: Iterable[Row]) -> list[Row]:
        """Return neurons with the first tokens of their keys and values, which are read together for each layer."""
        rows, words = list(rows), dict[tuple[str, int, int], list[Token] | None]()
        placed = sorted((row["layer"], row["end"], row["neuron"]) for row in rows)
        for (layer, end), group in groupby(placed, lambda place: place[:2]):
            numbers = [number for _, _, number in group]
            for kind, of_end in (("ff_key", "top"), ("ff_value", end)):
                for number, ids in self.lists.first_ids(kind, layer, numbers, NEURON_TOKENS, of_end):
                    words[kind, layer, number] = None if ids is None else tokens_of(self.tokens, ids)
        places = [(row["layer"], row["neuron"]) for row in rows]
        both = ({"key": words["ff_key", *at], "value": words["ff_value", *at]} for at in places)
        return [{**row, **of_row} for row, of_row in zip(rows, both, strict=True)]

    def _passes(self, row: Row, names: tuple[str, ...]) -> bool:
        """Return True if the word that is sought stands in one of the lists, and not all of them are of high bias."""
        if self.sought is None and not self.biased:
            return True
        lists = [[token["id"] for token in row[name] or ()] for name in names]
        if self.sought is not None and all(self.sought.isdisjoint(ids) for ids in lists):
            return False
        return not (self.biased and all(is_high_bias(self.biased, ids) for ids in lists))


def _list(name: str) -> Column:
    """Return a column with the texts of a list of tokens."""
    return Column(name, "list", lambda row: None if row[name] is None else [token["token"] for token in row[name]])


def file_tables(view: "PromptView") -> list[Table]:
    """Return the tables of files, with a row for each row of the sheet."""
    text = view.tokens
    panel = () if view.panel == "sheet" else (constant("panel", "sheet"),)  # where other panels have rows, too
    heads = (
        *panel, constant("of", "head"), Column("layer"), Column("head"), Column("position"),
        Column("token", "token", lambda row: text[row["position"]]),
        Column("attends_position", get=lambda row: row["attends"]["position"]),
        Column("attends_token", "token", lambda row: text[row["attends"]["position"]]),
        Column("weight", get=lambda row: row["attends"]["weight"]), *map(_list, HEAD_LISTS),
        Column("message"), Column("moved"),
    )  # fmt: skip
    neurons = (
        *panel, constant("of", "neuron"), Column("layer"), Column("neuron"),
        Column("position", get=lambda row: row["peak"]),
        Column("token", "token", lambda row: text[row["peak"]]),
        Column("coefficient", get=lambda row: coefficient(row, None)), Column("coefficients", "list"),
        Column("strength"), Column("adds"), Column("end"), _list("key"), _list("value"),
    )  # fmt: skip
    sheet: Any = view.sheet or {"heads": [], "neurons": []}
    return [Table("", heads, sheet["heads"], "programs"), Table("", neurons, sheet["neurons"], "programs")]


def tables(view: "PromptView") -> list[Table]:
    """Return the tables for people: of heads, of neurons, or of both."""
    if view.sheet is None:
        return []
    text, at = view.tokens, view.shown_rows.at if view.shown_rows else None
    heads = (
        Column("head", "address", lambda row: f"L{row['layer']}H{row['head']}", sort="layer"),
        Column("position", "number", heading="#"),
        Column("token", "token", lambda row: text[row["position"]], css="look"),
        Column("looks_for", "words", heading="looks for", css="many"),
        Column("attends", "token", lambda row: text[row["attends"]["position"]], "attends to", css="look"),
        Column("weight", "ratio", lambda row: row["attends"]["weight"], sort="weight"),
        Column("found_by", "words", heading="is found by", css="many"),
        Column("sends", "words", css="many"),
        Column("message", "number", heading="|message|", format=".1f", sort="message"),
        Column("moved", "number", format=".1f", sort="moved"),
    )
    neurons = (
        Column("neuron", "address", lambda row: f"L{row['layer']}N{row['neuron']}", sort="layer"),
        Column("peak", "token", lambda row: text[row["peak"] if at is None else at], "fires at", css="many"),
        Column("coefficient", "number", lambda row: coefficient(row, at), format=".2f", sort="coefficient"),
        Column("strength", "number", format=".1f", sort="strength"),
        Column("key", "words", heading="reads (key)", css="many"),
        Column("value", "words", heading="writes (value)", css="many"),
        Column("adds", "number", format=".2f", sort="adds"),
    )
    how = f"of a run of {view.model} ({view.convention}, {view.lens})"
    both: tuple[tuple[Rows, tuple[Column, ...], list[Any]], ...] = (
        ("heads", heads, view.sheet["heads"]),
        ("neurons", neurons, view.sheet["neurons"]),
    )
    shown = view.shown_rows and view.shown_rows.of  # a page has one table, which may be empty
    return [Table(f"{of} {how}", columns, rows, "people") for of, columns, rows in both if rows or of == shown]


SHEET = Panel(
    name="sheet", title="Sheet", working="reading every head", file_tables=file_tables, says_nothing_of=(),
    tables=tables, has_lists=True,
)  # fmt: skip
