"""A head's page: its two matrices and its subheads at a glance."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from typing_extensions import TypedDict

from app.views.notes import head_note
from app.views.pairs import pairs_view
from app.views.subhead import SUBHEAD_KINDS
from app.views.tokens import PAGE_ONLY, Token, TokenPair, View, tokens_of
from precompute.index.index import Index

PAIRS, TOKENS = 10, 4  # of each end of a matrix, of each vector of a subhead


class SubheadRow(TypedDict):
    subhead: int
    q: list[Token]
    k: list[Token]
    v: list[Token]
    o: list[Token]


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
    vo: MatrixGlance
    qk: MatrixGlance
    subheads: list[SubheadRow]
    note: Annotated[str, PAGE_ONLY]


def head_view(index: Index, layer: int, head: int, lens: str = "dot", preset: str = "all") -> HeadView:
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


def _glance(index: Index, matrix: str, layer: int, head: int, lens: str, preset: str) -> MatrixGlance:
    view = pairs_view(index, matrix, layer, head, lens, preset, PAIRS)
    return MatrixGlance(
        top=view.top, bottom=view.bottom, coherence=view.coherence[0], columns=view.columns, hidden=view.hidden
    )


def _subheads(index: Index, layer: int, head: int, lens: str) -> list[SubheadRow]:
    shard, shape = index.shard(layer), index.shape
    numbers = np.arange(shape.d_head)
    lists = [
        shard.first_ids(kind, shape.row(kind, head, 0) + numbers, lens, TOKENS).tolist()
        for kind in SUBHEAD_KINDS.values()
    ]
    rows: list[SubheadRow] = []
    for subhead, ids in enumerate(zip(*lists, strict=True)):
        q, k, v, o = (tokens_of(index.tokens, first) for first in ids)
        rows.append({"subhead": subhead, "q": q, "k": k, "v": v, "o": o})
    return rows
