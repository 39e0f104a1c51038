"""Make an Arrow table of the lists of one layer, a row per entry; names and tokens are dictionaries."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lexiscope.precompute.export.columns import Column, Named, pair_columns, vector_columns
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import MATRICES


class Entries:
    """Make the rows of an index."""

    def __init__(self, index: Index, lenses: Sequence[str]) -> None:
        self.index = index
        self.lenses = tuple(lenses)
        self._tokens = pa.array(index.tokens.texts, pa.string())

    def of(self, name: str, layer: int) -> pa.Table:
        """Make the table of a kind of vectors, or of a matrix."""
        columns = (pair_columns if name in MATRICES else vector_columns)(self.index, name, layer, self.lenses)
        rows = len(columns["score"])  # type: ignore[arg-type]
        return pa.table({name: self._arrow(column, rows) for name, column in columns.items()})

    def _arrow(self, column: Column, rows: int) -> pa.Array:
        match column:
            case None:
                return pa.nulls(rows, pa.uint16())
            case Named(numbers, _, tokens=True):
                return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), self._tokens)
            case Named(numbers, names):
                return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names))
            case _:
                return pa.array(column)
