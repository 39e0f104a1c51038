"""What tables of a difference of two models have besides: how much vectors, heads and layers changed."""

from collections.abc import Sequence
from typing import Any, Protocol

from lexiscope.app.formats.table import CHANGE, MATRIX, Column, Table, constant
from lexiscope.app.views.model import ModelView
from lexiscope.app.views.worth_reading import HEAD_PRESET
from lexiscope.precompute.shape import DIRECTION_KINDS

LAYER, HEAD = Column("layer", "number"), Column("head", "number")


class Changed(Protocol):
    """A vector or a matrix of a difference."""

    @property
    def norm(self) -> float | None: ...
    @property
    def base_norm(self) -> float | None: ...
    @property
    def change(self) -> float | None: ...


def change_columns(of: Changed) -> list[Column]:
    """Return the columns in which CSV says how much a vector or a head's matrix changed."""
    return [constant("norm", of.norm), constant("base_norm", of.base_norm), constant("change", of.change)]


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
