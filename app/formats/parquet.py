"""Write tables as Parquet, with the rows and columns of their CSV: numbers are numbers, and lists are lists. This needs
pyarrow, the extra `parquet`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lexiscope.app.formats.csv_format import table_rows
from lexiscope.app.formats.table import Table

ROWS_PER_GROUP = 2000


class _Written:
    """The bytes that are written and not sent yet, as the file object that pyarrow writes to."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        written, self._parts = b"".join(self._parts), []
        return written


def parquet_chunks(tables: Sequence[Table], about: Mapping[str, Any]) -> Iterator[bytes]:
    """Write the file in chunks of rows. Raise ModuleNotFoundError at once if pyarrow is not installed."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names, rows = table_rows(tables, about)
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)] or [pa.array([])] * len(names), names)

    def chunks() -> Iterator[bytes]:
        out = _Written()
        with ParquetWriter(out, table.schema) as writer:
            for start in range(0, table.num_rows, ROWS_PER_GROUP):
                writer.write_table(table.slice(start, ROWS_PER_GROUP))
                yield out.take()
        yield out.take()

    return chunks()
