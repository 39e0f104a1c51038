"""Tables of a head's pairs."""

from collections.abc import Iterable, Sequence

from lexiscope.app.formats.table import RANK, SCORE, Column, Table, constant, ranked
from lexiscope.app.views.pair_lists import COLUMNS
from lexiscope.app.views.tokens import TokenPair


def pair_columns(matrix: str) -> tuple[Column, ...]:
    first, second = COLUMNS[matrix]
    return RANK, Column("from", "token", heading=first), Column("to", "token", heading=second), SCORE


def pair_tables(
    head: str,
    matrix: str,
    how: str,
    top: Sequence[TokenPair],
    bottom: Sequence[TokenPair],
    first_columns: Iterable[Column] = (),
) -> list[Table]:
    """Both ends of a head's pairs. `how` says to people how they were found, `first_columns` say it to programs."""
    return [
        Table(
            f"{head}, {matrix}, {end} ({how})",
            (*first_columns, constant("matrix", matrix), constant("end", end), *pair_columns(matrix)),
            ranked(pairs),
        )
        for end, pairs in (("top", top), ("bottom", bottom))
    ]
