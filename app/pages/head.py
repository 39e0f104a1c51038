"""Show a head: its two matrices as token pairs that people can read, with the paper's lists beside them; its subheads
and singular directions, which directions are most readable, and whether they are more readable than the subheads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.pair_tables import pair_tables
from lexiscope.app.formats.png import Picture
from lexiscope.app.formats.table import CHANGE, MATRIX, Column, Table, change_of, constant
from lexiscope.app.html.numbers import percent
from lexiscope.app.lists.checks import check_number, finite
from lexiscope.app.lists.difference import Change, matrix_change, vector_changes
from lexiscope.app.lists.direction_coherence import BEST, direction_coherence, subhead_coherence
from lexiscope.app.lists.kept_tokens import first_tokens
from lexiscope.app.lists.labels import LABELS, LabelEntry, ShownLabel, labels_of, pairs_entry
from lexiscope.app.lists.notes import head_note
from lexiscope.app.lists.pair_lists import PAIR_NAMES, Hidden, drawn_pairs, stored_pairs
from lexiscope.app.lists.similarity import (
    End,
    EndSimilarities,
    OfMatrices,
    Shuffled,
    both_shuffled,
    subhead_similarities,
)
from lexiscope.app.lists.vectors import NOT_STORED, SHARE, SIDE_KINDS, SINGULAR, SUBHEAD_KINDS, shares
from lexiscope.app.lists.view import (
    HUBS_HIDDEN,
    NOTE,
    OF_DIFFERENCE,
    OMIT_NONE,
    PAGE_ONLY,
    Token,
    TokenPair,
    ViewOfModel,
    of_index,
    tokens_of,
)
from lexiscope.app.lists.worth_reading import HEAD_PRESET, head_lens
from lexiscope.app.pages.page import Address, AnyPreset, LensArguments, ModelSite, Page
from lexiscope.app.urls import PICTURE_FORMATS, link
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import HeadPositions
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.shape import DIRECTION_KINDS, DIRECTIONS, ENDS, MATRICES

PAIRS_AT_A_GLANCE = 20  # how many pairs of each end of a matrix are shown
VECTOR_TOKENS = 4  # how many tokens of each vector are shown
PAPER_LENS, PAPER_PRESET = "dot", "all"  # the score and the choice of pairs that the paper uses
DIRECTIONS_NAMED = 5  # how many of the most readable directions the page names
# Directions or subheads are more readable only if their coherence is larger by this much: if the axes of subheads are
# rotated at random, their coherence varies by .003 to .009.
ALIKE = 0.025
# A coherence that random vectors reach, too: the mean of their ten best is .083 ± .005 on MiniLM, .119 ± .016 on
# SmolLM2 (cosine).
NOISE = 0.12


CHANGES: Any = Field(description="Only of a difference: |Δ| / |base|, null where the base is 0")
READABLE: Any = Field(
    description="The pairs as people read them best: of words, lens cosine; null where there are none"
)
POSITIONS: Any = Field(
    description="Where the head looks by position alone, as shares; null where the index was built without that"
)
END: Any = Field(description="The end at which both sides read best together; the tokens are of that end")
COHERENCE: Any = Field(
    description="The mean of its two sides' at that end, where one whose first tokens are no words counts as 0; null "
    "where a side is not stored"
)
SIDES_TOKENS: Any = Field(
    description="The first of each side, `in` and `out` or `query` and `key`; null where the index was built without it"
)
READS: Any = Field(description=f"The mean coherence of the {BEST} that read best; null where there are none")


class HeadAt(Address):
    pattern = "head/{layer:number}/{head:number}"
    layer: Annotated[int, Field(ge=0, description="A layer, from 0", examples=[29])]
    head: Annotated[int, Field(ge=0, description="A head of the layer, from 0", examples=[2])]


class HeadArguments(LensArguments):
    preset: AnyPreset = "all"


class SubheadRow(TypedDict):
    subhead: int
    q: Annotated[list[Token] | None, NOT_STORED]
    k: Annotated[list[Token] | None, NOT_STORED]
    v: Annotated[list[Token] | None, NOT_STORED]
    o: Annotated[list[Token] | None, NOT_STORED]
    similarity: OfMatrices[EndSimilarities]
    change: Annotated[NotRequired[dict[str, float | None]], CHANGES]  # the change of each vector


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixGlance:
    top: list[TokenPair]
    bottom: list[TokenPair]
    coherence: float | None
    readability: float | None
    columns: Annotated[tuple[str, str], PAGE_ONLY] = ("from", "to")
    hidden: Hidden
    # the numbers of hidden hubs at the top and at the bottom
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPairs:
    """The token pairs of both matrices of a head, under one lens (dot or cosine) and one choice of pairs (preset)."""

    lens: str
    preset: str
    vo: MatrixGlance
    qk: MatrixGlance

    @property
    def as_in_the_paper(self) -> bool:
        return (self.lens, self.preset) == (PAPER_LENS, PAPER_PRESET)


class DirectionRow(TypedDict):
    direction: int
    singular: Annotated[float, SINGULAR]
    share: Annotated[float | None, SHARE]
    end: Annotated[End, END]
    coherence: Annotated[float | None, COHERENCE]
    tokens: Annotated[dict[str, list[Token] | None], SIDES_TOKENS]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixDirections:
    """The singular directions of one of a head's matrices, and how readable they are compared with the head's channels
    (subheads)."""

    best: Annotated[
        list[int],
        Field(description=f"The {DIRECTIONS_NAMED} that read best, best first, of those above {NOISE}, as of noise"),
    ]
    reads: Annotated[float | None, READS]
    subheads_read: Annotated[float | None, Field(description="The same of the head's subheads")]
    rows: list[DirectionRow]

    @property
    def better(self) -> str:
        """Return whether a head's singular directions or its channels are more readable: `directions`, `subheads` or
        `neither`; `noise` if random vectors would be as readable; "" if that was not measured."""
        if self.reads is None or self.subheads_read is None:
            return ""
        if max(self.reads, self.subheads_read) < NOISE:
            return "noise"
        if abs(self.reads - self.subheads_read) < ALIKE:
            return "neither"
        return "directions" if self.reads > self.subheads_read else "subheads"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadView(ViewOfModel):
    layer: int
    head: int
    lens: str
    preset: str
    vo: Annotated[MatrixGlance | None, NOT_STORED]
    qk: Annotated[MatrixGlance | None, NOT_STORED]
    readable: Annotated[HeadPairs | None, READABLE]
    # The pairs that the paper would list (lens dot, all pairs), if the page shows them beside other pairs.
    paper: Annotated[HeadPairs | None, OMIT_NONE] = None
    subheads: Annotated[list[SubheadRow] | None, NOT_STORED]
    shuffled: OfMatrices[Shuffled]
    directions: Annotated[OfMatrices[MatrixDirections] | None, NOT_STORED]
    positions: Annotated[HeadPositions | None, POSITIONS] = None
    change: Annotated[dict[str, Change] | None, OF_DIFFERENCE] = None  # the change of each matrix
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    note: Annotated[str, NOTE] = ""

    @property
    def shown(self) -> list[HeadPairs]:
        """Return the token pairs on the page: the readable ones and the paper's; without the paper's, also those under
        the lens (score) and preset (choice of pairs) of the address, unless these are the readable ones."""
        shown = [pairs for pairs in (self.readable, self.paper) if pairs]
        is_there = any((pairs.lens, pairs.preset) == (self.lens, self.preset) for pairs in shown)
        if self.vo and self.qk and not self.paper and not is_there:
            shown.append(HeadPairs(lens=self.lens, preset=self.preset, vo=self.vo, qk=self.qk))
        return shown

    def picture(self) -> Picture:
        """Return the pairs that the address asks for or, if it names no choice of pairs, those that people read."""
        pairs = self.readable if self.readable and self.preset == PAPER_PRESET else self
        about = f"head {self.head} of layer {self.layer}, {self.model}, {pairs.lens}, {pairs.preset}"
        glances = [("vo", pairs.vo), ("qk", pairs.qk)]
        lists = [drawn_pairs(matrix, of.top) for matrix, of in glances if of]
        return Picture(f"Head {self.layer}.{self.head}", about, lists)

    def label_entries(self) -> list[LabelEntry]:
        glances = {"vo": self.vo, "qk": self.qk}
        entries = [
            pairs_entry(f"{matrix}/{self.layer}/{self.head}", self.lens, self.preset, of.top)
            for matrix, of in glances.items()
            if of
        ]
        return entries or [LabelEntry(f"head/{self.layer}/{self.head}", self.lens)]

    def direction_table(self, matrix: str, rows: Sequence[DirectionRow]) -> Table:
        """Make a table of some singular directions of a matrix, for the page."""

        def link_to(row: DirectionRow) -> str:
            return link("direction", self.model, self.layer, self.head, row["direction"], lens=self.lens)

        first, *others = (_side(kind) for kind in DIRECTIONS[matrix] if rows[0]["tokens"][SIDES[kind]] is not None)
        columns = (
            Column("direction", "address", link=link_to),
            Column("singular", "number", heading="σ", tip="singular", format=".3g"),
            replace(first, instead=lambda row: "" if row["singular"] else "no direction"),
            *others,
            Column("coherence", "ratio", tip="direction-coherence"),
            Column("share", get=lambda row: percent(row["share"]), tip="singular-share", css="n"),
        )
        return Table("", columns, rows)

    def subhead_table(self, rows: Sequence[SubheadRow]) -> Table:
        """Make a table of some of the head's channels (subheads), for the page."""

        def link_to(row: SubheadRow) -> str:
            return link("subhead", self.model, self.layer, self.head, row["subhead"], lens=self.lens)

        def similarity(matrix: Literal["vo", "qk"], heading: str) -> Column:
            def larger(row: SubheadRow) -> float:
                of = row["similarity"][matrix]
                return max(of["top"], of["bottom"]) if of else 0.0

            return Column(matrix, "ratio", get=larger, heading=heading, tip="similarity")

        vectors = [
            Column(name, "tokens", heading=f"{name} {'writes' if name == 'o' else 'reads'}", tip=kind)
            for name, kind in SUBHEAD_KINDS.items()
            if rows[0][name] is not None  # type: ignore[literal-required]
        ]
        compared = [("vo", "v and o"), ("qk", "q and k")]
        numbers = [similarity(matrix, what) for matrix, what in compared if self.shuffled[matrix]]  # type: ignore
        return Table("", (Column("subhead", "address", link=link_to), *vectors, *numbers), rows)

    def about(self) -> dict[str, Any]:
        of_head = {"layer": self.layer, "head": self.head}
        return {"model": self.model, **of_head, "lens": self.lens, "preset": self.preset}

    def tables(self) -> list[Table]:
        name = f"{self.model}, layer {self.layer}, head {self.head}"
        return [
            *_change_tables(self, name),
            *(table for matrix in MATRICES for pairs in self.shown for table in _glance_tables(name, matrix, pairs)),
            *_subhead_tables(self, name),
            *_direction_tables(self, name),
            *_position_tables(self, name),
        ]


