"""Which tables a view has, what a file of them is about, and the file itself: CSV, Markdown or LaTeX."""

from collections.abc import Iterator
from typing import Any

from lexiscope.app.formats.csv_format import csv_chunks
from lexiscope.app.formats.latex import as_latex
from lexiscope.app.formats.prompt_tables import prompt_tables
from lexiscope.app.formats.table import Table
from lexiscope.app.formats.text_formats import Source, as_markdown
from lexiscope.app.views.prompt import PromptView
from lexiscope.app.views.tokens import View, ViewOfModel
from lexiscope.precompute.index.index import Index


def view_csv(view: View) -> Iterator[str]:
    """The CSV of a view, in chunks of rows: a token may stand in a hundred thousand lists."""
    return csv_chunks(tables(view), about(view))


def view_text(format: str, view: View, url: str, index: Index | None) -> str:
    """Write the Markdown (`md`) or LaTeX (`tex`) of a view. The text names its page, the weights and the index."""
    build = f"weights {_weights(index)}, index build {index.manifest.build}" if index else ""
    write = {"md": as_markdown, "tex": as_latex}[format]
    return write(tables(view), Source(url, view.sources() or build))


def _weights(index: Index) -> str:
    tuned, minus = index.manifest.weights_sha256[:12], index.manifest.minus
    return f"{tuned} less {minus.weights_sha256[:12]} ({minus.tuned} − {minus.model})" if minus else tuned


def tables(view: View) -> list[Table]:
    match view:
        case PromptView():
            return prompt_tables(view)
    return view.tables()


def about(view: View) -> dict[str, Any]:
    """What CSV says on every row, after its own columns: a file may lose its name, and be put together with others."""
    if not isinstance(view, ViewOfModel):
        return _about(view)
    minus = {"minus": view.minus.model} if view.minus else {}
    return {**_about(view), **minus, "build": view.build}


def _about(view: View) -> dict[str, Any]:
    match view:
        case PromptView():
            return {"model": view.model, "convention": view.convention, "lens": view.lens}
    return view.about()
