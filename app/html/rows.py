"""The rows of every table and map: what a page has by the hundred.
Made here because a loop in Python is several times faster than in a template; the tables are in templates/."""

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from app import addresses
from app.html.figures import formats, heat, number, ratio, steps_per
from app.html.markup import around_id, chipper, plain_pairs
from app.views.lists import PairList, ScoredList, TokenView
from app.views.page_types import LayerRow, NeuronRow, SubheadRow


def scored_rows(
    model: str, entries: ScoredList, lens: str, peak: float, marked: Collection[int] = (), anchor: str = ""
) -> Markup:
    """Rank, token, score; a bar as long as the score is of `peak`; `marked` tokens get a dot; a row's id is `anchor`
    and the token's."""
    ids, shown = entries.ids, entries.vocabulary.markup.column(entries.ids)
    own, owned = (f" id={anchor}%d", [ids]) if anchor else ("", [])
    marks = [" class=m" if token in marked else "" for token in ids] if marked else [""] * len(ids)
    ranks = range(1, len(ids) + 1)
    row = f"<tr{own}%s><td>%d<td>{_chip(model, lens)}{_score(peak)}\n"
    return _filled(row, *owned, marks, ranks, ids, shown, *_score_columns(entries.scores, peak))


def pair_rows(
    model: str,
    entries: PairList,
    lens: str,
    peak: float,
    marked: Collection[tuple[int, int]] = (),
    anchor: str = "",
) -> Markup:
    """Rank, from, to, score; `marked` pairs get a dot; with `anchor`, a row's id is this and those of the tokens."""
    sides = entries.sides
    first, second = map(entries.vocabulary.markup.column, sides)
    own, owned = (pair_anchor(f" id={anchor}", "%d", "%d"), sides) if anchor else ("", ())
    marks = [" class=m" if pair in marked else "" for pair in zip(*sides, strict=True)] if marked else [""] * len(first)
    chip, ranks = _chip(model, lens), range(1, len(first) + 1)
    row = f"<tr{own}%s><td>%d<td>{chip}<td>{chip}{_score(peak)}\n"
    return _filled(row, *owned, marks, ranks, sides[0], first, sides[1], second, *_score_columns(entries.scores, peak))


def _filled(row: str, *columns: Sequence[Any]) -> Markup:
    """Rows of one %-format, filled column by column: one large format takes half the time of many small ones."""
    n, width = len(columns[0]), len(columns)
    cells: list[Any] = [None] * (n * width)
    for at, column in enumerate(columns):
        cells[at::width] = column
    return Markup((row * n) % tuple(cells))


def _chip(model: str, lens: str) -> str:
    """A %-format for a token's id and markup."""
    start, end = around_id(model, lens)
    return f"{start.replace('%', '%%')}%d{end.replace('%', '%%')}%s</a>"


def _score(peak: float) -> str:
    """A %-format for a score and its bar."""
    size, _ = formats(peak)
    return f"<td data-bar=%.0f>%s{size}"


def _score_columns(scores: Sequence[float], peak: float) -> tuple[list[float], list[str], list[float]]:
    """What it takes: steps of the bar, sign, size."""
    sizes, steps = list(map(abs, scores)), steps_per(peak)
    return [size * steps for size in sizes], ["−" if score < 0 else "" for score in scores], sizes


def neuron_rows(model: str, layer: int, rows: Iterable[NeuronRow], lens: str) -> Markup:
    """Neuron, key, value, norm, coherence, similarity."""
    made = chipper(model, lens)
    before, after = _around_number(addresses.ff(model, layer, 0, lens=lens))
    lines = [
        f'<tr><th scope=row class=n><a href="{before}{row["neuron"]}{after}">{row["neuron"]}</a>'
        f"<td>{' '.join(map(made, row['key']))}<td>{' '.join(map(made, row['value']))}<td class=n>{row['norm']:.2f}"
        f"<td class=n data-heat={heat(row['coherence'])}>{ratio(row['coherence'])}"
        f"<td class=n>{number(row['similarity'])}"
        for row in rows
    ]
    return Markup("\n".join(lines))


def subhead_rows(model: str, layer: int, head: int, rows: Iterable[SubheadRow], lens: str) -> Markup:
    """Subhead, q, k, v, o."""
    made = chipper(model, lens)
    before, after = _around_number(addresses.subhead(model, layer, head, 0, lens=lens))

    def cells(row: SubheadRow) -> Iterable[tuple[TokenView, ...]]:
        return row["q"], row["k"], row["v"], row["o"]

    lines = [
        f'<tr><th scope=row class=n><a href="{before}{row["subhead"]}{after}">{row["subhead"]}</a>'
        + "".join([f"<td>{' '.join(map(made, tokens))}" for tokens in cells(row)])
        for row in rows
    ]
    return Markup("\n".join(lines))


def map_cells(model: str, row: LayerRow, matrix: str, lens: str, preset: str, hottest: float) -> Markup:
    """A layer's heads: colour and number say the coherence, the title the best pair."""
    start, end = addresses.pairs(model, row.layer, 0, "", lens=lens, preset=preset).split(f"/head/{row.layer}/0/")
    cells = [
        f'<td><a href="{start}/head/{row.layer}/{cell["head"]}/{matrix}{escape(end)}"'
        f' data-heat={heat(cell["coherence"], hottest)} title="L{row.layer}H{cell["head"]}'
        f'{": " + escape(plain_pairs([cell["first"]])) if cell["first"] else ""}">{ratio(cell["coherence"])}</a>'
        for cell in (row.vo if matrix == "vo" else row.qk)
    ]
    return Markup("".join(cells))


def pair_anchor(before: str, first: int | str, second: int | str) -> str:
    return f"{before}{first}-{second}"


def _around_number(address: str) -> tuple[str, str]:
    """An address that ends in the number 0, before and after that number."""
    path, mark, query = address.partition("?")
    return path.removesuffix("0"), escape(mark + query)


FUNCTIONS: dict[str, Any] = {
    made.__name__: made for made in (scored_rows, pair_rows, neuron_rows, subhead_rows, map_cells)
}
