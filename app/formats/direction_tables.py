"""The tables of a head's singular directions, on its page."""

from collections.abc import Iterator
from typing import Any

from app.formats.table import Column, Table
from app.views.head import HeadView
from app.views.head_directions import TOKENS, MatrixDirections
from precompute.shape import DIRECTIONS

NUMBERS = (
    Column("direction", "number"),
    Column("singular", "number"),
    Column("share", "ratio"),
    Column("coherence", "ratio"),
    Column("end"),
)
LONG_COLUMNS = (
    Column("end"), Column("rank"), Column("direction"), Column("vector"), Column("token", "token"),
    Column("singular"), Column("share"), Column("coherence"),
)  # fmt: skip


def head_direction_tables(view: HeadView) -> list[Table]:
    """For people a table of each matrix; in CSV token by token."""
    if view.directions is None:
        return []
    tables = []
    for matrix, of in (("vo", view.directions["vo"]), ("qk", view.directions["qk"])):
        if of is None:
            continue
        title = f"{view.model}, layer {view.layer}, head {view.head}, directions of {matrix} ({view.lens}){_reads(of)}"
        tables.append(Table(title, (*NUMBERS, *map(_side, DIRECTIONS[matrix])), of.rows, "people"))
        tables.append(Table("", LONG_COLUMNS, list(_long(matrix, of)), "programs", ("preset",)))
    return tables


def _reads(of: MatrixDirections) -> str:
    """How well they read, and subheads beside them."""
    if of.reads is None:
        return ""
    beside = "" if of.subheads_read is None else f", of subheads {of.subheads_read:.2f}"
    return f"; coherence of the ten best {of.reads:.2f}{beside}"


def _side(kind: str) -> Column:
    side = kind.partition("_")[2]
    return Column(side, "tokens", get=lambda row: row["tokens"][side], count=TOKENS)


def _long(matrix: str, of: MatrixDirections) -> Iterator[dict[str, Any]]:
    """A row for each token of each side."""
    for row in of.rows:
        numbers = {name: row[name] for name in ("direction", "end", "singular", "share", "coherence")}
        for side, tokens in row["tokens"].items():
            for rank, token in enumerate(tokens or (), 1):
                yield {"vector": f"{matrix}_{side}", "rank": rank, "token": token, **numbers}
