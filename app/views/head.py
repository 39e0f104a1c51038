"""A head's page: its two matrices as pairs that people can read, the paper's list beside them, its subheads and
its singular directions."""

from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.views.checks import check_number, finite
from app.views.difference import Change, matrix_change, minus_of, vector_changes
from app.views.head_directions import MatrixDirections, head_directions
from app.views.hubs import LOOKED_AT, first_kept
from app.views.labels import LABELS, ShownLabel
from app.views.notes import head_note
from app.views.pairs import Hidden, pairs_view
from app.views.similarity import EndSimilarities, OfMatrices, Shuffled, both_shuffled, subhead_similarities
from app.views.subhead import SUBHEAD_KINDS
from app.views.tokens import (
    HUBS_HIDDEN,
    NOTE,
    OF_DIFFERENCE,
    OMIT_NONE,
    PAGE_ONLY,
    Token,
    TokenPair,
    ViewOfModel,
    tokens_of,
)
from app.views.vectors import NOT_STORED
from app.views.worth_reading import HEAD_PRESET, head_lens
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.index.shard_reader import Shard
from precompute.shape import DIRECTION_KINDS, MATRICES

PAIRS, TOKENS = 20, 4  # of each end of a matrix, of each vector of a subhead
PAPER_LENS, PAPER_PRESET = "dot", "all"  # a score and a choice of pairs as in the paper

CHANGES: Any = Field(description="Only of a difference: |Δ| / |base|, null where the base is 0")
READABLE: Any = Field(
    description="The pairs as people read them best: of words, lens cosine; null where there are none"
)


class SubheadRow(TypedDict):
    subhead: int
    q: Annotated[list[Token] | None, NOT_STORED]
    k: Annotated[list[Token] | None, NOT_STORED]
    v: Annotated[list[Token] | None, NOT_STORED]
    o: Annotated[list[Token] | None, NOT_STORED]
    similarity: OfMatrices[EndSimilarities]
    change: Annotated[NotRequired[dict[str, float | None]], CHANGES]  # by vector


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixGlance:
    top: list[TokenPair]
    bottom: list[TokenPair]
    coherence: float | None
    readability: float | None
    columns: Annotated[tuple[str, str], PAGE_ONLY] = ("from", "to")
    hidden: Hidden
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None  # of top and bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPairs:
    """Both matrices under one lens and preset."""

    lens: str
    preset: str
    vo: MatrixGlance
    qk: MatrixGlance

    @property
    def as_in_the_paper(self) -> bool:
        return (self.lens, self.preset) == (PAPER_LENS, PAPER_PRESET)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadView(ViewOfModel):
    layer: int
    head: int
    lens: str
    preset: str
    vo: Annotated[MatrixGlance | None, NOT_STORED]
    qk: Annotated[MatrixGlance | None, NOT_STORED]
    readable: Annotated[HeadPairs | None, READABLE]
    paper: Annotated[HeadPairs | None, OMIT_NONE] = None  # dot, all pairs, if the page shows them and vo, qk are others
    subheads: Annotated[list[SubheadRow] | None, NOT_STORED]
    shuffled: OfMatrices[Shuffled]
    directions: Annotated[OfMatrices[MatrixDirections] | None, NOT_STORED]
    change: Annotated[dict[str, Change] | None, OF_DIFFERENCE] = None  # by matrix
    shown: Annotated[tuple[HeadPairs, ...], PAGE_ONLY] = ()  # `shown_pairs`
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    note: Annotated[str, NOTE] = ""


