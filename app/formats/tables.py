"""Which tables a view has, what a file of them is about, and the file itself: CSV, Markdown or LaTeX."""

from collections.abc import Iterator
from typing import Any

from lexiscope.app.formats.csv_format import csv_chunks, defused
from lexiscope.app.formats.latex import as_latex
from lexiscope.app.formats.stored_tables import (
    home_tables,
    layer_lists_tables,
    layer_tables,
    model_tables,
    search_tables,
)
from lexiscope.app.formats.table import Table
from lexiscope.app.formats.text_formats import Source, as_markdown
from lexiscope.app.views.home import HomeView
from lexiscope.app.views.layer import LayerView
from lexiscope.app.views.layer_lists import LayerListsView
from lexiscope.app.views.model import ModelView
from lexiscope.app.views.search import SearchView
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
        case LayerView():
            return layer_tables(view)
        case LayerListsView():
            return layer_lists_tables(view)
        case SearchView():
            return search_tables(view)
        case ModelView():
            return model_tables(view)
        case HomeView():
            return home_tables(view)
    return view.tables()


def about(view: View) -> dict[str, Any]:
    """What CSV says on every row, after its own columns: a file may lose its name, and be put together with others."""
    if not isinstance(view, ViewOfModel):
        return _about(view)
    minus = {"minus": view.minus.model} if view.minus else {}
    return {**_about(view), **minus, "build": view.build}


def _about(view: View) -> dict[str, Any]:
    match view:
        case LayerView() | LayerListsView():
            only = {"listing": view.token["token"], "listing_id": view.token["id"]} if view.token else {}
            return {"model": view.model, "layer": view.layer, "lens": view.lens, **only}
        case ModelView():
            return {"model": view.model, "lens": view.lens, "preset": view.preset}
        case SearchView():
            return {"model": view.model, "q": defused(view.q), "lens": view.lens}
    return view.about()
