"""What a prompt's page has by the hundred: tokens to choose from, cells of the evolution, maps of attention, neurons.
The tables around them are in templates/."""

from collections.abc import Sequence
from html import escape
from statistics import fmean
from typing import Any

from markupsafe import Markup

from app import addresses
from app.html.figures import HEAT_STEPS, heat, number, steps_per
from app.html.markup import SHOWN, chipper
from app.views.live_types import (
    ActiveView,
    AttentionView,
    ChangeView,
    CoverageView,
    EvolutionView,
    LikelyView,
    PromptView,
)
from app.views.terms import off_name
from app.views.token_text import shown
from app.views.view_types import TokenView
from app.wire import HeadOff, NeuronSet

WINDOW = 24  # positions beside each other
LARGE, MARGIN = 400, 84  # pixels of a large map, and of the room for its labels
LABEL = 11  # characters of one


def percent(p: float) -> str:
    """A probability in little room."""
    if p >= 0.9995:
        return "100%"
    if p >= 0.0995:
        return f"{p:.0%}"
    return f"{p:.1%}" if p >= 0.0005 else "<0.1%"


def window(view: PromptView) -> range:
    """The positions that a table has room for: all, or those around the chosen one."""
    total, at = len(view.tokens), view.position or 0
    if total <= WINDOW:
        return range(total)
    start = min(max(0, at - WINDOW // 2), total - WINDOW)
    return range(start, start + WINDOW)


def evolution_cells(model: str, row: EvolutionView, positions: range, chosen: int, final: EvolutionView) -> Markup:
    """After a step, the likeliest token at each position; marked where it is the one the run ends up with."""
    made = chipper(model, "dot")
    cells = []
    for at in positions:
        first, *rest = row["cells"][at]
        more = ", ".join(f"{shown(entry['token'])} {percent(entry['p'])}" for entry in rest)
        same = " same" if first["id"] == final["cells"][at][0]["id"] else ""
        here = " here" if at == chosen else ""
        cells.append(
            f'<td class="e{same}{here}" data-heat={heat(first["p"])} title="then {escape(more)}">'
            f"{made(first)}<span class=num>{percent(first['p'])}</span>"
        )
    return Markup("".join(cells))


def likely(model: str, entries: Sequence[LikelyView]) -> Markup:
    """Tokens with their probabilities, in a line."""
    made = chipper(model, "dot")
    return Markup(" ".join(f"{made(entry)} <span class=num>{percent(entry['p'])}</span>" for entry in entries))


def likely_rows(model: str, entries: Sequence[LikelyView]) -> Markup:
    """Rank, token, probability."""
    made, steps = chipper(model, "dot"), steps_per(max((entry["p"] for entry in entries), default=0.0))
    rows = [
        f"<tr><td>{rank}<td>{made(entry)}<td data-bar={entry['p'] * steps:.0f}>{percent(entry['p'])}"
        for rank, entry in enumerate(entries, 1)
    ]
    return Markup("\n".join(rows))


def attention_paths(weights: Sequence[Sequence[float]]) -> Markup:
    """A head's weights as squares, row by row: one path for each step of heat, by the square root of the weight."""
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(weights):
        for x, weight in enumerate(row):
            if step := round(HEAT_STEPS * weight**0.5):
                paths.setdefault(min(step, HEAT_STEPS), []).append(f"M{x} {y}h1v1h-1z")
    return Markup("".join(f'<path data-heat="{step}" d="{"".join(d)}"/>' for step, d in sorted(paths.items())))


def labelled_box(size: int) -> Markup:
    """The attributes of a large map with room for labels before its rows and columns."""
    room, all_of = MARGIN * size / LARGE, LARGE + MARGIN
    box = f"{-room:g} {-room:g} {size + room:g} {size + room:g}"
    return Markup(f'width="{all_of}" height="{all_of}" viewBox="{box}"')


def axis_labels(tokens: Sequence[TokenView]) -> Markup:
    """The tokens beside the rows and above the columns; where they are too many, the number of every few."""
    size, pixel = len(tokens), len(tokens) / LARGE
    step = -(-size // WINDOW)
    made = []
    for at in range(0, size, step):
        text = shown(tokens[at]["token"]) if step == 1 else str(at)
        said = escape(text if len(text) <= LABEL else text[: LABEL - 1] + "…")
        middle, gap = at + 0.5, -4 * pixel
        made.append(f'<text x="{gap:g}" y="{middle:g}" text-anchor="end">{said}</text>')
        made.append(f'<text x="{-gap:g}" y="0" transform="translate({middle:g} 0) rotate(-90)">{said}</text>')
    return Markup(f'<g class="labels" font-size="{11 * pixel:g}">{"".join(made)}</g>')


def attended(each: AttentionView, position: int, n: int = 3) -> list[tuple[int, float]]:
    """The positions to which this one attends most."""
    row = each["weights"][position]
    return sorted(enumerate(row), key=lambda pair: (-pair[1], pair[0]))[:n]


def chosen_first(heads: Sequence[Any], layer: int, chosen: int | None) -> list[Any]:
    """The heads of a layer, that which was asked about before the others."""
    here = [each for each in heads if each.get("layer", layer) == layer]
    return sorted(here, key=lambda each: (each["head"] != chosen, each["head"]))


def neuron_run_rows(view: PromptView, neurons: Sequence[ActiveView], links: Sequence[str]) -> Markup:
    """Where, on or off, coefficient, strength, key, value; `links` switch each off."""
    made = chipper(view.model, "dot")
    steps = steps_per(max((each["strength"] for each in neurons), default=0.0))

    def tokens(entries: Sequence[Any], end: str = "top") -> str:
        listed = " ".join(map(made, entries)) if entries else "<span class=none>layer not built yet</span>"
        return f"<small>bottom</small> {listed}" if end == "bottom" and entries else listed

    only = " <small class=only>first token only</small>"
    rows = [
        f'<tr><th scope=row><a href="{addresses.ff(view.model, each["layer"], each["neuron"])}">'
        f"L{each['layer']}N{each['neuron']}</a>{only if each['first_only'] else ''}"
        f'<td><a href="{escape(link)}" class=off title="Run again without this neuron">off</a>'
        f"<td class=n>{number(each['coefficient'])}<td class=n data-bar={each['strength'] * steps:.0f}>"
        f"{each['strength']:.2f}<td class=many>{tokens(each['key'])}<td class=many>{tokens(each['value'], each['end'])}"
        for each, link in zip(neurons, links, strict=True)
    ]
    return Markup("\n".join(rows))


def change_name(change: ChangeView) -> str:
    """As `off` and `set` name it."""
    layer, neuron, head = change["layer"], change["neuron"], change["head"]
    return off_name(HeadOff(layer=layer, head=head) if head is not None else NeuronSet(layer=layer, neuron=neuron or 0))


def without(said: str, name: str) -> str:
    """What `set` says, less what it says about one neuron."""
    return ",".join(part for part in said.split(",") if part.partition(":")[0] != name)


def token_bare(token: TokenView) -> Markup:
    """The token's text inside of an element that is there already."""
    return Markup(SHOWN[token["token"]])


def coverage_line(rows: Sequence[CoverageView], part: str, width: int, height: int) -> Markup:
    """A line through the layers, as the points of an SVG of that size."""
    step = width / max(1, len(rows) - 1)
    points = [f"{i * step:.1f},{height * (1 - row[part]):.1f}" for i, row in enumerate(rows)]  # type: ignore[literal-required]
    return Markup(" ".join(points))


def coverage_means(rows: Sequence[CoverageView]) -> tuple[float, float | None]:
    """Over the layers: covered, and shuffled if there is such."""
    others = [row["shuffled"] for row in rows if row["shuffled"] is not None]
    return fmean(row["covered"] for row in rows), fmean(others) if others else None


FUNCTIONS: dict[str, Any] = {
    made.__name__: made
    for made in (
        percent, window, evolution_cells, likely, likely_rows, attention_paths, labelled_box, axis_labels,
        attended, chosen_first,
        neuron_run_rows, change_name,
        coverage_line, coverage_means, without, token_bare,
    )
}  # fmt: skip
