"""Compute the geometry of the plots: paths, points and labels as numbers and text. The SVG around them is in
templates/."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lexiscope.app.html.line_chart import Colour, Level, Line, LineChart, Mark
from lexiscope.app.html.numbers import HEAT_STEPS, number, percent, ratio
from lexiscope.app.lists.view import Token, visible
from lexiscope.precompute.index.layer.lists import HeadPositions
from lexiscope.precompute.live.wire.answers import CoverageRow, DistanceScore, LayerTerms, Update
from lexiscope.precompute.shape import DIRECTION_KINDS

WINDOW = 24  # how many positions of a text are shown beside each other
LABEL_CHARACTERS = 11  # most characters of a label
SMALL_MAP_LABELS, SMALL_MAP_CHARACTERS = 14, 7  # most labels of an axis of a small map, and most characters of each
LONGEST_AXIS_NAME = 24  # most characters of a model's name on an axis


def histogram_path(counts: Sequence[int], width: int, height: int) -> str:
    """Return the SVG path of a histogram whose bars are as high as the square root of the counts, so that small counts
    remain visible."""
    most = max(counts, default=0) ** 0.5 or 1.0
    step = width / max(1, len(counts))
    heights = [max(1.0, height * count**0.5 / most) if count else 0.0 for count in counts]
    return "".join(
        f"M{i * step:.4g} {height}v{-bar:.3g}h{step - 1:.3g}v{bar:.3g}z" for i, bar in enumerate(heights) if bar
    )


def attention_squares(weights: Sequence[Sequence[float]]) -> list[tuple[int, str]]:
    """Return the SVG paths of a head's attention weights as unit squares: one path for each strength of colour, which
    grows with the square root of the weight."""
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(weights):
        for x, weight in enumerate(row):
            if step := round(HEAT_STEPS * weight**0.5):
                paths.setdefault(min(step, HEAT_STEPS), []).append(f"M{x} {y}h1v1h-1z")
    return [(step, "".join(squares)) for step, squares in sorted(paths.items())]


def axis_labels(tokens: Sequence[Token], large: bool = True) -> list[tuple[int, str]]:
    """Return labels of an axis of positions: each position with its shortened token or, if there are too many, every
    few positions with their numbers."""
    most, characters = (WINDOW, LABEL_CHARACTERS) if large else (SMALL_MAP_LABELS, SMALL_MAP_CHARACTERS)
    step = 1 if len(tokens) <= most else -(-len(tokens) // (most if large else most // 2))
    texts = [(at, visible(tokens[at]["token"]) if step == 1 else str(at)) for at in range(0, len(tokens), step)]
    return [(at, _cut(text, characters)) for at, text in texts]


def coverage_charts(by_kind: Iterable[tuple[str, Sequence[CoverageRow]]]) -> list[LineChart]:
    return [_coverage_chart(kind, rows) for kind, rows in by_kind]


def _coverage_chart(kind: str, rows: Sequence[CoverageRow]) -> LineChart:
    """Chart by layer what share of the first tokens of the model's state are among those of the active vectors, beside
    the mean share at other positions with a band of one standard deviation."""
    shuffled = [row["shuffled"] for row in rows]
    lines = [Line("this position", "here", [row["covered"] for row in rows], "first")]
    if any(share is not None for share in shuffled):
        low, high = (_edge(rows, sign) if rows[0]["shuffled_sd"] is not None else None for sign in (-1, 1))
        name = "shuffled, within one standard deviation" if low else "shuffled"
        lines.append(Line(name, "shuffled", shuffled, "plain", "none", dashed=True, low=low, high=high))
    return LineChart(kind, "layer", [row["layer"] for row in rows], lines, percent, top=1.0)


def _edge(rows: Sequence[CoverageRow], sign: int) -> list[float]:
    """Return by layer the mean share at other positions, plus or minus its standard deviation, kept between 0 and 1."""
    shares = [(row["shuffled"] or 0.0) + sign * (row["shuffled_sd"] or 0.0) for row in rows]
    return [min(1.0, max(0.0, share)) for share in shares]


def update_charts(rows: Sequence[Update], n_tokens: int) -> list[LineChart]:
    """Chart by layer how long what attention and FF added is, as a share of the stream, and at how many positions the
    prediction changed. A share far above most others, as layer 0 often has, is named instead of drawn."""
    steps = [row for row in rows if row["of"] != "head"]
    bound = OFF_SCALE * sorted(row["share"] for row in steps)[round(0.9 * (len(steps) - 1))]
    off = [
        f"L{row['layer']} {row['of'].replace('ff', 'FF')} {row['share']:.1f}" for row in steps if row["share"] > bound
    ]

    def lines(value: Callable[[Update], float | None]) -> list[Line]:
        values = {part: [value(row) for row in steps if row["of"] == part] for part in ("attention", "ff")}
        return [
            Line("attention", "attention", values["attention"], "first"),
            Line("FF", "FF", values["ff"], "second", "square"),
        ]

    layers = range(len(steps) // 2)
    title = "|update| / |stream|" + (f"; off the scale: {', '.join(off) if len(off) < 3 else len(off)}" if off else "")
    return [
        LineChart(title, "layer", layers, lines(lambda row: row["share"] if row["share"] <= bound else None), ratio),
        LineChart(
            f"Predictions changed, of {n_tokens}", "layer", layers, lines(lambda row: row["changed"]), "{:.0f}".format
        ),
    ]


def distance_charts(rows: Sequence[DistanceScore]) -> list[LineChart]:
    """Chart by distance what one head's mean query and mean key score, and where it looks by that and in the run."""
    along = [row["distance"] for row in rows]
    alone = Line("by distance alone", "alone", [row["alone"] for row in rows], "first")
    in_run = Line("in this run", "this run", [row["attention"] for row in rows], "second", "square", dashed=True)
    scores = LineChart("Score", "distance", along, [Line("score", "", [row["score"] for row in rows], "plain")], number)
    return [scores, LineChart("Attention", "distance", along, [alone, in_run], percent)]


