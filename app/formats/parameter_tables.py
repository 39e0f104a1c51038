"""The tables of one parameter's page: a neuron, a subhead, a direction, a head's pairs, a head at a glance."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from app.formats.difference_tables import change_columns, head_change_tables, subhead_change_columns
from app.formats.direction_tables import head_direction_tables
from app.formats.table import Column, Table, beside, constant, ranked
from app.views.classifier import ClassifierView
from app.views.difference import size_text
from app.views.direction import DirectionView
from app.views.head import TOKENS, HeadPairs, HeadView, MatrixGlance
from app.views.neuron import NeuronView
from app.views.pairs import COLUMNS, PairsReading, PairsView
from app.views.subhead import SUBHEAD_KINDS, SubheadView
from app.views.vectors import Vector, VectorReading
from precompute.shape import ENDS, MATRICES

STORED = "stored"  # how lists are called beside those of another reading

RANK, SCORE = Column("rank", "number", heading="#"), Column("score", "number")
TOKEN_COLUMNS = (RANK, Column("token", "token", get=lambda entry: entry), SCORE)
LONG_SUBHEAD_COLUMNS = (
    Column("end"), Column("rank"), Column("subhead"), Column("vector"), Column("token", "token"),
)  # fmt: skip
LONG_SIMILARITY_COLUMNS = (Column("compared"), Column("end"), Column("subhead"), Column("similarity", "number"))


def neuron_tables(view: NeuronView) -> list[Table]:
    vectors = {"key": view.key, "up": view.up, "value": view.value}
    return _vector_tables(view, f"layer {view.layer}, neuron {view.neuron}", vectors)


def subhead_tables(view: SubheadView) -> list[Table]:
    vectors = {"q": view.q, "k": view.k, "v": view.v, "o": view.o}
    return _vector_tables(view, f"layer {view.layer}, head {view.head}, subhead {view.subhead}", vectors)


def direction_tables(view: DirectionView) -> list[Table]:
    """With the singular value of each side, which two sides share."""
    of_sides = {"in": view.vo, "out": view.vo, "query": view.qk, "key": view.qk}
    values = {name: (of["singular"], of["share"]) for name, of in of_sides.items() if of}
    what = f"layer {view.layer}, head {view.head}, direction {view.direction}"
    return _vector_tables(view, what, view.vectors, values)


def classifier_tables(view: ClassifierView) -> list[Table]:
    """Every vector on the page, by its label or its number."""
    tables = []
    for each in view.vectors:
        what = f"{view.model}, {each.kind} {each.index}{f', {each.label}' if each.label else ''} ({view.lens})"
        columns, rows = beside(TOKEN_COLUMNS, each.vector.top, each.vector.bottom)
        tables.append(Table(what, columns, rows, "people"))
        of_vector = (constant("kind", each.kind), constant("index", each.index), constant("label", each.label or ""))
        for end, entries in (("top", each.vector.top), ("bottom", each.vector.bottom)):
            tables.append(Table("", (*of_vector, constant("end", end), *TOKEN_COLUMNS), ranked(entries), "programs"))
    return tables


def _vector_tables(
    view: NeuronView | SubheadView | DirectionView,
    what: str,
    vectors: Mapping[str, Vector | None],
    singular: Mapping[str, tuple[float, float | None]] = MappingProxyType({}),
) -> list[Table]:
    """The stored lists, then those of another reading, if there is one; `singular`: value and share by vector."""
    readings: list[tuple[str, str, Vector | VectorReading]] = [
        ("", name, vector) for name, vector in vectors.items() if vector
    ]
    if view.reading:
        readings += [(view.reading.name, *vector) for vector in view.reading.vectors.items()]
    tables = []
    for reading, name, lists in readings:
        how = f"{view.lens}, reading {reading}" if reading else view.lens
        has_base = isinstance(lists, Vector) and lists.base_norm is not None
        numbers = change_columns(lists) if isinstance(lists, Vector) and has_base else []
        if isinstance(lists, Vector) and has_base:
            how += f"; {size_text(lists.norm, lists.change)}"
            if lists.unchanged:
                tables.append(Table("", (constant("vector", name), *numbers), [{}], "programs"))
        if name in singular:
            value, share = singular[name]
            numbers = [constant("singular", value), constant("share", share)]
            how += f"; singular value {value:.4g}" if value else "; no direction"
        columns, rows = beside(TOKEN_COLUMNS, lists.top, lists.bottom)
        tables.append(Table(f"{view.model}, {what}, {name} ({how})", columns, rows, "people"))
        of_reading = [constant("reading", reading or STORED)] if view.reading else []
        for end, entries in (("top", lists.top), ("bottom", lists.bottom)):
            which = (*of_reading, constant("vector", name), constant("end", end))
            tables.append(Table("", (*which, *TOKEN_COLUMNS, *numbers), ranked(entries), "programs"))
    return tables


def pair_columns(matrix: str) -> tuple[Column, ...]:
    first, second = COLUMNS[matrix]
    return RANK, Column("from", "token", heading=first), Column("to", "token", heading=second), SCORE


def pairs_tables(view: PairsView) -> list[Table]:
    """The stored pairs, then those of another reading, if there is one."""
    readings: list[tuple[str, PairsView | PairsReading]] = [("", view)]
    if view.reading:
        readings.append((view.reading.name, view.reading))
    tables = []
    for name, lists in readings:
        how = f"{view.lens}, {view.preset}" + (f", reading {name}" if name else "")
        columns = [constant("reading", name or STORED)] if view.reading else []
        if view.norm is not None:
            how += f"; {size_text(view.norm, view.change)}"
            columns += change_columns(view)
        tables += _ends_of_pairs(view, view.matrix, how, lists, columns)
    if view.unchanged:
        tables.append(Table("", (constant("matrix", view.matrix), *change_columns(view)), [{}], "programs"))
    return tables


def head_tables(view: HeadView) -> list[Table]:
    title = f"{view.model}, layer {view.layer}, head {view.head}, subheads ({view.lens})"
    first_tokens = (Column(name, "tokens", count=TOKENS) for name in SUBHEAD_KINDS)
    columns = (Column("subhead", "number"), *first_tokens, *_similarity_columns(view), *subhead_change_columns(view))
    return [
        *head_change_tables(view),
        *(table for matrix in MATRICES for pairs in view.shown for table in _glance_tables(view, matrix, pairs)),
        Table(title, columns, view.subheads or (), "people"),
        Table("", _long_subhead_columns(view), _long_subheads(view), "programs", ("preset",)),
        Table("", LONG_SIMILARITY_COLUMNS, _long_similarities(view), "programs", ("preset",)),
        *head_direction_tables(view),
    ]


def _long_subhead_columns(view: HeadView) -> tuple[Column, ...]:
    return (*LONG_SUBHEAD_COLUMNS, Column("change")) if view.minus else LONG_SUBHEAD_COLUMNS


def _similarity_columns(view: HeadView) -> list[Column]:
    """Of v and o, q and k, with both ends, for people."""

    def column(matrix: str, end: str) -> Column:
        return Column(f"{matrix} {end}", "ratio", get=lambda row: row["similarity"][matrix][end])

    compared = [matrix for matrix in MATRICES if view.shuffled["vo" if matrix == "vo" else "qk"]]
    return [column(matrix, end) for matrix in compared for end in ENDS]


def _long_similarities(view: HeadView) -> list[dict[str, Any]]:
    """A row for each end of each subhead's similarities."""
    return [
        {"compared": matrix, "end": end, "subhead": row["subhead"], "similarity": number}
        for row in view.subheads or ()
        for matrix, of in (("vo", row["similarity"]["vo"]), ("qk", row["similarity"]["qk"]))
        if of
        for end, number in (("top", of["top"]), ("bottom", of["bottom"]))
    ]


