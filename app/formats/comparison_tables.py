"""The tables of two models in one space: layers by layers, and the strongest matches."""

from collections.abc import Iterator
from typing import Any

from lexiscope.app.formats.stitching_tables import stitching_tables
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.views.comparison import ComparisonView, KindView
from lexiscope.app.views.layer_order import LayerPair
from lexiscope.app.views.matched_vectors import FIRST, MatchedVector
from lexiscope.app.views.strongest_matches import MatchedVectors
from lexiscope.precompute.index.parameter_names import matched_name


def comparison_tables(view: ComparisonView) -> list[Table]:
    title = f"{view.a} vs {view.b}"
    return [
        Table(f"{title}: layers assigned to layers", VERDICT_COLUMNS, _verdicts(view), "people"),
        *(_layer_table(f"{title}: {kind}, mean |r|", view, of["similarity"]) for kind, of in view.kinds.items()),
        Table("", LAYER_COLUMNS, [row for kind, of in view.kinds.items() for row in _cells(kind, of)], "programs"),
        Table(f"{title}: strongest matches", _match_columns(view), view.strongest),
        *stitching_tables(view),
    ]


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


def _verdicts(view: ComparisonView) -> Iterator[dict[str, Any]]:
    for kind, of in view.kinds.items():
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


def _layer_table(title: str, view: ComparisonView, values: list[list[float]]) -> Table:
    """Layers of A down, layers of B across, for people."""

    def column(layer: int) -> Column:
        return Column(str(layer), "number", get=lambda row: row[1][layer])

    first = Column("layer", "number", get=lambda row: row[0], heading=f"{view.a} \\ {view.b}")
    return Table(title, (first, *map(column, range(view.models[1].n_layers))), list(enumerate(values)), "people")


def _cells(kind: str, of: KindView) -> Iterator[dict[str, Any]]:
    """A row for each layer of A and layer of B."""
    assigned, feature_assigned = _set(of["assignment"]), _set(of["feature_assignment"] or [])
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


def _set(assignment: list[LayerPair]) -> set[LayerPair]:
    return {(a, b) for a, b in assignment}


def _match_columns(view: ComparisonView) -> tuple[Column, ...]:
    def columns_of(side: str, model: str) -> tuple[Column, ...]:
        def vector(pair: MatchedVectors) -> MatchedVector:
            return pair["a"] if side == "a" else pair["b"]

        def words(pair: MatchedVectors) -> Any:
            return vector(pair)["bottom" if side == "b" and pair["r"] < 0 else "top"]

        return (
            Column(model, get=lambda pair: matched_name(vector(pair), pair["kind"]), audience="people"),
            Column(f"layer_{side}", get=lambda pair: vector(pair)["layer"], audience="programs"),
            Column(f"index_{side}", get=lambda pair: vector(pair)["index"], audience="programs"),
            Column(f"words_{side}", "tokens", get=words, heading="words", count=FIRST),
        )

    end = Column("end_b", get=lambda pair: "bottom" if pair["r"] < 0 else "top", heading="end")
    return (Column("kind"), *columns_of("a", view.a), Column("r", "number"), *columns_of("b", view.b), end)
