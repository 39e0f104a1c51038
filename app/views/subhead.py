"""A subhead's page: one channel of a head, its column of W_Q, W_K and W_V and its row of W_O."""

from dataclasses import dataclass
from typing import Annotated

from app.views.checks import check_number
from app.views.notes import subhead_note
from app.views.tokens import OMIT_NONE, PAGE_ONLY, View
from app.views.vectors import NOT_STORED, Reading, Vector, stored_vectors
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens

SUBHEAD_KINDS = {"q": "w_q", "k": "w_k", "v": "w_v", "o": "w_o"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubheadView(View):
    model: str
    layer: int
    head: int
    subhead: int
    lens: str
    q: Annotated[Vector | None, NOT_STORED]
    k: Annotated[Vector | None, NOT_STORED]
    v: Annotated[Vector | None, NOT_STORED]
    o: Annotated[Vector | None, NOT_STORED]
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    note: Annotated[str, PAGE_ONLY]


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
    vectors = dict(zip(kinds, stored_vectors(index, shard, rows, lens, k)[0], strict=True))
    return SubheadView(
        model=index.manifest.model,
        layer=layer,
        head=head,
        subhead=subhead,
        lens=lens,
        q=vectors.get("q"),
        k=vectors.get("k"),
        v=vectors.get("v"),
        o=vectors.get("o"),
        note=subhead_note(shape, head, subhead),
    )
