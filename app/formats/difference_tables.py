"""What tables of a difference of two models have besides: how much vectors, heads and layers changed."""

from collections.abc import Sequence
from typing import Any

from app.formats.table import Column, Table, constant
from app.views.head import HeadView
from app.views.model import ModelView
from app.views.pairs import PairsView
from app.views.vectors import Vector
from app.views.worth_reading import HEAD_PRESET
from precompute.shape import DIRECTION_KINDS

# Behind those of a layer's table.
LAYER_CHANGE_COLUMNS = (
    Column("change", "number", page_heading="value changed", tip="change", sort="change"),
    Column("change_key", "number", heading="of the key", page_heading="key changed", tip="change"),
)
LAYER_CHANGES = tuple(column.name for column in LAYER_CHANGE_COLUMNS)
LAYER, HEAD, MATRIX = Column("layer", "number"), Column("head", "number"), Column("matrix")
CHANGE = Column("change", "number")


def change_columns(of: Vector | PairsView) -> list[Column]:
    """What CSV says of a vector or of a head's matrix."""
    return [constant("norm", of.norm), constant("base_norm", of.base_norm), constant("change", of.change)]


def head_change_tables(view: HeadView) -> list[Table]:
    """How much each matrix of a head changed; none of a model."""
    if not view.change:
        return []
    title = f"{view.model}, layer {view.layer}, head {view.head}, change of its matrices"
    columns = (MATRIX, Column("norm", "number"), Column("base_norm", "number"), CHANGE)
    rows = [{"matrix": matrix, **change} for matrix, change in view.change.items()]
    return [Table(title, columns, rows, says_nothing_of=("lens", "preset"))]


def subhead_change_columns(view: HeadView) -> list[Column]:
    """How much each vector of a subhead changed, for people; none of a model."""
    names = view.subheads[0].get("change", {}) if view.subheads else {}
    return [_entry("change", name, f"{name} change") for name in names]


def model_change_tables(view: ModelView, head_lens: str, cells: Sequence[dict[str, Any]]) -> list[Table]:
    """What changed most and can be read, how much each kind of a layer and the embedding changed, and, for programs,
    each head."""
    words = (
        Column("kind"), CHANGE, Column("number", "ratio", heading="coherence"), Column("end"),
        Column("tokens", "tokens"),
    )  # fmt: skip
    neurons = (LAYER, Column("neuron", "number"), *words)
    subheads = (LAYER, HEAD, Column("subhead", "number"), *words)
    readability = Column("number", "ratio", heading="readability")
    heads = (LAYER, HEAD, MATRIX, CHANGE, readability, Column("pairs", "pairs"))
    by_layer = [{"layer": row.layer, "change": row.change} for row in view.rows if row.change]
    by_kind = [
        {"layer": row.layer, "kind": kind, "change": change}
        for row in view.rows
        for kind, change in (row.change or {}).items()
    ]
    first_pair = (Column("from", "token"), Column("to", "token"), Column("score", "number"))
    most = f"{view.minus}: what changed most,"
    return [
        Table(f"{most} neurons ({view.lens})", neurons, view.neurons or (), "people"),
        Table(f"{most} subheads ({view.lens})", subheads, view.subheads or (), "people"),
        Table(f"{most} heads ({head_lens}, {HEAD_PRESET})", heads, view.heads or (), "people"),
        Table(
            f"{view.minus}: |Δ|/|base| by layer and kind",
            (LAYER, *(_entry("change", kind, kind) for kind in view.provenance.kinds if kind not in DIRECTION_KINDS)),
            by_layer,
            "people",
        ),
        Table(
            f"{view.minus}: |Δ|/|base| of the embedding, which lists leave out",
            (MATRIX, CHANGE),
            [{"matrix": name, "change": change} for name, change in (view.embedding_change or {}).items()],
            says_nothing_of=("lens", "preset"),
        ),
        Table("", (LAYER, MATRIX, HEAD, Column("coherence", "ratio"), CHANGE, *first_pair), cells, "programs"),
        Table("", (LAYER, Column("kind"), CHANGE), by_kind, "programs", ("lens", "preset")),
    ]


def _entry(field: str, key: str, name: str) -> Column:
    return Column(name, "number", get=lambda row: row[field][key])
