"""Turn columns into frames of pandas, polars or Arrow, without a loop over the entries.

A column is an array, a `Named` (numbers that stand for texts) or a list of plain values. Columns with few different
names, such as lenses, become categories. Tokens become plain strings, which can be compared or joined without knowing
of categories.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lexiscope.app.notebook.errors import needed_for
from lexiscope.precompute.export.columns import Columns, Named

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

NULLABLE = ("head",)  # nullable in every frame, so that frames of neurons and of heads can be joined


@dataclass(frozen=True, eq=False)
class Nullable:
    """A column of numbers, and which of them are missing."""

    numbers: NDArray[Any]
    missing: NDArray[np.bool_]


FrameColumn: TypeAlias = NDArray[Any] | Named | Nullable | list[Any]
FrameColumns: TypeAlias = Mapping[str, FrameColumn]


class Framed:
    """The base class of objects that can be turned into frames."""

    def _columns(self) -> FrameColumns:
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the lists of the object as a pandas frame, with a row per entry."""
        return to_pandas(self._columns())

    def to_polars(self) -> "polars.DataFrame":
        """Return the same lists as a polars frame."""
        return to_polars(self._columns())

    def to_arrow(self) -> "pyarrow.Table":
        """Return the same lists as an Arrow table; of lists over layers, tokens are dictionaries."""
        return to_arrow(self._columns())


def stacked(tables: Sequence[Columns]) -> dict[str, FrameColumn]:
    """Join tables, one below the other. A column that one table lacks (None) has missing numbers in its rows."""
    columns: dict[str, FrameColumn] = {}
    for name in tables[0] if tables else ():
        of_tables = [table[name] for table in tables]
        first = next((column for column in of_tables if column is not None), None)
        if isinstance(first, Named):
            numbers = [column.numbers for column in of_tables if isinstance(column, Named)]
            columns[name] = Named(np.concatenate(numbers), first.names, first.tokens)
        elif name in NULLABLE:
            lengths = [len(np.asarray(table["score"])) for table in tables]
            values = [
                np.zeros(n, np.uint16) if column is None else np.asarray(column)
                for column, n in zip(of_tables, lengths, strict=True)
            ]
            missing = [np.full(n, column is None) for column, n in zip(of_tables, lengths, strict=True)]
            columns[name] = Nullable(np.concatenate(values), np.concatenate(missing))
        else:
            columns[name] = np.concatenate([np.asarray(column) for column in of_tables])
    return columns


def to_pandas(columns: FrameColumns) -> "pandas.DataFrame":
    with needed_for("to_pandas()", "pandas"):
        import pandas as pd

    def series(column: FrameColumn) -> Any:
        match column:
            case Named(numbers, names, tokens=True):
                return _texts(names)[numbers]
            case Named(numbers, names):
                return pd.Categorical.from_codes(numbers, categories=list(names))
            case Nullable(numbers, missing):
                return pd.arrays.IntegerArray(numbers, missing)
            case list() if _whole_numbers(column):
                return pd.array(column, dtype="Int64")
        return column

    return pd.DataFrame({name: series(column) for name, column in columns.items()})


def to_polars(columns: FrameColumns) -> "polars.DataFrame":
    with needed_for("to_polars()", "polars"):
        import polars as pl

    def series(name: str, column: FrameColumn) -> Any:
        match column:
            case Named(numbers, names, tokens):
                texts = pl.Series(name, list(names), pl.String).gather(numbers.astype(np.uint32))
                return texts if tokens else texts.cast(pl.Enum(list(names)))
            case Nullable(numbers, missing):
                return pl.select(pl.when(pl.Series(~missing)).then(pl.Series(numbers)).alias(name)).to_series()
            case list():
                return pl.Series(name, column, strict=False)
        return pl.Series(name, column)

    return pl.DataFrame([series(name, column) for name, column in columns.items()])


def to_arrow(columns: FrameColumns) -> "pyarrow.Table":
    with needed_for("to_arrow()", "pyarrow"):
        import pyarrow as pa

    def array(column: FrameColumn) -> Any:
        match column:
            case Named(numbers, names):
                return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(names, pa.string()))
            case Nullable(numbers, missing):
                return pa.array(numbers, mask=missing)
        return pa.array(column)

    return pa.table({name: array(column) for name, column in columns.items()})


def rows_as_columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, FrameColumn]:
    """Turn the rows of a page's table, which is short, into columns."""
    rows = list(rows)
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _whole_numbers(values: Sequence[Any]) -> bool:
    """Return True if a page's column holds whole numbers, some of which are missing: pandas would turn them into
    floats."""
    kinds = {type(value) for value in values}
    return kinds == {int, type(None)}


def _texts(names: Sequence[str]) -> NDArray[np.object_]:
    texts = np.empty(len(names), object)
    texts[:] = names
    return texts
