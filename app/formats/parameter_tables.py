"""The tables of one parameter's page: a neuron, a subhead, a head's pairs, a head at a glance."""

from typing import Any

from app.formats.table import Column, Table, constant, ends_beside, ranked
from app.views.head import TOKENS, HeadView, MatrixGlance
from app.views.neuron import NeuronView
from app.views.pairs import COLUMNS, PairsReading, PairsView
from app.views.subhead import SUBHEAD_KINDS, SubheadView
from app.views.vectors import Vector, VectorReading

STORED = "stored"  # how lists are called beside those of another reading

RANK, SCORE = Column("rank", "number", heading="#"), Column("score", "number")
TOKEN_COLUMNS = (RANK, Column("token", "token", get=lambda entry: entry), SCORE)
LONG_SUBHEAD_COLUMNS = (
    Column("end"), Column("rank"), Column("subhead"), Column("vector"), Column("token", "token"),
)  # fmt: skip


def neuron_tables(view: NeuronView) -> list[Table]:
    vectors = {"key": view.key, "up": view.up, "value": view.value}
    return _vector_tables(view, f"layer {view.layer}, neuron {view.neuron}", vectors)


def subhead_tables(view: SubheadView) -> list[Table]:
    vectors = {"q": view.q, "k": view.k, "v": view.v, "o": view.o}
    return _vector_tables(view, f"layer {view.layer}, head {view.head}, subhead {view.subhead}", vectors)


def _vector_tables(view: NeuronView | SubheadView, what: str, vectors: dict[str, Vector | None]) -> list[Table]:
    """The stored lists, then those of another reading, if there is one."""
    readings: list[tuple[str, str, Vector | VectorReading]] = [
        ("", name, vector) for name, vector in vectors.items() if vector
    ]
    if view.reading:
        readings += [(view.reading.name, *vector) for vector in view.reading.vectors.items()]
    tables = []
    for reading, name, lists in readings:
        how = f"{view.lens}, reading {reading}" if reading else view.lens
        columns, rows = ends_beside(TOKEN_COLUMNS, lists.top, lists.bottom)
        tables.append(Table(f"{view.model}, {what}, {name} ({how})", columns, rows, "people"))
        of_reading = [constant("reading", reading or STORED)] if view.reading else []
        for end, entries in (("top", lists.top), ("bottom", lists.bottom)):
            which = (*of_reading, constant("vector", name), constant("end", end))
            tables.append(Table("", (*which, *TOKEN_COLUMNS), ranked(entries), "programs"))
    return tables


def pair_columns(matrix: str) -> tuple[Column, ...]:
    first, second = COLUMNS[matrix]
    return RANK, Column("from", "token", heading=first), Column("to", "token", heading=second), SCORE


def pairs_tables(view: PairsView) -> list[Table]:
    if view.reading is None:
        return _ends_of_pairs(view, view.matrix, view)
    return [
        *_ends_of_pairs(view, view.matrix, view, STORED),
        *_ends_of_pairs(view, view.matrix, view.reading, view.reading.name),
    ]


def head_tables(view: HeadView) -> list[Table]:
    title = f"{view.model}, layer {view.layer}, head {view.head}, subheads ({view.lens})"
    columns = (Column("subhead", "number"), *(Column(name, "tokens", count=TOKENS) for name in SUBHEAD_KINDS))
    return [
        *(_ends_of_pairs(view, "vo", view.vo) if view.vo else ()),
        *(_ends_of_pairs(view, "qk", view.qk) if view.qk else ()),
        Table(title, columns, view.subheads or (), "people"),
        Table("", LONG_SUBHEAD_COLUMNS, _long_subheads(view), "programs", ("preset",)),
    ]


def _long_subheads(view: HeadView) -> list[dict[str, Any]]:
    """A row for each token of each vector."""
    return [
        {"end": "top", "rank": rank, "subhead": row["subhead"], "vector": name, "token": token}
        for row in view.subheads or ()
        for name, tokens in (("q", row["q"]), ("k", row["k"]), ("v", row["v"]), ("o", row["o"]))
        for rank, token in enumerate(tokens or (), 1)
    ]


def _ends_of_pairs(
    view: PairsView | HeadView, matrix: str, lists: PairsView | MatrixGlance | PairsReading, reading: str = ""
) -> list[Table]:
    """`reading` is stored, or the name of another, where both are on the page."""
    how = f"{view.lens}, {view.preset}" + (f", reading {reading}" if reading not in ("", STORED) else "")
    where = f"{view.model}, layer {view.layer}, head {view.head}, {matrix}"
    of_reading = [constant("reading", reading)] if reading else []
    return [
        Table(
            f"{where}, {end} ({how})",
            (*of_reading, constant("matrix", matrix), constant("end", end), *pair_columns(matrix)),
            ranked(pairs),
        )
        for end, pairs in (("top", lists.top), ("bottom", lists.bottom))
    ]