def head(site: ModelSite, at: HeadAt, ask: HeadArguments) -> HeadView:
    """A head at a glance: its first token pairs, and the first tokens of its channels (subheads) and singular
    directions."""
    index, layer, head, lens, preset = site.index, at.layer, at.head, ask.lens, ask.preset
    hubs = site.left_out(lens)  # hubs are skipped among the first tokens of subheads and directions
    check_lens(index, lens)
    check_kinds(index, *MATRICES, *SUBHEAD_KINDS.values(), *DIRECTION_KINDS)
    check_number(index, "head", head, index.shape.n_heads)
    asked = _pairs(site, layer, head, lens, preset) if index.stored.pairs else None
    words = _other_pairs(site, layer, head, asked, head_lens(index), HEAD_PRESET)
    asks_for_list = preset != PAPER_PRESET and words is not asked
    beside = asked if asks_for_list else _other_pairs(site, layer, head, asked, index.stored.lens, PAPER_PRESET)
    return HeadView(
        **of_index(index),
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
        directions=_directions(index, layer, head, lens, hubs),
        positions=index.positions(layer, head),
        change={matrix: matrix_change(index.shard(layer), matrix, head) for matrix in MATRICES}
        if index.stored.difference
        else None,
        labels=labels_of(index, site.library.labels.of(index).of_head(layer, head, *MATRICES)),
        note=head_note(index.shape, head),
    )


