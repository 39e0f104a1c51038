"""A subhead's page: one channel of a head, its column of W_Q, W_K and W_V and its row of W_O."""

from dataclasses import dataclass
from typing import Annotated

from app.views.checks import check_number
from app.views.notes import subhead_note
from app.views.tokens import OMIT_NONE, PAGE_ONLY, View
from app.views.vectors import Reading, Vector, stored_vectors
from precompute.index.index import Index

SUBHEAD_KINDS = {"q": "w_q", "k": "w_k", "v": "w_v", "o": "w_o"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubheadView(View):
    model: str
    layer: int
    head: int
    subhead: int
    lens: str
    q: Vector
    k: Vector
    v: Vector
    o: Vector
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    note: Annotated[str, PAGE_ONLY]


def subhead_view(
    index: Index, layer: int, head: int, subhead: int, lens: str = "dot", k: int | None = None
) -> SubheadView:
    shard, shape = index.shard(layer), index.shape
    check_number(index, "head", head, shape.n_heads)
    check_number(index, "subhead", subhead, shape.d_head)
    rows = [(kind, shape.row(kind, head, subhead)) for kind in SUBHEAD_KINDS.values()]
    (query, key, value, output), _ = stored_vectors(index, shard, rows, lens, k)
    return SubheadView(
        model=index.manifest.model,
        layer=layer,
        head=head,
        subhead=subhead,
        lens=lens,
        q=query,
        k=key,
        v=value,
        o=output,
        note=subhead_note(shape, head, subhead),
    )
