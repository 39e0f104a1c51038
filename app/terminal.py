"""Print the data of pages as tables in a terminal. Tokens are written so that control characters in them can do no
harm."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from lexiscope.app.formats.pair_tables import pair_columns
from lexiscope.app.formats.table import TOKEN_COLUMNS, Column, Row, Table, beside, ranked, token_texts
from lexiscope.app.library.comparisons import ComparisonCard
from lexiscope.app.lists.difference import size_text
from lexiscope.app.lists.similarity import Shuffled
from lexiscope.app.lists.vectors import Vector
from lexiscope.app.lists.view import Token, View, ViewOfModel, visible
from lexiscope.app.pages.layer import LayerView
from lexiscope.app.pages.pairs import PairsView
from lexiscope.app.pages.parameter import DirectionView, NeuronView, ParameterView, SubheadView
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.precompute.index.data_folder import ModelSummary
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.plain_text import file_size, plain
from lexiscope.precompute.shape import ENDS

SEED_COLUMNS = ("where", "kind", "fit", "score", "cosine", "tokens")  # a terminal is narrow
WIDE = 120  # characters that a layer's table takes with all its columns
NOT_IN_NARROW = ("norm", "similarity_bottom", "class")  # columns of a layer's table


def isolated(text: str) -> str:
    """Return a token with visible spaces, marked so that a token written from right to left does not turn the text
    around it."""
    shown = visible(text)
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in shown):
        return f"\N{FIRST STRONG ISOLATE}{shown}\N{POP DIRECTIONAL ISOLATE}"
    return shown


def print_view(console: Console, view: View, rows: int | None = None) -> None:
    """Print the data of a page. `rows` limits the rows of each table, for pages with long tables, such as a head's."""
    match view:
        case ParameterView():
            _print_parameter(console, view)
        case PairsView():
            _print_pairs(console, view)
        case SeedsView():
            _print_seeds(console, view)
        case _:
            if isinstance(view, ViewOfModel):
                _print_difference(console, view)
            shown = [table for table in view.tables() if table.audience != "programs"]
            if isinstance(view, LayerView) and console.width < WIDE:
                shown = [
                    replace(
                        table, columns=tuple(column for column in table.columns if column.name not in NOT_IN_NARROW)
                    )
                    for table in shown
                ]
            print_tables(console, [replace(table, rows=islice(table.rows, rows)) for table in shown])


def print_tables(console: Console, tables: Iterable[Table], notes: Iterable[str] = ()) -> None:
    """Print tables, and notes below them."""
    for table in tables:
        console.print(Text(), Text(plain(table.title), style="bold"), _table(table.columns_for("people"), table.rows))
    for note in notes:
        console.print(Text(plain(note)))


def _print_seeds(console: Console, view: SeedsView) -> None:
    """Print the vectors about seed words, and what was taken as these words."""

    def term(word: str, weight: float, tokens: Iterable[Token]) -> str:
        times = "" if weight == 1 else f"{weight:+.4g} × "
        return f"{times}{isolated(word)}: {' + '.join(isolated(token['token']) for token in tokens)}"

    used = ", ".join(term(seed["word"], seed["weight"], seed["tokens"]) for seed in view.seeds)
    _print_heading(console, f"{view.model}  {view.kind} by seed words, lens {view.lens}", used)
    columns = {column.name: column for column in view.tables()[0].columns_for("people")}
    console.print(_table([columns[name] for name in SEED_COLUMNS], view.ranked))
    if view.chance is not None:
        console.print(Text(view.said_of_chance))
    if computed := sorted({result["layer"] for result in view.results if result["computed"]}):
        layers = f"{'layers' if len(computed) > 1 else 'layer'} {', '.join(map(str, computed))}"
        console.print(Text(f"Tokens of {layers} are computed now: the index does not have {layers} yet."))


def _print_parameter(console: Console, view: ParameterView) -> None:
    place = "  ".join(f"{name} {number}" for name, number in view.place.items())
    _print_heading(console, f"{view.model}  {place}", f"lens {view.lens}")
    _print_difference(console, view)
    match view:
        case NeuronView():
            titles = {"key": "key: reads", "value": "value: writes"}
            if view.up:
                gated = {"key": "key (the gate): reads", "up": "up: sets strength and sign"}
                titles = {**gated, "value": "value: writes"}
            _print_vectors(console, {title: view.vectors[name] for name, title in titles.items()})
            if view.similarity is not None:
                found = view.similarity, view.similarity_bottom
                _print_similarity(console, "the key's top and the value", *found, view.shuffled)
        case SubheadView():
            names = {"q: query, reads": view.q, "k: key, reads": view.k, "v: reads": view.v, "o: writes": view.o}
            _print_vectors(console, names)
            for what, of in (("v's top and o", view.similarity["vo"]), ("q's top and k", view.similarity["qk"])):
                if of:
                    _print_similarity(console, what, of.top, of.bottom, of.shuffled)
            if view.note:
                console.print(Text(view.note))
        case DirectionView():
            _print_sides(console, view)


def _print_similarity(console: Console, what: str, top: float, bottom: float | None, shuffled: Shuffled | None) -> None:
    by_chance = f"{shuffled['similarity']:.3f} and {shuffled['similarity_bottom']:.3f}" if shuffled else ""
    numbers = f"{top:.3f} with its top, {bottom:.3f} with its bottom{by_chance and f' (shuffled: {by_chance})'}"
    console.print(Text(f"Similarity of {what}: {numbers}"))