def stitching_charts(runs: Sequence[Mapping[str, Any]], a: str, b: str) -> list[LineChart]:
    return [_stitching_chart(run, a, b) for run in runs]


def _stitching_chart(run: Mapping[str, Any], a: str, b: str) -> LineChart:
    """Chart the accuracy of B's last layers on A's states, by the layer of A after which each state was taken. `run`
    has the fields of a StitchingRun."""
    lines = [Line("stitched", "stitched", _accuracies(run), "first")]
    if run["identity"]:
        lines.append(
            Line("without the kernel", "no kernel", _accuracies(run["identity"]), "second", "square", dashed=True)
        )
    levels = [Level("by itself", run["own"]["accuracy"], solid=True), Level("chance", run["chance"]["accuracy"])]
    along = range(-1, len(run["by_layer"]))
    title = f"Accuracy, the last {run['last']} of {_cut(b, LONGEST_AXIS_NAME)}"
    return LineChart(title, f"layer of {_cut(a, LONGEST_AXIS_NAME)}", along, lines, percent, levels, {-1: "emb."})


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _accuracies(curve: Mapping[str, Any]) -> list[float]:
    return [curve["embedding"]["accuracy"], *(row["accuracy"] for row in curve["by_layer"])]


# The colours of the lines of a chart of shares, with their marks.
_LOOKS: Mapping[Colour, Mark] = {"first": "circle", "second": "square", "third": "triangle", "plain": "none"}
OFF_SCALE = 3  # a share so many times that of nine tenths of all is not drawn
CHANCE_SHARE = 0.01  # so many random vectors have a z above the line of chance


