"""A head's page: its two matrices and its subheads at a glance."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from typing_extensions import TypedDict

from app.views.checks import check_number
from app.views.notes import head_note
from app.views.pairs import pairs_view
from app.views.subhead import SUBHEAD_KINDS
from app.views.tokens import PAGE_ONLY, Token, TokenPair, View, tokens_of
from app.views.vectors import NOT_STORED
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.shape import MATRICES

PAIRS, TOKENS = 10, 4  # of each end of a matrix, of each vector of a subhead


class SubheadRow(TypedDict):
    subhead: int
    q: Annotated[list[Token] | None, NOT_STORED]
    k: Annotated[list[Token] | None, NOT_STORED]
    v: Annotated[list[Token] | None, NOT_STORED]
    o: Annotated[list[Token] | None, NOT_STORED]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixGlance:
    top: list[TokenPair]
    bottom: list[TokenPair]
    coherence: float | None
    columns: Annotated[tuple[str, str], PAGE_ONLY]
    hidden: Annotated[int, PAGE_ONLY]  # of as many of the best pairs: how many the preset leaves out


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadView(View):
    model: str
    layer: int
    head: int
    lens: str
    preset: str
    vo: Annotated[MatrixGlance | None, NOT_STORED]
    qk: Annotated[MatrixGlance | None, NOT_STORED]
    subheads: Annotated[list[SubheadRow] | None, NOT_STORED]
    note: Annotated[str, PAGE_ONLY]


def head_view(index: Index, layer: int, head: int, lens: str = "dot", preset: str = "all") -> HeadView:
    check_lens(index, lens)
    check_kinds(index, *MATRICES, *SUBHEAD_KINDS.values())
    check_number(index, "head", head, index.shape.n_heads)
    return HeadView(
        model=index.manifest.model,
        layer=layer,
        head=head,
        lens=lens,
        preset=preset,
        vo=_glance(index, "vo", layer, head, lens, preset),
        qk=_glance(index, "qk", layer, head, lens, preset),
        subheads=_subheads(index, layer, head, lens),
        note=head_note(index.shape, head),
    )


def _glance(index: Index, matrix: str, layer: int, head: int, lens: str, preset: str) -> MatrixGlance | None:
    if matrix not in index.stored.matrices:
        return None
    view = pairs_view(index, matrix, layer, head, lens, preset, PAIRS)
    return MatrixGlance(
        top=view.top, bottom=view.bottom, coherence=view.coherence[0], columns=view.columns, hidden=view.hidden
    )


def _subheads(index: Index, layer: int, head: int, lens: str) -> list[SubheadRow] | None:
    shard, shape = index.shard(layer), index.shape
    if not index.stored.subheads:
        return None
    numbers = np.arange(shape.d_head)
    lists = [
        shard.first_ids(kind, shape.row(kind, head, 0) + numbers, lens, TOKENS).tolist()
        if kind in index.stored.kinds
        else [None] * shape.d_head
        for kind in SUBHEAD_KINDS.values()
    ]
    rows: list[SubheadRow] = []
    for subhead, ids in enumerate(zip(*lists, strict=True)):
        q, k, v, o = (None if first is None else tokens_of(index.tokens, first) for first in ids)
        rows.append({"subhead": subhead, "q": q, "k": k, "v": v, "o": o})
    return rows
