"""Show how similar the layers of two models are, which layer is assigned to which, and how well the assignment follows
the order of the layers."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import cbrt, sqrt
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table
from lexiscope.precompute.index.comparison import Comparison

FEATURE_SPACE: Any = Field(description="The same of the vectors' own coordinates; null where d_model differs")
LayerPair = tuple[int, int]  # a layer of A, and the layer of B that it is assigned to


class Verdict(TypedDict):
    layers: int  # how many layers are assigned, which is the number of layers of the shorter model
    in_order: int  # the largest number of assigned layers that follow each other in both models
    in_place: int  # the number of layers that are assigned to the layer at the same relative depth


class KindView(TypedDict):
    """The numbers of one kind of vectors, for each layer of A and each layer of B."""

    similarity: Annotated[list[list[float]], Field(description="Mean |r| over all pairs of a vector of either layer")]
    assignment: Annotated[list[LayerPair], Field(description="One to one, with the largest sum of similarities")]
    feature_space: Annotated[list[list[float]] | None, FEATURE_SPACE]
    feature_assignment: list[LayerPair] | None
    chance: Annotated[float | None, Field(description="The similarity of random vectors; null where not measured")]
    feature_chance: Annotated[float | None, Field(description="The same in feature space")]
    best: Annotated[
        list[list[float]], Field(description="Share of the vectors of a layer of A whose best match is in one of B")
    ]
    best_layers: Annotated[
        list[LayerPair], Field(description="Of each assigned layer of A, the layer of B that holds most best matches")
    ]
    same_index: Annotated[
        float | None,
        Field(description="Share of A's vectors whose best match has the same number; null where layers are not alike"),
    ]
    verdict: Verdict
    feature_verdict: Verdict | None


def kind_view(comparison: Comparison, kind: str) -> KindView:
    n_layers = comparison.a.n_layers, comparison.b.n_layers
    count_a, count_b = comparison.a.kinds[kind], comparison.b.kinds[kind]
    # (L_A * count_a,) the correlations of the best matches.
    layers, indexes, _ = (part[:, 0] for part in comparison.all_matches("a", kind))
    pairs = np.repeat(np.arange(n_layers[0]), count_a) * n_layers[1] + layers
    best = np.bincount(pairs, minlength=n_layers[0] * n_layers[1]).reshape(n_layers) / count_a
    same = float((indexes == np.tile(np.arange(count_a), n_layers[0])).mean()) if count_a == count_b else None
    feature_space = comparison.feature_space(kind)
    assignment, control = comparison.assignment(kind), comparison.feature_assignment(kind)
    return {
        "similarity": comparison.similarity(kind).tolist(),
        "assignment": assignment,
        "feature_space": None if feature_space is None else feature_space.tolist(),
        "feature_assignment": control,
        "chance": comparison.chance(kind),
        "feature_chance": comparison.feature_chance(),
        "best": best.tolist(),
        "best_layers": [(layer, int(best[layer].argmax())) for layer, _ in assignment],
        "same_index": same,
        "verdict": verdict(assignment, *n_layers),
        "feature_verdict": None if control is None else verdict(control, *n_layers),
    }


def verdict(assignment: Sequence[LayerPair], n_layers_a: int, n_layers_b: int) -> Verdict:
    in_place = [pair for pair in assignment if _is_in_place(*pair, n_layers_a, n_layers_b)]
    return {"layers": len(assignment), "in_order": in_order(assignment), "in_place": len(in_place)}


def in_order(assignment: Sequence[LayerPair]) -> int:
    """Return the length of the longest sequence of layer pairs that rises on both sides."""
    ends: list[int] = []  # by length: the lowest layer of B in which a rising sequence of that length can end
    for _, layer in sorted(assignment):
        at = bisect_left(ends, layer)
        ends[at : at + 1] = [layer]
    return len(ends)


def in_order_by_chance(layers: int) -> float:
    """Return about how many of so many layers would be in order if they were assigned at random: the mean length of a
    longest increasing subsequence, by Baik, Deift and Johansson (1999); adding 0.6 fits the true means for few
    layers."""
    return max(1.0, 2 * sqrt(layers) - 1.7711 * sqrt(cbrt(layers)) + 0.6)


def _is_in_place(a: int, b: int, n_layers_a: int, n_layers_b: int) -> bool:
    """Return True if the layer of the shorter model is the one nearest to the relative depth of the longer model's
    layer."""
    if n_layers_a > n_layers_b:
        a, b, n_layers_a, n_layers_b = b, a, n_layers_b, n_layers_a
    return abs(b * (n_layers_a - 1) - a * (n_layers_b - 1)) * 2 <= n_layers_b - 1


VERDICT_COLUMNS = (
    Column("kind"),
    Column("assignment"),
    Column("best", heading="layers of most best matches"),
    Column("in_order", heading="in order"),
    Column("in_place", heading="same depth"),
    Column("feature_in_order", heading="in order in feature space"),
    Column("feature_in_place", heading="same depth in feature space"),
    Column("same_index", "ratio", heading="same number"),
)
LAYER_COLUMNS = (
    Column("kind"),
    Column("layer_a", "number"),
    Column("layer_b", "number"),
    Column("similarity", "number"),
    Column("assigned", "number"),
    Column("best", "number"),
    Column("feature_space", "number"),
    Column("feature_assigned", "number"),
)


def layer_tables(a: str, b: str, kinds: Mapping[str, KindView]) -> list[Table]:
    """Make tables: for people the assignment of layers and a map of each kind of vectors; for CSV a row for every two
    layers."""
    title = f"{a} vs {b}"
    return [
        Table(f"{title}: layers assigned to layers", VERDICT_COLUMNS, _verdicts(kinds), "people"),
        *(_layer_table(f"{title}: {kind}, mean |r|", f"{a} \\ {b}", of["similarity"]) for kind, of in kinds.items()),
        Table("", LAYER_COLUMNS, [row for kind, of in kinds.items() for row in _cells(kind, of)], "programs"),
    ]


def _verdicts(kinds: Mapping[str, KindView]) -> Iterator[dict[str, Any]]:
    for kind, of in kinds.items():
        found, control = of["verdict"], of["feature_verdict"]
        yield {
            "kind": kind,
            "assignment": ", ".join(f"{a}→{b}" for a, b in of["assignment"]),
            "best": ", ".join(f"{a}→{b}" for a, b in of["best_layers"]),
            "in_order": f"{found['in_order']} of {found['layers']}",
            "in_place": f"{found['in_place']} of {found['layers']}",
            "feature_in_order": f"{control['in_order']} of {control['layers']}" if control else None,
            "feature_in_place": f"{control['in_place']} of {control['layers']}" if control else None,
            "same_index": of["same_index"],
        }


def _layer_table(title: str, axes: str, values: list[list[float]]) -> Table:
    """Make a table for people, with a row for each layer of A and a column for each layer of B."""

    def column(layer: int) -> Column:
        return Column(str(layer), "number", get=lambda row: row[1][layer])

    first = Column("layer", "number", get=lambda row: row[0], heading=axes)
    return Table(title, (first, *map(column, range(len(values[0])))), list(enumerate(values)), "people")


def _cells(kind: str, of: KindView) -> Iterator[dict[str, Any]]:
    """Yield a row for each pair of a layer of A and a layer of B."""
    assigned, feature_assigned = as_set(of["assignment"]), as_set(of["feature_assignment"] or [])
    for a, row in enumerate(of["similarity"]):
        for b, similarity in enumerate(row):
            yield {
                "kind": kind,
                "layer_a": a,
                "layer_b": b,
                "similarity": similarity,
                "assigned": int((a, b) in assigned),
                "best": of["best"][a][b],
                "feature_space": of["feature_space"][a][b] if of["feature_space"] else None,
                "feature_assigned": int((a, b) in feature_assigned) if of["feature_space"] else None,
            }


def as_set(assignment: Sequence[Sequence[int]]) -> set[LayerPair]:
    return {(a, b) for a, b in assignment}
