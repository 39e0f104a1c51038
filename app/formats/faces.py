"""The faces of a view: the page for people, JSON, and its tables as CSV, Markdown and LaTeX.
How the page looks is for rendering.py; which tables a view has, for tables.py and records.py."""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from app.formats.csv_rows import csv_columns, csv_rows
from app.formats.table_text import Source, as_latex, as_markdown, csv_parts
from app.formats.tables import tables
from app.html.rendering import PageRequest
from app.site import Site
from app.views.view_types import View

MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "tex": "application/x-tex; charset=utf-8",
}
BARE_FACES = ("json", "csv")  # data and nothing but data: the same wherever they are served
FOR_PEOPLE = ("group",)  # arguments that change the page, not its data
WHOLE_FACES = ("csv",)  # all pages of a list at once
OF_PAGES = (*FOR_PEOPLE, "page")
SHORT = 48  # characters of a query that may be kept; longer ones hold what a visitor typed


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


def html_face(site: Site, name: str, variant: str, view: Any, request: PageRequest) -> bytes:
    if variant == "suggestions":
        return site.renderer.fragment("_suggestions", view, request).encode()
    return site.renderer.page(name, variant == "partial", view, request).encode()


def source(request: PageRequest) -> Source:
    build = ""
    if request.index:
        manifest = request.index.manifest
        build = f"weights {manifest.weights_sha256[:12]}, index {manifest.build[:12]}"
    return Source(request.origin + request.canonical, build)


def twin(canonical: str, face: str) -> str:
    """The address of another face of a page, without what only says how the page shows it."""
    return twin_addresses(canonical, (face,))[face]


def twin_addresses(canonical: str, faces: Iterable[str]) -> dict[str, str]:
    path, _, query = canonical.partition("?")
    start = "/index" if path == "/" else path
    if not query:
        return {face: f"{start}.{face}" for face in faces}
    shown, whole = _of_twins(query) if len(query) < SHORT else _of_twins.__wrapped__(query)
    return {face: f"{start}.{face}{whole if face in WHOLE_FACES else shown}" for face in faces}


@lru_cache(256)  # most are one of a few, such as lens=cosine
def _of_twins(query: str) -> tuple[str, str]:
    """What a query is at the addresses of data, and at those of whole lists."""
    said = [(part, part.partition("=")[0]) for part in query.split("&")]
    shown, whole = (
        "&".join([part for part, name in said if name not in left_out]) for left_out in (FOR_PEOPLE, OF_PAGES)
    )
    return shown and f"?{shown}", whole and f"?{whole}"


def links(canonical: str, faces: tuple[str, ...]) -> str:
    """The header that names a page's own address and its twins."""
    return _links_format(faces) % (canonical, *twin_addresses(canonical, faces).values())


@cache
def _links_format(faces: tuple[str, ...]) -> str:
    types = [MEDIA_TYPES[face].partition(";")[0] for face in faces]
    return ", ".join(['<%s>; rel="canonical"', *(f'<%s>; rel="alternate"; type="{type_}"' for type_ in types)])
