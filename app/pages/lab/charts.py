"""Draw the charts of the paper's measurements. A colour stands for a lens (dot or cosine) or for a way to invert the
embedding; dashed lines show what chance gives, or another way to draw samples."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Literal

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.html.line_chart import Colour, Level, Line, LineChart, Mark
from lexiscope.app.html.numbers import percent, thousands
from lexiscope.precompute.index.lab_record import CoveragePart, InversePart, KeepK, SimilarityPart
from lexiscope.precompute.paper.lists import printed_number

LENSES: dict[str, tuple[Colour, Mark]] = {"dot": ("first", "circle"), "cosine": ("second", "square")}
COMPARED_NAMES: dict[str, str] = {"ff": "FF keys and values", "vo": "w_v and w_o", "qk": "w_q and w_k"}
SAMPLE_NAMES: dict[str, str] = {"normal": "normal vectors", "ff_value": "FF values", "hidden": "hidden states"}
COVERING: dict[str, str] = {"ff_key": "FF keys", "ff_value": "FF values", "w_v": "w_v", "w_o": "w_o"}
Target = Literal["own", "last"]
TARGETS: tuple[Target, ...] = ("own", "last")


def ratio(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def measured(part: SimilarityPart | CoveragePart, kinds: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield the lens, the kind of vectors and the measured numbers, one lens after the other."""
    for lens, kind in product(LENSES, kinds):
        if of := getattr(part.of_lens(lens), kind, None):
            yield lens, kind, of


def samples(inverse: InversePart) -> Iterator[tuple[str, KeepK]]:
    for sample in SAMPLE_NAMES:
        if scores := getattr(inverse, sample):
            yield sample, scores


def similarity_charts(similarity: SimilarityPart) -> list[LineChart]:
    """Draw charts by layer of the similarity of each two kinds of vectors, and of how many neurons have lists with at
    least 15% of their tokens in common."""
    charts = []
    for compared, name in COMPARED_NAMES.items():
        lines = []
        for lens, _, of in measured(similarity, [compared]):
            colour, mark = LENSES[lens]
            lines.append(Line(lens, lens, of.matched, colour, mark))
            chance = f"{lens}, shuffled (smallest to largest of {similarity.shuffles})"
            band = {"low": of.shuffled_low, "high": of.shuffled_high}
            lines.append(Line(chance, "shuffled", of.shuffled, colour, "none", dashed=True, **band))
        if lines:
            charts.append(
                LineChart(f"Mean Sim_{similarity.k}, {name}", "layer", range(len(lines[0].values)), lines, percent)
            )
    lines = []
    for lens, _, of in measured(similarity, ["ff"]):
        colour, mark = LENSES[lens]
        lines.append(Line(lens, lens, of.common_15, colour, mark))
        lines.append(
            Line(f"{lens}, shuffled (mean alone)", "shuffled", of.shuffled_common_15, colour, "none", dashed=True)
        )
    if lines:
        levels = [Level("the paper", printed_number("ff_overlap_share_of_pairs").value)]
        title = f"Neurons with 15% of the {similarity.k} in common"
        charts.append(LineChart(title, "layer", range(len(lines[0].values)), lines, percent, levels))
    return charts


def inverse_charts(inverse: InversePart) -> list[LineChart]:
    """Draw a chart for each kind of random samples; that of normally distributed vectors has the paper's two
    figures."""
    charts = []
    for sample, of in samples(inverse):
        lines = [
            Line("the transpose Eᵀ", "Eᵀ", of.transpose, "first"),
            Line("the pseudo-inverse E⁺", "E⁺", of.pseudo, "second", "square"),
        ]
        same: tuple[tuple[str, Sequence[float] | None, Colour], ...]
        same = (("Eᵀ", of.transpose_same, "first"), ("E⁺", of.pseudo_same, "second"))
        lines += [
            Line(f"{way}, x and y of one sample", f"{way}, same", values, colour, "none", dashed=True)
            for way, values, colour in same
            if values
        ]
        k = printed_number("keepk_k").value
        levels = [Level("the paper", printed_number(f"keepk_score_{way}").value, at=k) for way in ("transpose", "pinv")]
        inside = sample == "normal" and of.k[0] <= k <= of.k[-1]
        title = f"keep-k cosine, {SAMPLE_NAMES[sample]}"
        charts.append(
            LineChart(title, "k (logarithmic)", of.k, lines, ratio, levels if inside else (), logarithmic=True, top=1.0)
        )
    return charts


def coverage_charts(coverage: CoveragePart, target: Target) -> list[LineChart]:
    """Chart for each kind of vectors what share of the first tokens of a state the active vectors cover. `target`
    chooses the state after their own layer or after the last layer."""
    charts = []
    for kind, name in COVERING.items():
        lines = []
        for lens, _, of in measured(coverage, [kind]):
            colour, mark = LENSES[lens]
            for which, chance in ((target, ""), (f"{target}_random", ", random state")):
                mean, sd = getattr(of, which), getattr(of, f"{which}_sd")
                band = {"low": _beside(mean, sd, -1), "high": _beside(mean, sd, 1)}
                label, looks = ("random", "none") if chance else (lens, mark)
                lines.append(Line(f"{lens}{chance}", label, mean, colour, looks, dashed=bool(chance), **band))  # type: ignore[arg-type]
            if lens == "dot" and target == "own" and of.paper:
                for values, chance in ((of.paper, ""), (of.paper_random, ", random state")):
                    label = "random" if chance else "paper"
                    line = Line(f"as the paper counts{chance}", label, values, "third", "none", dashed=bool(chance))
                    lines.append(line)
        if lines:
            title = f"R_{coverage.k} of {name}, {'own layer’s' if target == 'own' else 'last'} state"
            charts.append(LineChart(title, "layer", range(len(lines[0].values)), lines, percent))
    return charts


def numbers_beside(charts: Sequence[LineChart]) -> Table:
    """Make a table with one number for every line of some charts: the mean over layers or, if the line is over values
    of k, its value at the paper's k, or else at the last k."""
    lines: dict[str, None] = {}
    rows = []
    k: float | None = None
    for chart in charts:
        if chart.logarithmic:
            printed = printed_number("keepk_k").value
            k = printed if printed in chart.along else chart.along[-1]
        found = {"chart": chart.title}
        for line in chart.lines:
            values = [value for at, value in zip(chart.along, line.values, strict=True) if k in (None, at)]
            if known := [value for value in values if value is not None]:
                name = line.name.partition(" (")[0]
                found[name] = chart.text(sum(known) / len(known))
                lines[name] = None
        rows.append(found)
    caption = "Means over layers" if k is None else f"At k = {thousands(int(k))}"
    return Table(caption, (Column("chart", "address"), *map(_line_column, lines)), rows)


def _line_column(line: str) -> Column:
    return Column(line, get=lambda row: row.get(line, "–"), css="n")


def _beside(mean: Sequence[float | None], sd: Sequence[float | None], sign: int) -> list[float | None]:
    """Return the values one standard deviation away from the mean, kept between 0 and 1."""
    pairs = zip(mean, sd, strict=True)
    return [None if at is None or off is None else min(1.0, max(0.0, at + sign * off)) for at, off in pairs]