def worth_charts(rows: Sequence[Any]) -> list[LineChart]:
    """Chart by layer the share of vectors above chance, by kinds, and that of neurons by what they do with what they
    read. `rows` have the fields of a LayerRow."""
    charts, chance = list[LineChart](), [Level("chance", CHANCE_SHARE)]
    for title, field, names, levels in (
        ("Neurons above chance", "above", ("ff_key", "ff_up", "ff_value"), chance),
        ("Subheads above chance", "above", ("w_q", "w_k", "w_v", "w_o"), chance),
        ("Directions above chance", "above", DIRECTION_KINDS, chance),
        ("Neurons by class", "classes", ("strengthening", "weakening", "proportional"), []),
    ):
        shown = sorted((row.layer, getattr(row, field)) for row in rows if getattr(row, field))
        lines = []
        for name, (colour, mark) in zip(names, _LOOKS.items(), strict=False):
            ys = [_sum_of(shares, name) for _, shares in shown]
            if any(y is not None for y in ys):
                lines.append(Line(name, name.removesuffix("ing"), ys, colour, mark, dashed=mark == "none"))
        if lines:
            charts.append(LineChart(title, "layer", [layer for layer, _ in shown], lines, percent, levels))
    return charts


def _sum_of(shares: Mapping[str, float], name: str) -> float | None:
    """Return the share of a kind, or of a class together with its conditional variant."""
    found = [share for of, share in shares.items() if of.removeprefix("conditional ") == name]
    return sum(found) if found else None


def positions_chart(positions: HeadPositions) -> LineChart:
    """Chart a head's attention by distance, beside what each would have if all had the same."""
    along, shares = positions["distances"], positions["by_distance"]
    line = Line("attention", "attention", shares, "first", "none")
    return LineChart(
        "Attention, content left out", "positions back", along, [line], percent, [Level("even", 1 / len(along))]
    )


def standard_error(share: float, count: int) -> float:
    """Return the standard error of the share of right predictions among `count`."""
    return math.sqrt(share * (1 - share) / count)


def shown_positions(n_tokens: int, chosen: int | None) -> range:
    """Return the positions of a text that a table has room for: all of them, or those around the chosen one."""
    if n_tokens <= WINDOW:
        return range(n_tokens)
    start = min(max(0, (chosen or 0) - WINDOW // 2), n_tokens - WINDOW)
    return range(start, start + WINDOW)


def most_attended(weights: Sequence[float], n: int) -> list[tuple[int, float]]:
    """Return the n positions with the largest attention weights, each with its weight."""
    return sorted(enumerate(weights), key=lambda entry: (-entry[1], entry[0]))[:n]


def most_active(coefficients: Sequence[float], n: int = 8) -> list[tuple[int, float]]:
    """Return the n positions with the largest coefficients, whatever their sign, in the order of the text."""
    return sorted(sorted(enumerate(coefficients), key=lambda entry: -abs(entry[1]))[:n])


def term_scale(layers: Sequence[LayerTerms]) -> tuple[float, float]:
    """Return the lowest and the highest bar of a chart that shows by layer what attention and FF add to a number. The
    range includes 0."""
    terms = [term for row in layers for term in (row["attention"], row["ff"])]
    return min(0.0, *terms), max(0.0, *terms) or 1e-9


def term_bars(layers: Sequence[LayerTerms], part: str, width: float, height: float) -> str:
    """Return the SVG path of bars up or down from the line of 0. The bar of attention is in the left half of a layer's
    space, that of FF in the right half."""
    low, high = term_scale(layers)
    step, unit = width / len(layers), height / (high - low)
    start = 0.1 if part == "attention" else 0.5
    bars = [(row["layer"], row[part]) for row in layers]  # type: ignore[literal-required]
    return "".join(
        f"M{(layer + start) * step:.2f} {high * unit:.2f}v{-term * unit:.2f}h{0.4 * step:.2f}V{high * unit:.2f}z"
        for layer, term in bars
    )
