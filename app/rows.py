"""The rows of every table and map: what a page has by the hundred.
Made here because a loop in Python is several times faster than in a template; the tables are in templates/."""

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from app import addresses
from app.figures import formats, heat, number, ratio, steps_per
from app.markup import SHOWN, around_id, chipper, plain_pairs
from app.page_types import LayerRow, NeuronRow, SubheadRow
from app.view_types import PairView, ScoredView, TokenView


def scored_rows(
    model: str, entries: Sequence[ScoredView], lens: str, peak: float, marked: Collection[int] = (), anchor: str = ""
) -> Markup:
    """Rank, token, score; a bar as long as the score is of `peak`; `marked` tokens get a dot; a row's id is `anchor`
    and the token's."""
    start, end = around_id(model, lens)
    steps, texts = steps_per(peak), SHOWN
    plus, minus = formats(peak)
    own = f" id={anchor}%d" if anchor else "%.0s"
    rows = [
        f"<tr{own % (token := entry['id'])}{' class=m' if token in marked else ''}><td>{rank}"
        f"<td>{start}{token}{end}{texts[entry['token']]}</a>"
        f"<td data-bar={abs(score := entry['score']) * steps:.0f}>{plus % score if score >= 0 else minus % -score}"
        for rank, entry in enumerate(entries, 1)
    ]
    return Markup("\n".join(rows))


def pair_rows(model: str, entries: Sequence[PairView], lens: str, peak: float, anchor: str = "") -> Markup:
    """Rank, from, to, score; with `anchor`, a row's id is this and those of the tokens."""
    made, steps = chipper(model, lens), steps_per(peak)
    plus, minus = formats(peak)
    rows = [
        f"<tr{pair_anchor(' id=' + anchor, entry['from']['id'], entry['to']['id']) if anchor else ''}>"
        f"<td>{rank}<td>{made(entry['from'])}<td>{made(entry['to'])}"
        f"<td data-bar={abs(score := entry['score']) * steps:.0f}>{plus % score if score >= 0 else minus % -score}"
        for rank, entry in enumerate(entries, 1)
    ]
    return Markup("\n".join(rows))


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


def pair_anchor(before: str, first: int, second: int) -> str:
    return f"{before}{first}-{second}"


def _around_number(address: str) -> tuple[str, str]:
    """An address that ends in the number 0, before and after that number."""
    path, mark, query = address.partition("?")
    return path.removesuffix("0"), escape(mark + query)


FUNCTIONS: dict[str, Any] = {
    made.__name__: made for made in (scored_rows, pair_rows, neuron_rows, subhead_rows, map_cells)
}
