"""Many rows of a table in little room: columns of numbers, of which a row is made when somebody reads it.
Which columns there are, and what a row looks like, is for views/."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

from precompute.index.shard_reader import Array

BLOCK = 1000  # rows whose numbers are taken out of the columns at once

Row = TypeVar("Row")


class ColumnRows(Sequence[Row]):
    """A hundred thousand dicts would be tens of megabytes; whoever wants them all at once asks for a tuple."""

    __slots__ = ("_columns", "_make")

    def __init__(self, make: Callable[..., Row], *columns: Array) -> None:
        self._make = make
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> "ColumnRows[Row]": ...
    def __getitem__(self, at: int | slice) -> "Row | ColumnRows[Row]":
        if isinstance(at, slice):
            return ColumnRows(self._make, *(column[at] for column in self._columns))
        return self._make(*(column[at].tolist() for column in self._columns))

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), BLOCK):
            block = [column[start : start + BLOCK].tolist() for column in self._columns]
            yield from map(self._make, *block)