def head_view(
    index: Index,
    layer: int,
    head: int,
    lens: str = "dot",
    preset: str = "all",
    hubs: frozenset[int] = frozenset(),
) -> HeadView:
    """Hubs that are given are skipped among the first tokens of subheads and directions."""
    check_lens(index, lens)
    check_kinds(index, *MATRICES, *SUBHEAD_KINDS.values(), *DIRECTION_KINDS)
    check_number(index, "head", head, index.shape.n_heads)
    asked = _pairs(index, layer, head, lens, preset) if index.stored.pairs else None
    words = _other_pairs(index, layer, head, asked, head_lens(index), HEAD_PRESET)
    asks_for_list = preset != PAPER_PRESET and words is not asked
    beside = asked if asks_for_list else _other_pairs(index, layer, head, asked, index.stored.lens, PAPER_PRESET)
    return HeadView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        head=head,
        lens=lens,
        preset=preset,
        vo=asked.vo if asked else None,
        qk=asked.qk if asked else None,
        readable=words,
        paper=None if beside is asked else beside,
        subheads=_subheads(index, layer, head, lens, hubs),
        shuffled=both_shuffled(index, index.shard(layer), lens),
        directions=head_directions(index, layer, head, lens, hubs),
        change={matrix: matrix_change(index.shard(layer), matrix, head) for matrix in MATRICES}
        if index.stored.difference
        else None,
        shown=shown_pairs(words, beside),
        note=head_note(index.shape, head),
    )


def shown_pairs(readable: HeadPairs | None, beside: HeadPairs | None) -> tuple[HeadPairs, ...]:
    """What a page shows of them: the readable pairs, then the paper's or those of the preset."""
    return tuple(pairs for pairs in (readable, beside) if pairs)


def _pairs(index: Index, layer: int, head: int, lens: str, preset: str) -> HeadPairs:
    vo, qk = (_glance(index, matrix, layer, head, lens, preset) for matrix in MATRICES)
    return HeadPairs(lens=lens, preset=preset, vo=vo, qk=qk)


def _other_pairs(
    index: Index, layer: int, head: int, asked: HeadPairs | None, lens: str, preset: str
) -> HeadPairs | None:
    """The pairs under another lens and preset than those asked for, unless these are the same. None where none are
    stored, or where they are damaged, which is no reason to miss the page."""
    if asked is None or (lens, preset) == (asked.lens, asked.preset):
        return asked
    try:
        return _pairs(index, layer, head, lens, preset)
    except IndexFault:
        return None


def _glance(index: Index, matrix: str, layer: int, head: int, lens: str, preset: str) -> MatrixGlance:
    view = pairs_view(index, matrix, layer, head, lens, preset, PAIRS)
    return MatrixGlance(
        top=view.top,
        bottom=view.bottom,
        coherence=view.coherence[0],
        readability=finite(index.shard(layer).heads.readabilities(matrix, head, lens, preset)[0]),
        columns=view.columns,
        hidden=view.hidden,
    )


def _subheads(index: Index, layer: int, head: int, lens: str, hubs: frozenset[int]) -> list[SubheadRow] | None:
    shard, shape = index.shard(layer), index.shape
    if not index.stored.subheads:
        return None
    numbers = np.arange(shape.d_head)
    lists = [
        first_kept(
            shard.first_ids(kind, shape.row(kind, head, 0) + numbers, lens, LOOKED_AT if hubs else TOKENS).tolist(),
            hubs,
            TOKENS,
        )
        if kind in index.stored.kinds
        else [None] * shape.d_head
        for kind in SUBHEAD_KINDS.values()
    ]
    changes = _changes(index, shard, head)
    rows: list[SubheadRow] = []
    similarities = subhead_similarities(index, shard, head, lens)
    for subhead, ids in enumerate(zip(*lists, strict=True)):
        unchanged = {name for name, of_vectors in changes.items() if of_vectors[subhead] == 0}
        q, k, v, o = (
            None if first is None else [] if name in unchanged else tokens_of(index.tokens, first)
            for name, first in zip(SUBHEAD_KINDS, ids, strict=True)
        )
        row: SubheadRow = {"subhead": subhead, "q": q, "k": k, "v": v, "o": o, "similarity": similarities[subhead]}
        if changes:
            row["change"] = {name: finite(of_vectors[subhead]) for name, of_vectors in changes.items()}
        rows.append(row)
    return rows


def _changes(index: Index, shard: Shard, head: int) -> dict[str, list[float]]:
    """Of a difference: how much each subhead's vectors changed, by vector."""
    if not index.stored.difference:
        return {}
    shape = index.shape
    numbers = np.arange(shape.d_head)
    kinds = {name: kind for name, kind in SUBHEAD_KINDS.items() if kind in index.stored.kinds}
    return {
        name: vector_changes(shard, kind)[shape.row(kind, head, 0) + numbers].tolist() for name, kind in kinds.items()
    }
