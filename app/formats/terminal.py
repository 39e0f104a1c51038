"""Prints views as tables for a terminal, with tokens that show what they hold and can do no harm.
What is in a view is for views.py."""

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.seeds import SeedRankingView
from app.views.subhead import SubheadView
from app.views.tokens import ScoredToken, Token, TokenPair
from app.views.vectors import Vector
from precompute.index.index import ModelSummary, ranges
from precompute.plain_text import escaped, plain
from precompute.shape import ENDS, Shape

_ESCAPES = {" ": "␣", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """A token as one can see it: spaces marked, control and format characters escaped, other directions contained."""
    shown = "".join(_ESCAPES.get(character) or _escaped(character) for character in text)
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = "\N{DOTTED CIRCLE}" + shown  # a mark would sit on whatever stands before the token
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in shown):
        shown = f"\N{FIRST STRONG ISOLATE}{shown}\N{POP DIRECTIONAL ISOLATE}"
    return shown or "(no text)"  # an embedding row that no token has


def print_view(console: Console, view: NeuronView | PairsView | SubheadView) -> None:
    match view:
        case NeuronView():
            _print_ff(console, view)
        case PairsView():
            _print_pairs(console, view)
        case SubheadView():
            _print_subhead(console, view)


def print_seeds(console: Console, view: SeedRankingView, shape: Shape) -> None:
    used = ", ".join(
        f"{'' if seed.weight == 1 else f'{seed.weight:+.4g} × '}{visible(seed.word)}: "
        f"{' + '.join(visible(token['token']) for token in seed.tokens)}"
        for seed in view.seeds
    )
    _print_heading(console, f"{view.model}  {view.kind} by seed words", used)
    table = Table("kind", "layer", "index", "score", "top", box=box.SIMPLE_HEAD)
    for result in view.results:
        index = str(result["index"])
        if result["kind"].startswith("w_"):
            index = "head {} subhead {}".format(*shape.head_and_subhead(result["kind"], result["index"]))
        first = "  ".join(visible(token["token"]) for token in result["top"]) or "(layer not built yet)"
        numbers = (result["kind"], str(result["layer"]), index, f"{result['score']:.3f}")
        table.add_row(*map(Text, (*numbers, first)))
    console.print(table)


def _print_ff(console: Console, view: NeuronView) -> None:
    _print_heading(console, f"{view.model}  layer {view.layer}  neuron {view.neuron}", f"lens {view.lens}")
    vectors = {"key: reads": view.key, "value: writes": view.value}
    if view.up:
        vectors = {
            "key (the gate): reads": view.key,
            "up: sets strength and sign": view.up,
            "value: writes": view.value,
        }
    _print_vectors(console, vectors)
    console.print(Text(f"Similarity of key and value: {view.similarity:.3f}"))


def _print_subhead(console: Console, view: SubheadView) -> None:
    heading = f"{view.model}  layer {view.layer}  head {view.head}  subhead {view.subhead}"
    _print_heading(console, heading, f"lens {view.lens}")
    names = {"q: query, reads": view.q, "k: key, reads": view.k, "v: reads": view.v, "o: writes": view.o}
    _print_vectors(console, names)
    if view.note:
        console.print(Text(view.note))


def _print_pairs(console: Console, view: PairsView) -> None:
    heading = f"{view.model}  layer {view.layer}  head {view.head}  {view.matrix}"
    _print_heading(console, heading, f"lens {view.lens}, preset {view.preset}")
    lists = {"top": (view.top, view.coherence[0]), "bottom": (view.bottom, view.coherence[1])}
    tables = [
        _titled(f"{end}: {' -> '.join(view.columns)}", _coherence(coherence), _pairs_table(view.columns, pairs))
        for end, (pairs, coherence) in lists.items()
    ]
    _print_side_by_side(console, tables)
    if view.note:
        console.print(Text(view.note))


def print_models(console: Console, models: Sequence[ModelSummary]) -> None:
    table = _table()
    for heading in ("model", "layers ready", "size"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for model in models:
        ready = f"{len(model.layers)} of {model.n_layers}"
        if 0 < len(model.layers) < model.n_layers:
            ready += f" ({ranges(model.layers)})"
        unusable = not model.n_layers
        table.add_row(Text(model.name), "unusable" if unusable else ready, "" if unusable else size(model.n_bytes))
    console.print(table)
    for model in models:
        for fault in model.faults:
            console.print(Text(plain(f"{model.name}: {fault}"), style="red"), soft_wrap=True)


def size(n_bytes: float) -> str:
    """1234567 -> "1.2 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def _print_heading(console: Console, what: str, how: str) -> None:
    console.print(Text.assemble((what, "bold"), "  ", (how, "dim")))


def _print_vectors(console: Console, vectors: dict[str, Vector]) -> None:
    tables = []
    for title, vector in vectors.items():
        details = [f"norm {vector.norm:.3g}"]
        details += [f"{end} {_coherence(c)}" for end, c in zip(ENDS, vector.coherence, strict=True) if c is not None]
        tables.append(_titled(title, ", ".join(details), _vector_table(vector)))
    _print_side_by_side(console, tables)


def _print_side_by_side(console: Console, tables: Sequence[RenderableType]) -> None:
    """As many in a row as the terminal is wide."""
    console.print(Columns(tables, padding=(0, 3)))


def _titled(title: str, details: str, table: Table) -> Group:
    return Group(Text(), Text(title, style="bold"), Text(details, style="dim"), table)


def _vector_table(vector: Vector) -> Table:
    table = _table()
    _add_columns(table, ("#", "top", "score", "bottom", "score"))
    for rank, (high, low) in enumerate(zip_longest(vector.top, vector.bottom), 1):
        table.add_row(str(rank), *_scored_cells(high), *_scored_cells(low))
    return table


def _pairs_table(columns: tuple[str, str], pairs: Sequence[TokenPair]) -> Table:
    table = _table()
    _add_columns(table, ("#", *columns, "score"))
    for rank, pair in enumerate(pairs, 1):
        table.add_row(str(rank), _token(pair["from"]), _token(pair["to"]), _score(pair["score"]))
    if not pairs:
        table.add_row("", "no pairs", "", "")
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False)


def _add_columns(table: Table, headings: Sequence[str]) -> None:
    for heading in headings:
        number = heading in ("#", "score")
        table.add_column(Text(heading), justify="right" if number else "left", no_wrap=number, overflow="fold")


def _scored_cells(entry: ScoredToken | None) -> tuple[Text, Text]:
    return (_token(entry), _score(entry["score"])) if entry else (Text(), Text())


def _token(token: Token) -> Text:
    return Text(visible(token["token"]), style="cyan")


def _score(score: float) -> Text:
    return Text(f"{score:.3f}")


def _coherence(value: float | None) -> str:
    return "" if value is None else f"coherence {value:.2f}"


def _escaped(character: str) -> str:
    return escaped(character) if unicodedata.category(character)[0] in "CZ" else character
