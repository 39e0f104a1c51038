"""Write the lists of an index as data: one Parquet or CSV file for each kind of vectors and each matrix of heads, and
one for the moments of lists (the part `stats`).

The files are written to a folder beside the one that is asked for, which gets its name when all of them are there."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.errors import BuildError, DiskFull, NotFound
from lexiscope.precompute.export.columns import Column, Columns, Named, pair_columns, stats_columns, vector_columns
from lexiscope.precompute.files import FULL, PARTIAL, canonical_json, sha256_of
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.shape import MATRICES

Format = Literal["parquet", "csv"]
FORMATS: tuple[str, ...] = get_args(Format)
EXPORT_MANIFEST = "export.json"


class ExportProgress(Progress):
    unit = "file"
    to_do = "to write"


@dataclass(frozen=True)
class ExportOptions:
    names: tuple[str, ...] | None = None  # kinds, matrices and `stats`; None: all that are stored
    lenses: tuple[str, ...] | None = None
    format: Format = "parquet"
    threads: int = 2  # each thread writes a file


def export(index: Index, folder: Path, options: ExportOptions, progress: Progress) -> Path:
    """Write all layers that are ready. A damaged layer is an error, because a file must be whole."""
    stored = index.stored
    parts = ("stats",) if all(index.has_part("stats", layer) for layer in index.layers) else ()
    names = _chosen("kind", options.names, (*stored.kinds, *stored.matrices, *parts))
    lenses = _chosen("lens", options.lenses, stored.lenses)
    if not index.layers:
        raise BuildError(f"no layer of {index.manifest.model} is ready yet: there is nothing to export")
    for error in index.faults.values():
        raise error
    with _new_folder(folder) as beside:
        progress.start(index.manifest.model, len(names), 0, len(names))
        files = _write_files(Entries(index, lenses), names, beside, options, progress)
        manifest = {
            "format": 1,
            "model": index.manifest.model,
            "source": index.manifest.source,
            "revision": index.manifest.revision,
            "weights_sha256": index.manifest.weights_sha256,
            "build": index.manifest.build,
            "layers": index.layers,
            "lenses": lenses,
            "k": stored.k,
            "pairs": stored.pairs,
            "files": files,
        }
        (beside / EXPORT_MANIFEST).write_bytes(canonical_json(manifest) + b"\n")
    progress.stop()
    count = f"{len(files)} file{'s' if len(files) != 1 else ''}"
    progress.say(f"{folder} has {count}, {sum(file['bytes'] for file in files) / 1e6:.0f} MB")
    if len(index.layers) < index.shape.n_layers:
        of = f"{len(index.layers)} of {index.shape.n_layers} layers ({ranges(index.layers)})"
        progress.say(f"They are of {of}: the index of {index.manifest.model} is not complete yet")
    return folder


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Make a folder beside the one asked for; it gets that name at the end, or is removed after an error."""
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise BuildError(f"{folder} is there already: give a new folder, or remove it first")
    folder = folder.absolute()
    beside: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}{PARTIAL}")
        beside.mkdir()
        yield beside
        os.rename(beside, folder)
    except BaseException as error:
        if beside:
            shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
            kind, remedy = (DiskFull, "free some space") if error.errno in FULL else (BuildError, "give another folder")
            raise kind(f"cannot write {folder}: {error.strerror or error}; {remedy} and run this again") from error
        raise


def _write_files(
    entries: "Entries", names: Sequence[str], folder: Path, options: ExportOptions, progress: Progress
) -> list[dict[str, Any]]:
    """Write the files, and return the entry of the manifest about each."""

    def write(name: str) -> dict[str, Any]:
        path = folder / f"{name}.{options.format}"
        counted = _Counted(lambda: progress.step(1 / len(entries.index.layers)))
        with path.open("xb") as file:
            WRITERS[options.format](file, entries, name, counted)
            file.flush()
            os.fsync(file.fileno())
            n_bytes = file.tell()
        return {"file": path.name, "lists": name, "rows": counted.rows, "bytes": n_bytes, "sha256": sha256_of(path)}

    files = []
    with ThreadPoolExecutor(options.threads) as pool:
        try:
            for file in pool.map(write, names):
                files.append(file)
                progress.unit_done(file["lists"])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return files


class Entries:
    """A maker of Arrow tables of an index, with a row for each entry of a list; names and tokens are dictionary
    columns."""

    def __init__(self, index: Index, lenses: Sequence[str]) -> None:
        self.index = index
        self.lenses = tuple(lenses)
        self._tokens = pa.array(index.tokens.texts, pa.string())

    def of(self, name: str, layer: int) -> pa.Table:
        """Return the table of a kind of vectors, of a matrix or of `stats`, in one layer."""
        columns: Columns
        if name == "stats":
            columns = stats_columns(self.index, layer, self.lenses)
        else:
            columns = (pair_columns if name in MATRICES else vector_columns)(self.index, name, layer, self.lenses)
        rows = len(columns["layer"])  # type: ignore[arg-type]
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


class _Counted:
    """Count the rows that are written into a file, and report each layer that is written."""

    def __init__(self, layer_written: Callable[[], None]) -> None:
        self.rows = 0
        self._layer_written = layer_written

    def add(self, rows: int) -> None:
        self.rows += rows
        self._layer_written()


def _write_parquet(file: IO[bytes], entries: Entries, name: str, counted: _Counted) -> None:
    """Write the file, with a row group (Parquet's unit of reading) for each layer."""
    schema = entries.of(name, entries.index.layers[0]).schema
    numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
    names = [column for column in schema.names if column not in numbers]
    with pa.parquet.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=names, use_byte_stream_split=numbers
    ) as writer:
        for layer in entries.index.layers:
            table = entries.of(name, layer)
            writer.write_table(table, row_group_size=max(1, len(table)))
            counted.add(len(table))


def _write_csv(file: IO[bytes], entries: Entries, name: str, counted: _Counted) -> None:
    schema = entries.of(name, entries.index.layers[0]).schema
    # The CSV writer knows no dictionaries.
    plain = pa.schema([(field.name, _plain_type(field.type)) for field in schema])
    with pa.csv.CSVWriter(file, plain) as writer:
        for layer in entries.index.layers:
            table = entries.of(name, layer)
            writer.write_table(table.cast(plain))
            counted.add(len(table))


def _plain_type(of: pa.DataType) -> pa.DataType:
    return of.value_type if pa.types.is_dictionary(of) else of


WRITERS: dict[str, Callable[[IO[bytes], Entries, str, _Counted], None]] = {"parquet": _write_parquet, "csv": _write_csv}


def _chosen(what: str, asked: Sequence[str] | None, there: Sequence[str]) -> tuple[str, ...]:
    if missing := [name for name in asked or () if name not in there]:
        raise NotFound(f"{what} {missing[0]!r} is not in this index: there are {', '.join(there)}")
    return tuple(name for name in there if asked is None or name in asked)
