"""Write tables as Parquet, with the rows and columns of their CSV: numbers are numbers, and lists are lists. This needs
pyarrow, the extra `parquet`."""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

from lexiscope.app.formats.csv_format import table_rows
from lexiscope.app.formats.table import Table

ROWS_PER_CHUNK = 2000


def parquet_chunks(tables: Sequence[Table], about: Mapping[str, Any]) -> Iterator[bytes]:
    """Write the file in chunks of rows. Raise ModuleNotFoundError at once if pyarrow is not installed."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names, rows = table_rows(tables, about)
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)] or [pa.array([])] * len(names), names)

    def chunks() -> Iterator[bytes]:
        out = BytesIO()  # what is written and not sent yet
        with ParquetWriter(out, table.schema) as writer:
            for batch in table.to_batches(ROWS_PER_CHUNK):
                writer.write_batch(batch)
                yield out.getvalue()
                out.seek(0)
                out.truncate()
        yield out.getvalue()

    return chunks()
