"""The faces of a view: the page for people, JSON, and its tables as CSV, Markdown and LaTeX.
How the page looks is for rendering.py; which tables a view has, for tables.py and records.py."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from app.records import columns, records
from app.rendering import PageRequest
from app.site import Site
from app.table_text import Source, as_csv, as_latex, as_markdown
from app.tables import tables
from app.view_types import View

MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "tex": "application/x-tex; charset=utf-8",
}
BARE_FACES = ("json", "csv")
FOR_PEOPLE = ("group",)  # arguments that change the page, not its data


def bare_face(face: str, view: View) -> bytes:
    """Data and nothing but data: the same wherever it is served."""
    return view.json_bytes() if face == "json" else as_csv(records(view), columns(view)).encode()


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
    start, end = _around_face(canonical)
    return {face: f"{start}.{face}{end}" for face in faces}


def links(canonical: str, faces: tuple[str, ...]) -> str:
    """The header that names a page's own address and its twins."""
    return _links_format(faces) % (canonical, *_around_face(canonical) * len(faces))


def _around_face(canonical: str) -> tuple[str, str]:
    """What stands before and after the ending of a twin's address."""
    path, _, query = canonical.partition("?")
    if query:
        query = "&".join([said for said in query.split("&") if said.partition("=")[0] not in FOR_PEOPLE])
    return "/index" if path == "/" else path, f"?{query}" if query else ""


@cache
def _links_format(faces: tuple[str, ...]) -> str:
    types = {face: MEDIA_TYPES[face].partition(";")[0] for face in faces}
    alternates = [f'<%s.{face}%s>; rel="alternate"; type="{media_type}"' for face, media_type in types.items()]
    return ", ".join(['<%s>; rel="canonical"', *alternates])
