"""Turns a view into a page: the template environment, and what every template is given.
What is in a view is for views/, which page is asked for is for routes/, the markup of tokens is in markup.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from jinja2_fragments import render_block

from app import addresses, glossary, markup
from precompute.index import Index
from precompute.shape import LENSES, PRESETS

TEMPLATES = Path(__file__).parent.parent / "templates"
ASSETS = ("lexiscope.css", "lexiscope.js", "htmx-4.0.0.min.js", "favicon.svg")


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
        """The page, or of it only what changes from page to page: the block `content`."""
        context = {"view": view, "page": request}
        if partial:
            return render_block(self._environment, f"{name}.html", "content", context)
        return self._template(name).render(context)

    def fragment(self, name: str, view: Any, request: PageRequest) -> str:
        """A template that is no page, such as `_suggestions`."""
        return self._template(name).render(view=view, page=request)

    def _template(self, name: str) -> Template:
        return self._environment.get_template(f"{name}.html")


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
    made.globals |= markup.FUNCTIONS
    return made
