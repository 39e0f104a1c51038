"""The faces of a view: the page for people, JSON, and its tables as CSV, Markdown and LaTeX.
How the page looks is for rendering.py; which tables a view has, for tables.py and records.py."""

from collections.abc import Iterator

from app.formats.csv_rows import csv_columns, csv_rows
from app.formats.table_text import Source, as_latex, as_markdown, csv_parts
from app.formats.tables import tables
from app.html.rendering import PageRequest
from app.views.tokens import View


def csv_face(view: View) -> Iterator[bytes]:
    """In parts: a token may stand in a hundred thousand lists."""
    return (part.encode() for part in csv_parts(csv_rows(view), csv_columns(view)))


def table_face(face: str, view: View, request: PageRequest) -> bytes:
    match face:
        case "md":
            return as_markdown(tables(view), source(request)).encode()
        case "tex":
            return as_latex(tables(view), source(request)).encode()
    raise AssertionError(face)


def source(request: PageRequest) -> Source:
    build = ""
    if request.index:
        manifest = request.index.manifest
        build = f"weights {manifest.weights_sha256[:12]}, index {manifest.build[:12]}"
    return Source(request.origin + request.canonical, build)
