"""Turns a view into a page: the template environment, and what every template is given.
What is in a view is for views/, which page is asked for is for routes/, the markup of tokens is in markup.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app import addresses, figures, glossary, markup
from precompute.index import Index, ranges
from precompute.shape import LENSES, PRESETS

TEMPLATES = Path(__file__).parent.parent / "templates"
ASSETS = ("lexiscope.css", "lexiscope.js", "htmx-4.0.0.min.js", "favicon.svg")
TYPES = {"json": "application/json", "csv": "text/csv", "md": "text/markdown", "tex": "application/x-tex"}


@dataclass(frozen=True)
class PageRequest:
    """What a page needs to know besides its view."""

    path: str  # without query
    canonical: str  # path and query, defaults left out
    origin: str = ""  # scheme://host, for links that leave the site
    twins: Mapping[str, str] = field(default_factory=dict)  # "json", "csv", "md", "tex" -> URL
    query: Mapping[str, Any] = field(default_factory=dict)  # the arguments as parsed
    index: Index | None = None  # of pages about a model
    models: tuple[str, ...] = ()  # all there are, for switching


class Renderer:
    """`assets` maps the names in ASSETS to the URLs they are served at."""

    def __init__(self, assets: Mapping[str, str] | None = None, templates: Path = TEMPLATES) -> None:
        self._environment = environment(templates, assets or {name: f"/static/{name}" for name in ASSETS})

    def page(self, name: str, partial: bool, view: Any, request: PageRequest) -> str:
        """The whole document, or only what changes from page to page: the inside of #page, with a title."""
        return self._environment.get_template(f"{name}.html").render(view=view, page=request, partial=partial)

    def fragment(self, name: str, view: Any, request: PageRequest) -> str:
        """A template that is no page, such as `_suggestions`."""
        return self.page(name, True, view, request)


def environment(templates: Path, assets: Mapping[str, str]) -> Environment:
    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,  # for every file: tokens are hostile text
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"url": addresses, "assets": assets, "lenses": LENSES, "presets": PRESETS, "glossary": glossary}
    made.globals |= {"term": term, "turned": turned, "ranges": ranges}
    made.globals |= {"types": TYPES} | figures.FUNCTIONS | markup.FUNCTIONS
    return made


@cache
def term(key: str, text: str = "") -> Markup:
    """A word that explains itself under the pointer, and leads to its place on the help page."""
    known = glossary.TERMS[key]
    href, tip = addresses.help_page(key), escape(known.text)
    return Markup(f'<a class="term" href="{href}" title="{tip}">{escape(text or known.name)}</a>')


def turned(address: str, **changes: Any) -> str:
    """The same page with other arguments; None takes one away."""
    path, _, query = address.partition("?")
    said = {name: value for name, value in (dict(parse_qsl(query)) | changes).items() if value is not None}
    kept = {name: value for name, value in said.items() if value != addresses.DEFAULTS.get(name)}
    return f"{path}?{urlencode(kept)}" if kept else path
