"""Write the tables of a page as a file: CSV, Parquet, Markdown or LaTeX."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lexiscope.app.formats.csv_format import csv_chunks
from lexiscope.app.formats.latex import as_latex
from lexiscope.app.formats.parquet import parquet_chunks
from lexiscope.app.formats.table import Table
from lexiscope.app.formats.text_formats import Source, as_markdown
from lexiscope.app.lists.view import View, ViewOfModel
from lexiscope.precompute.index.index import Index


def view_csv(view: View) -> Iterator[str]:
    """Write the CSV of a page, in chunks of rows, because a token may be in a hundred thousand lists."""
    return csv_chunks(view.tables(), about(view))


def view_parquet(view: View) -> Iterator[bytes]:
    """Write the rows of a page's CSV as Parquet, in chunks."""
    return parquet_chunks(view.tables(), about(view))


def view_text(format: str, view: View, url: str, index: Index | None) -> str:
    """Write the Markdown (`md`) or LaTeX (`tex`) of a page. The text names the page's address, the weights and the
    index."""
    build = f"weights {_weights(index)}, index build {index.manifest.build}" if index else ""
    write = {"md": as_markdown, "tex": as_latex}[format]
    tables = [replace(table, title=table.title + _kept_to(view, table)) for table in view.tables()]
    return write(tables, Source(url, view.sources() or build))


def _kept_to(view: View, table: Table) -> str:
    """Return what the caption of a table adds if the lists of the page are kept to some tokens."""
    words = bool(view.only and view.only["words"]) and not ("preset" in view.about() and ", words" in table.title)
    vocabulary = view.only and view.only["vocabulary"]
    said = ("words only" * words, f"only tokens of {vocabulary}" * bool(vocabulary), "without hubs" * bool(view.hubs))
    return "".join(f", {each}" for each in said if each)


def _weights(index: Index) -> str:
    tuned, minus = index.manifest.weights_sha256[:12], index.manifest.minus
    return f"{tuned} less {minus.weights_sha256[:12]} ({minus.tuned} − {minus.model})" if minus else tuned


def about(view: View) -> dict[str, Any]:
    """Return the columns that CSV has at the end of every row: the model, parameter or words that the page is about,
    and the index."""
    if not isinstance(view, ViewOfModel):
        return view.about()
    only = {"only": "words" if view.only["words"] else None, "vocabulary": view.only["vocabulary"]} if view.only else {}
    kept = {name: value for name, value in {**only, "hubs": view.hubs}.items() if value}
    if "preset" in view.about():  # says that these are words
        kept.pop("only", None)
    minus = {"minus": view.minus.model} if view.minus else {}
    return {**view.about(), **minus, **kept, "build": view.build}
