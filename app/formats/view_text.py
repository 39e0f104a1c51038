"""A view as text in another format than HTML and JSON: CSV, Markdown, LaTeX."""

from collections.abc import Iterator

from app.formats.csv_format import csv_chunks
from app.formats.tables import about, tables
from app.formats.text_formats import Source, as_latex, as_markdown
from app.views.tokens import View
from precompute.index.index import Index


def view_csv(view: View) -> Iterator[str]:
    """In chunks of rows: a token may stand in a hundred thousand lists."""
    return csv_chunks(tables(view), about(view))


def view_text(format_: str, view: View, url: str, index: Index | None) -> str:
    """`md` or `tex`; it says which page it is of, and which weights and index."""
    build = f"weights {index.manifest.weights_sha256[:12]}, index {index.manifest.build[:12]}" if index else ""
    write = {"md": as_markdown, "tex": as_latex}[format_]
    return write(tables(view), Source(url, build))