def _pairs(site: ModelSite, layer: int, head: int, lens: str, preset: str) -> HeadPairs:
    vo, qk = (_glance(site, matrix, layer, head, lens, preset) for matrix in MATRICES)
    return HeadPairs(lens=lens, preset=preset, vo=vo, qk=qk)


def _other_pairs(
    site: ModelSite, layer: int, head: int, asked: HeadPairs | None, lens: str, preset: str
) -> HeadPairs | None:
    """Return the head's token pairs under another lens (score) and preset (choice of pairs) than those asked for.
    Return None if both are the same, or if such pairs are not stored or are damaged, because the page is complete
    without them."""
    if asked is None or (lens, preset) == (asked.lens, asked.preset):
        return asked
    try:
        return _pairs(site, layer, head, lens, preset)
    except IndexFault:
        return None


def _glance(site: ModelSite, matrix: str, layer: int, head: int, lens: str, preset: str) -> MatrixGlance:
    index = site.index
    pairs = stored_pairs(index, matrix, layer, head, lens, preset, PAIRS_AT_A_GLANCE, site.outside_pairs)
    return MatrixGlance(
        top=pairs.top,
        bottom=pairs.bottom,
        coherence=pairs.coherence[0],
        readability=finite(index.shard(layer).heads.readabilities(matrix, head, lens, preset)[0]),
        columns=PAIR_NAMES[matrix],
        hidden=pairs.hidden,
    )


