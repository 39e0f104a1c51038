"""Make tables of a head's token pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lexiscope.app.formats.table import RANK, SCORE, Column, Table, constant, ranked
from lexiscope.app.lists.pair_lists import PAIR_NAMES
from lexiscope.app.lists.view import TokenPair


def pair_columns(matrix: str) -> tuple[Column, ...]:
    first, second = PAIR_NAMES[matrix]
    from_token = Column("from", "token", heading=first, page_heading=f"{first} →")
    return RANK, from_token, Column("to", "token", heading=second), SCORE


def pair_list(pairs: Iterable[TokenPair], matrix: str, lens: str = "dot") -> Table:
    """Make a table of token pairs with their scores under a lens, for a page."""
    columns = pair_columns(matrix)
    if lens == "cosine":
        columns = (
            *columns[:-1],
            replace(SCORE, tip="e M eᵀ of embeddings of length one: larger than 1 where M is long"),
        )
    return Table("", columns, ranked(pairs), key=lambda row: (row["from"]["id"], row["to"]["id"]))


def pair_groups(pairs: Iterable[TokenPair], matrix: str) -> Table:
    """Make a table of token pairs grouped by their first token, for a page. Each group is placed where its best pair is
    in the list."""
    groups: dict[int, list[TokenPair]] = {}
    for pair in pairs:
        groups.setdefault(pair["from"]["id"], []).append(pair)
    first, second = PAIR_NAMES[matrix]
    columns = (
        Column("from", "token", get=lambda group: group[0]["from"], page_heading=f"{first} →"),
        Column("to", "tokens", get=lambda group: [pair["to"] for pair in group], heading=second, css="many"),
        Column("score", "number", get=lambda group: group[0]["score"], heading="best score", tip="score"),
    )
    return Table("", columns, groups.values())


def pair_tables(
    head: str,
    matrix: str,
    how: str,
    top: Sequence[TokenPair],
    bottom: Sequence[TokenPair],
    first_columns: Iterable[Column] = (),
) -> list[Table]:
    """Make tables of a head's token pairs with the largest and with the most negative scores. `how` describes for
    people how the pairs were found, `first_columns` do so in CSV."""
    return [
        Table(
            f"{head}, {matrix}, {end} ({how})",
            (*first_columns, constant("matrix", matrix), constant("end", end), *pair_columns(matrix)),
            ranked(pairs),
        )
        for end, pairs in (("top", top), ("bottom", bottom))
    ]