def _glance_tables(view: HeadView, matrix: str, pairs: HeadPairs) -> list[Table]:
    under = (constant("lens", pairs.lens), constant("preset", pairs.preset))
    glance = pairs.vo if matrix == "vo" else pairs.qk
    return _ends_of_pairs(view, matrix, f"{pairs.lens}, {pairs.preset}", glance, under)


def _long_subheads(view: HeadView) -> list[dict[str, Any]]:
    """A row for each token of each vector."""
    return [
        {"end": "top", "rank": rank, "subhead": row["subhead"], "vector": name, "token": token}
        | ({"change": row["change"].get(name)} if "change" in row else {})
        for row in view.subheads or ()
        for name, tokens in (("q", row["q"]), ("k", row["k"]), ("v", row["v"]), ("o", row["o"]))
        for rank, token in enumerate(tokens or (), 1)
    ]


def _ends_of_pairs(
    view: PairsView | HeadView,
    matrix: str,
    how: str,
    lists: PairsView | PairsReading | MatrixGlance,
    first_columns: Iterable[Column],
) -> list[Table]:
    """`how` the pairs were found, for people; `first_columns` say it to programs."""
    return [
        Table(
            f"{view.model}, layer {view.layer}, head {view.head}, {matrix}, {end} ({how})",
            (*first_columns, constant("matrix", matrix), constant("end", end), *pair_columns(matrix)),
            ranked(pairs),
        )
        for end, pairs in (("top", lists.top), ("bottom", lists.bottom))
    ]