def _subheads(index: Index, layer: int, head: int, lens: str, hubs: frozenset[int]) -> list[SubheadRow] | None:
    shard, shape = index.shard(layer), index.shape
    if not index.stored.subheads:
        return None
    numbers = np.arange(shape.d_head)
    lists = [
        first_tokens(shard, kind, shape.row(kind, head, 0) + numbers, lens, VECTOR_TOKENS, hubs)
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
    """Return, for the difference of two models, how much the vectors of each channel (subhead) of a head changed, by
    kind of vector."""
    if not index.stored.difference:
        return {}
    shape = index.shape
    numbers = np.arange(shape.d_head)
    kinds = {name: kind for name, kind in SUBHEAD_KINDS.items() if kind in index.stored.kinds}
    return {
        name: vector_changes(shard, kind)[shape.row(kind, head, 0) + numbers].tolist() for name, kind in kinds.items()
    }


def _directions(
    index: Index, layer: int, head: int, lens: str, hubs: frozenset[int]
) -> OfMatrices[MatrixDirections] | None:
    """Return the singular directions of both matrices, or None if the index stores none. The given hubs (tokens in very
    many lists) are left out of their first tokens."""
    matrices, shard = index.stored.directions, index.shard(layer)
    if not matrices:
        return None
    vo, qk = (
        _matrix_directions(index, shard, matrix, head, lens, hubs) if matrix in matrices else None
        for matrix in DIRECTIONS
    )
    return {"vo": vo, "qk": qk}


def _matrix_directions(
    index: Index, shard: Shard, matrix: str, head: int, lens: str, hubs: frozenset[int]
) -> MatrixDirections:
    d_head = index.shape.d_head
    coherence = direction_coherence(index, shard, matrix, head, lens)
    of_subheads = subhead_coherence(index, shard, matrix, head, lens)
    ends = coherence.ends if coherence else np.zeros(d_head, np.intp)
    numbers: list[float | None] = coherence.numbers.tolist() if coherence else [None] * d_head
    first = {
        side: _first_tokens(index, shard, kind, head, lens, ends, hubs)
        for side, kind in SIDE_KINDS.items()
        if kind in DIRECTIONS[matrix]
    }
    values, of_whole = shard.heads.all_singular(matrix)[head].tolist(), shares(index, shard, matrix, head)
    return MatrixDirections(
        best=[at for at in coherence.best if coherence.numbers[at] > NOISE][:DIRECTIONS_NAMED] if coherence else [],
        reads=coherence.reads if coherence else None,
        subheads_read=of_subheads.reads if of_subheads else None,
        rows=[
            {
                "direction": at,
                "singular": values[at],
                "share": of_whole[at],
                "end": "bottom" if ends[at] else "top",
                "coherence": numbers[at],
                "tokens": {side: of_side[at] for side, of_side in first.items()},
            }
            for at in range(d_head)
        ],
    )


def _first_tokens(
    index: Index, shard: Shard, kind: str, head: int, lens: str, ends: Any, hubs: frozenset[int]
) -> list[list[Token] | None]:
    """Return the first tokens of every singular direction of a head, at the direction's more readable end; None for a
    direction that does not exist."""
    d_head = index.shape.d_head
    if kind not in index.stored.kinds:
        return [None] * d_head
    rows = index.shape.row(kind, head, 0) + np.arange(d_head)
    at_ends = [first_tokens(shard, kind, rows, lens, VECTOR_TOKENS, hubs, end) for end in ENDS]
    norms = shard.all_norms(kind)[rows]
    return [tokens_of(index.tokens, at_ends[end][at]) if norms[at] else [] for at, end in enumerate(ends)]


def _change_tables(view: HeadView, name: str) -> list[Table]:
    """Make the table of how much each matrix changed, if the page is of the difference of two models."""
    if not view.change:
        return []
    columns = (MATRIX, Column("norm", "number"), Column("base_norm", "number"), CHANGE)
    rows = [{"matrix": matrix, **change} for matrix, change in view.change.items()]
    return [Table(f"{name}, change of its matrices", columns, rows, says_nothing_of=("lens", "preset"))]


def _position_tables(view: HeadView, name: str) -> list[Table]:
    """Make the table of where the head looks by position alone: named places, then distances."""
    if not view.positions:
        return []
    by_distance = zip(map(str, view.positions["distances"]), view.positions["by_distance"], strict=True)
    shares = [*view.positions["shares"].items(), *by_distance]
    rows = [{"place": place, "share": share} for place, share in shares]
    columns = (Column("place", heading="place, or distance"), Column("share", "ratio"))
    return [Table(f"{name}, attention by position alone", columns, rows, says_nothing_of=("lens", "preset"))]


def _glance_tables(name: str, matrix: str, pairs: HeadPairs) -> list[Table]:
    under = (constant("lens", pairs.lens), constant("preset", pairs.preset))
    glance = pairs.vo if matrix == "vo" else pairs.qk
    return pair_tables(name, matrix, f"{pairs.lens}, {pairs.preset}", glance.top, glance.bottom, under)


def _subhead_tables(view: HeadView, name: str) -> list[Table]:
    """Make tables of the first tokens of each channel (subhead) of the head. CSV has a row for each token, and a row
    for each end's similarity."""
    rows = view.subheads or ()
    changed = rows[0].get("change", {}) if rows else {}
    first_tokens = (Column(vector, "tokens", count=VECTOR_TOKENS) for vector in SUBHEAD_KINDS)
    changes = (change_of(vector, f"{vector} change") for vector in changed)
    columns = (Column("subhead", "number"), *first_tokens, *_similarity_columns(view), *changes)
    by_token = (
        Column("end"), Column("rank"), Column("subhead"), Column("vector"), Column("token", "token"),
    )  # fmt: skip
    tokens = [
        {"end": "top", "rank": rank, "subhead": row["subhead"], "vector": vector, "token": token}
        | ({"change": row["change"].get(vector)} if "change" in row else {})
        for row in rows
        for vector, of_vector in (("q", row["q"]), ("k", row["k"]), ("v", row["v"]), ("o", row["o"]))
        for rank, token in enumerate(of_vector or (), 1)
    ]
    similarities = [
        {"compared": matrix, "end": end, "subhead": row["subhead"], "similarity": number}
        for row in rows
        for matrix, of in (("vo", row["similarity"]["vo"]), ("qk", row["similarity"]["qk"]))
        if of
        for end, number in (("top", of["top"]), ("bottom", of["bottom"]))
    ]
    by_end = (Column("compared"), Column("end"), Column("subhead"), Column("similarity", "number"))
    return [
        Table(f"{name}, subheads ({view.lens})", columns, rows, "people"),
        Table("", (*by_token, Column("change")) if view.minus else by_token, tokens, "programs", ("preset",)),
        Table("", by_end, similarities, "programs", ("preset",)),
    ]


def _similarity_columns(view: HeadView) -> list[Column]:
    """Return the columns of the similarities of v and o, and of q and k, at the top and the bottom of the list, for
    people."""

    def column(matrix: str, end: str) -> Column:
        return Column(f"{matrix} {end}", "ratio", get=lambda row: row["similarity"][matrix][end])

    compared = [matrix for matrix in MATRICES if view.shuffled["vo" if matrix == "vo" else "qk"]]
    return [column(matrix, end) for matrix in compared for end in ENDS]


DIRECTION_NUMBERS = (
    Column("direction", "number"),
    Column("singular", "number"),
    Column("share", "ratio"),
    Column("coherence", "ratio"),
    Column("end"),
)
DIRECTIONS_BY_TOKEN = (
    Column("end"), Column("rank"), Column("direction"), Column("vector"), Column("token", "token"),
    Column("singular"), Column("share"), Column("coherence"),
)  # fmt: skip


def _direction_tables(view: HeadView, name: str) -> list[Table]:
    """Make tables of singular directions: one of each matrix for people, and one with a row for each token for CSV."""
    tables = []
    directions = view.directions or {"vo": None, "qk": None}
    for matrix, of in (("vo", directions["vo"]), ("qk", directions["qk"])):
        if of is None:
            continue
        title = f"{name}, directions of {matrix} ({view.lens}){_reads(of)}"
        tables.append(Table(title, (*DIRECTION_NUMBERS, *map(_side, DIRECTIONS[matrix])), of.rows, "people"))
        tables.append(Table("", DIRECTIONS_BY_TOKEN, list(_by_token(matrix, of)), "programs", ("preset",)))
    return tables


def _reads(of: MatrixDirections) -> str:
    """Return a text with the mean coherence (similarity of a list's tokens) of the ten best singular directions and, to
    compare, of the ten best subheads (channels)."""
    if of.reads is None:
        return ""
    beside = "" if of.subheads_read is None else f", of subheads {of.subheads_read:.2f}"
    return f"; coherence of the ten best {of.reads:.2f}{beside}"


SIDES = {kind: side for side, kind in SIDE_KINDS.items()}
ON_PAGE = {"in": "in reads", "out": "out writes"}  # headings of the two sides on a page


def _side(kind: str) -> Column:
    side = SIDES[kind]
    heading = ON_PAGE.get(side, side)
    return Column(
        side, "tokens", get=lambda row: row["tokens"][side], count=VECTOR_TOKENS, page_heading=heading, tip=kind
    )


def _by_token(matrix: str, of: MatrixDirections) -> Iterator[dict[str, Any]]:
    """Yield a row for each token of each side of the singular directions."""
    for row in of.rows:
        numbers = {name: row[name] for name in ("direction", "end", "singular", "share", "coherence")}
        for side, tokens in row["tokens"].items():
            for rank, token in enumerate(tokens or (), 1):
                yield {"vector": f"{matrix}_{side}", "rank": rank, "token": token, **numbers}


HEAD = Page(
    name="head",
    title="Head {head} of layer {layer}",
    at=HeadAt,
    arguments=HeadArguments,
    view=HeadView,
    make=head,
    formats=PICTURE_FORMATS,
    in_python="This is head L{layer}H{head}: model.head({layer}, {head})",
)