def _print_sides(console: Console, view: DirectionView) -> None:
    """Print both sides of a singular direction, in each of the head's two matrices."""
    for matrix, of, names in (
        ("VO", view.vo, {"in": "in: reads", "out": "out: writes"}),
        ("QK", view.qk, {"query": "query: reads", "key": "key: reads"}),
    ):
        if of:
            share = "" if of["share"] is None else f", {of['share']:.1%} of the matrix"
            console.print(Text(f"{matrix}: singular value {of['singular']:.4g}{share}", style="bold"))
            _print_vectors(console, {title: view.vectors[name] for name, title in names.items()}, of_length_one=True)
    console.print(Text(f"The sign of a direction is a convention: both sides may be turned round. {view.note}".strip()))


def _print_pairs(console: Console, view: PairsView) -> None:
    heading = f"{view.model}  layer {view.layer}  head {view.head}  {view.matrix}"
    _print_heading(console, heading, f"lens {view.lens}, preset {view.preset}")
    _print_difference(console, view)
    if view.norm is not None:
        console.print(Text(size_text(view.norm, view.change), style="dim"))
    lists = {"top": (view.top, view.coherence[0]), "bottom": (view.bottom, view.coherence[1])}
    tables = [
        _titled(f"{end}: {' -> '.join(view.columns)}", _coherence(coherence), _pairs_table(view.matrix, pairs))
        for end, (pairs, coherence) in lists.items()
    ]
    _print_side_by_side(console, tables)
    if view.note:
        console.print(Text(view.note))


def print_models(console: Console, models: Sequence[ModelSummary]) -> None:
    rows: list[list[str | Text]] = []
    for model in models:
        ready = f"{len(model.layers)} of {model.n_layers}"
        if 0 < len(model.layers) < model.n_layers:
            ready += f" ({ranges(model.layers)})"
        difference = (plain(f"  {model.difference}"), "dim") if model.difference else ""
        name = Text.assemble(model.name, difference)
        rows.append([name, ready, file_size(model.n_bytes)] if model.n_layers else [name, "unusable", ""])
    errors = [f"{model.name}: {error}" for model in models for error in model.errors]
    _print_summary(console, ("model", "layers ready", "size"), "size", rows, errors)


def print_comparisons(console: Console, cards: Sequence[ComparisonCard]) -> None:
    rows: list[list[str | Text]] = [
        [Text(card.a), Text(card.b), "unusable" if card.fault else f"{card.tokens:,}", ", ".join(card.kinds)]
        for card in cards
    ]
    errors = [f"{card.a} with {card.b}: {card.fault}" for card in cards if card.fault]
    _print_summary(console, ("compared", "with", "common tokens", "kinds"), "common tokens", rows, errors)


def _print_summary(
    console: Console, headings: Sequence[str], number: str, rows: Sequence[Sequence[str | Text]], errors: Sequence[str]
) -> None:
    """Print a table in which the column `number` is aligned as numbers, and below it the errors."""
    table = _blank_table()
    for heading in headings:
        table.add_column(heading, justify="right" if heading == number else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for error in errors:
        console.print(Text(plain(error), style="red"), soft_wrap=True)


def _print_heading(console: Console, what: str, how: str) -> None:
    console.print(Text.assemble((what, "bold"), "  ", (how, "dim")))


def _print_difference(console: Console, view: ViewOfModel) -> None:
    if view.minus:
        console.print(Text(plain(f"difference: {view.minus}"), style="dim"))


def _print_vectors(console: Console, vectors: dict[str, Vector | None], of_length_one: bool = False) -> None:
    tables = []
    for title, vector in vectors.items():
        if vector is None:
            tables.append(Group(Text(), Text(title, style="bold"), Text("not stored in this index", style="dim")))
            continue
        details = [f"norm {vector.norm:.3g}" if vector.base_norm is None else size_text(vector.norm, vector.change)]
        if of_length_one:
            details = [] if vector.norm else ["no direction"]
        details += [f"{end} {_coherence(c)}" for end, c in zip(ENDS, vector.coherence, strict=True) if c is not None]
        tables.append(_titled(title, ", ".join(details), _table(*beside(TOKEN_COLUMNS, vector.top, vector.bottom))))
    _print_side_by_side(console, tables)


def _print_side_by_side(console: Console, tables: Sequence[RenderableType]) -> None:
    """Print the tables, as many beside each other as fit the width of the terminal."""
    console.print(Columns(tables, padding=(0, 3)))


def _titled(title: str, details: str, table: RichTable) -> Group:
    return Group(Text(), Text(title, style="bold"), Text(details, style="dim"), table)


def _pairs_table(matrix: str, pairs: Sequence[Row]) -> RichTable:
    table = _table(pair_columns(matrix), ranked(pairs))
    if not pairs:
        table.add_row("", "no pairs", "", "")
    return table


def _table(columns: Sequence[Column], rows: Iterable[Row]) -> RichTable:
    table, rows = _blank_table(), list(rows)
    for column in columns:
        number = column.kind in ("number", "ratio", "rank", "score", "change")
        if column.kind == "address":
            number = all(isinstance(column.value(row), int) for row in rows)
        table.add_column(
            Text(plain(column.title)), justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(_text(column, row), "cyan" if column.kind == "token" else "") for column in columns))
    return table


def _blank_table() -> RichTable:
    return RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def _text(column: Column, row: Row) -> str:
    value = column.value(row)
    if value is None:
        return ""
    if not column.holds_tokens:
        return f"{value:.3f}" if isinstance(value, float) else plain(str(value))
    return "  ".join(" → ".join(map(isolated, group)) for group in token_texts(column, value))


def _coherence(value: float | None) -> str:
    return "" if value is None else f"coherence {value:.2f}"
