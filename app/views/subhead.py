"""A subhead's page: one channel of a head, its column of W_Q, W_K and W_V and its row of W_O."""

from dataclasses import dataclass
from typing import Annotated

from app.views.checks import check_number
from app.views.difference import minus_of
from app.views.labels import LABELS, ShownLabel
from app.views.matches import Matches
from app.views.notes import subhead_note
from app.views.similarity import Agreement, OfMatrices, agreement
from app.views.tokens import NOTE, OMIT_NONE, ViewOfModel
from app.views.vectors import NOT_STORED, Reading, Vector, stored_vectors
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.shape import FACTORS

SUBHEAD_KINDS = {"q": "w_q", "k": "w_k", "v": "w_v", "o": "w_o"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubheadView(ViewOfModel):
    layer: int
    head: int
    subhead: int
    lens: str
    q: Annotated[Vector | None, NOT_STORED]
    k: Annotated[Vector | None, NOT_STORED]
    v: Annotated[Vector | None, NOT_STORED]
    o: Annotated[Vector | None, NOT_STORED]
    similarity: OfMatrices[Agreement]
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    matches: Annotated[Matches | None, OMIT_NONE] = None  # in models that it is compared with, if asked for
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    note: Annotated[str, NOTE] = ""


def subhead_view(
    index: Index, layer: int, head: int, subhead: int, lens: str = "dot", k: int | None = None
) -> SubheadView:
    check_lens(index, lens)
    check_kinds(index, *SUBHEAD_KINDS.values())
    shard, shape = index.shard(layer), index.shape
    check_number(index, "head", head, shape.n_heads)
    check_number(index, "subhead", subhead, shape.d_head)
    kinds = {name: kind for name, kind in SUBHEAD_KINDS.items() if kind in index.stored.kinds}
    rows = [(kind, shape.row(kind, head, subhead)) for kind in kinds.values()]
    lists, all_ids = stored_vectors(index, shard, rows, lens, k)
    vectors, ids = dict(zip(kinds, lists, strict=True)), dict(zip(kinds.values(), all_ids, strict=True))  # ids: (E, K)

    def agreed(matrix: str) -> Agreement | None:
        first, second = FACTORS[matrix]
        unchanged = [kinds[name] for name, vector in vectors.items() if vector.unchanged]
        if matrix not in index.stored.compared or first in unchanged or second in unchanged:
            return None
        of = shard.subhead_similarity(matrix, head, subhead, lens)
        return agreement(index, shard, matrix, of, lens, ids[first], ids[second])

    return SubheadView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        head=head,
        subhead=subhead,
        lens=lens,
        q=vectors.get("q"),
        k=vectors.get("k"),
        v=vectors.get("v"),
        o=vectors.get("o"),
        similarity={"vo": agreed("vo"), "qk": agreed("qk")},
        note=subhead_note(shape, head, subhead),
    )
