"""A direction's page: one singular direction of a head's two matrices, each with the vector that it reads and the one
that it writes, or is looked for.

M = Σ_j σ_j in_jᵀ out_j: VO's direction j reads `in` and writes `out`, σ_j times as long. QK's has a query and a key.
The two matrices have nothing to do with each other: their directions share a page because they share a number."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from app.views.checks import check_number
from app.views.difference import minus_of
from app.views.labels import LABELS, ShownLabel
from app.views.matches import Matches
from app.views.notes import direction_note
from app.views.tokens import NOTE, OMIT_NONE, PAGE_ONLY, ViewOfModel
from app.views.vectors import NOT_STORED, Reading, Vector, stored_vectors
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.index.shard_reader import Shard
from precompute.shape import DIRECTION_KINDS

SIDE_KINDS = {"in": "vo_in", "out": "vo_out", "query": "qk_query", "key": "qk_key"}  # by their names on a page
SINGULAR: Any = Field(description="The singular value σ of this direction")
SHARE: Any = Field(
    description="σ² over the sum of the squares of all of the matrix, which is its squared Frobenius norm; null where "
    "that is 0"
)

VoDirection = TypedDict(
    "VoDirection",
    {
        "singular": Annotated[float, SINGULAR],
        "share": Annotated[float | None, SHARE],
        "in": Annotated[Vector | None, NOT_STORED],
        "out": Annotated[Vector | None, NOT_STORED],
    },
)


class QkDirection(TypedDict):
    singular: Annotated[float, SINGULAR]
    share: Annotated[float | None, SHARE]
    query: Annotated[Vector | None, NOT_STORED]
    key: Annotated[Vector | None, NOT_STORED]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionView(ViewOfModel):
    layer: int
    head: int
    direction: int
    lens: str
    vo: Annotated[VoDirection | None, NOT_STORED]
    qk: Annotated[QkDirection | None, NOT_STORED]
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    matches: Annotated[Matches | None, OMIT_NONE] = None  # in models that it is compared with, if asked for
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    near: Annotated[dict[str, list[int]], PAGE_ONLY] = field(default_factory=dict)  # directions whose singular values
    # are nearly the same, by matrix
    note: Annotated[str, NOTE] = ""

    @property
    def vectors(self) -> dict[str, Vector | None]:
        """By their names in SIDE_KINDS."""
        vo, qk = self.vo, self.qk
        return {
            "in": vo["in"] if vo else None,
            "out": vo["out"] if vo else None,
            "query": qk["query"] if qk else None,
            "key": qk["key"] if qk else None,
        }


def direction_view(
    index: Index, layer: int, head: int, direction: int, lens: str = "dot", k: int | None = None
) -> DirectionView:
    check_lens(index, lens)
    check_kinds(index, *DIRECTION_KINDS)
    shard, shape = index.shard(layer), index.shape
    check_number(index, "head", head, shape.n_heads)
    check_number(index, "direction", direction, shape.d_head)
    sides = {name: kind for name, kind in SIDE_KINDS.items() if kind in index.stored.kinds}
    rows = [(kind, shape.row(kind, head, direction)) for kind in sides.values()]
    vectors = dict(zip(sides, stored_vectors(index, shard, rows, lens, k)[0], strict=True))
    values = {matrix: shard.heads.all_singular(matrix)[head] for matrix in index.stored.directions}
    vo: VoDirection | None = None
    qk: QkDirection | None = None
    if "vo" in values:
        vo = {
            "singular": float(values["vo"][direction]),
            "share": shares(index, shard, "vo", head)[direction],
            "in": vectors.get("in"),
            "out": vectors.get("out"),
        }
    if "qk" in values:
        qk = {
            "singular": float(values["qk"][direction]),
            "share": shares(index, shard, "qk", head)[direction],
            "query": vectors.get("query"),
            "key": vectors.get("key"),
        }
    return DirectionView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        head=head,
        direction=direction,
        lens=lens,
        vo=vo,
        qk=qk,
        near={matrix: _near(of_matrix.tolist(), direction) for matrix, of_matrix in values.items()},
        note=direction_note(shape),
    )


def shares(index: Index, shard: Shard, matrix: str, head: int) -> list[float | None]:
    """Of each direction of a head. Of a difference, whose matrix may have more directions than are stored, of the whole
    matrix."""
    squares = [value * value for value in shard.heads.all_singular(matrix)[head].tolist()]
    whole = sum(squares)
    if index.stored.difference:
        whole = max(whole, float(shard.heads.all_matrix_norms(matrix)[0][head]) ** 2)
    return [square / whole if whole else None for square in squares]


NEARLY = 0.01  # relative: singular values as near as this, and their directions, are easily mixed


def _near(values: list[float], direction: int) -> list[int]:
    """The other directions whose singular values are nearly the same as this one's."""
    own = values[direction]
    return [at for at, value in enumerate(values) if at != direction and own and abs(value - own) <= NEARLY * own]
