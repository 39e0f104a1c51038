"""A head's page: its two matrices and its subheads at a glance.
Their full lists are in parameters.py."""

import numpy as np

from app.views.notes import head_note
from app.views.page_types import HeadView, MatrixGlance, SubheadRow
from app.views.parameters import pairs_view
from app.views.parts import token_views
from precompute.index.index import Index
from precompute.index.shard_reader import Shard
from precompute.shape import MATRICES

PAIRS, TOKENS = 10, 4  # of each end of a matrix, of each vector of a subhead


def head_view(index: Index, layer: int, head: int, lens: str = "dot", preset: str = "all") -> HeadView:
    glances = {}
    for matrix in MATRICES:
        view = pairs_view(index, matrix, layer, head, lens, preset, PAIRS)
        glances[matrix] = MatrixGlance.of(
            pairs=view.pairs,
            bottom=view.bottom,
            coherence=view.coherence[0],
            columns=view.columns,
            hidden=view.hidden,
        )
    return HeadView.of(
        model=index.manifest.model,
        layer=layer,
        head=head,
        lens=lens,
        preset=preset,
        **glances,
        subheads=_subheads(index, index.shard(layer), head, lens),
        note=head_note(index.shape, head),
    )


def _subheads(index: Index, shard: Shard, head: int, lens: str) -> tuple[SubheadRow, ...]:
    shape, numbers = index.shape, np.arange(index.shape.d_head)
    lists = [
        shard.first_ids(kind, shape.row(kind, head, 0) + numbers, lens, TOKENS).tolist()
        for kind in ("w_q", "w_k", "w_v", "w_o")
    ]
    rows: list[SubheadRow] = []
    for subhead, ids in enumerate(zip(*lists, strict=True)):
        q, k, v, o = (token_views(index.tokens, part) for part in ids)
        rows.append({"subhead": subhead, "q": q, "k": k, "v": v, "o": o})
    return tuple(rows)
