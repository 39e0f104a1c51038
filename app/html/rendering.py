"""Turns a view into a page: the template environment, and what every template is given.
What is in a view is for views/, which page is asked for is for routes/, tokens are for markup.py, rows for rows.py."""

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app import addresses
from app.html import figures, glossary, live_rows, markup, place_rows, prompt_rows, rows, sections, switches
from app.html.resources import folder
from app.routes import openapi_text
from app.views import jumps
from app.views.clearer import clearer
from precompute.index.index import Index, ranges
from precompute.rebuild_command import command

ASSETS = ("lexiscope.css", "lexiscope.js", "htmx-4.0.0.min.js", "favicon.svg")

_MAX_BARS = 1000


@dataclass(frozen=True)
class PageRequest:
    """What a page needs to know besides its view."""

    path: str  # without query
    canonical: str  # path and query, defaults left out
    origin: str = ""  # scheme://host, for links that leave the site
    formats: Mapping[str, str] = field(default_factory=dict)  # "json", "csv", "md", "tex" -> URL
    index: Index | None = None  # of pages about a model
    models: tuple[str, ...] = ()  # all there are, for switching
    live: bool = False  # whether a worker answers for the model, so that links to live pages work

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The arguments in the canonical address: those that have their default are not there."""
        return dict(parse_qsl(self.canonical.partition("?")[2]))


class Renderer:
    """`assets` maps the names in ASSETS to the URLs they are served at."""

    def __init__(self, assets: Mapping[str, str] | None = None, templates: Path | None = None) -> None:
        urls = assets or {name: f"/static/{name}" for name in ASSETS}
        self._environment = environment(templates or folder("templates"), urls)
        self._environment.globals |= {"bar": self._bar, "footer": self._footer}
        self._bars: dict[tuple[str, str, bool], Markup] = {}
        self._footers: WeakKeyDictionary[Index, Markup] = WeakKeyDictionary()

    def page(self, name: str, partial: bool, view: Any, request: PageRequest) -> str:
        """The whole document, or only what changes from page to page: the inside of #page, with a title."""
        return self._environment.get_template(f"{name}.html").render(view=view, page=request, partial=partial)

    def fragment(self, name: str, view: Any, request: PageRequest) -> str:
        """A template that is no page, such as `_suggestions`."""
        return self.page(name, True, view, request)

    def _bar(self, request: PageRequest) -> Markup:
        """The same on every page of a model, unless it shows a search: made once."""
        key = (request.index.manifest.model if request.index else "", request.query.get("lens") or "", request.live)
        made = None if request.query.get("q") else self._bars.get(key)
        if made is None:
            made = Markup(self._environment.get_template("_bar.html").render(page=request))
            if not request.query.get("q") and len(self._bars) < _MAX_BARS:
                self._bars[key] = made
        return made

    def _footer(self, index: Index | None) -> Markup:
        """The same on every page of an index, and dear because it tells hashes: made once."""
        made = self._footers.get(index) if index else None
        if made is None:
            made = Markup(self._environment.get_template("_footer.html").render(index=index))
            if index:
                self._footers[index] = made
        return made


class _Environment(Environment):
    """Globals do not change once a template is loaded: looked up in a plain dict, not in Jinja's slow chain of two."""

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return {**self.globals, **(d or {})}


def environment(templates: Path, assets: Mapping[str, str]) -> Environment:
    made = _Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,  # for every file: tokens are hostile text
        undefined=StrictUndefined,
        auto_reload=False,
        cache_size=-1,  # a plain dict: there are few templates, and the bounded cache is slow
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # As filters of constants these are worked out when a template is compiled.
    made.filters |= {
        "term": glossary.term,
        "tip": glossary.tip,
        "help": addresses.help_page,
        "asset": assets.__getitem__,
    }
    made.globals |= {"url": addresses, "glossary": glossary, "types": addresses.FORMATS}
    made.globals |= {
        "turned": addresses.turned,
        "ranges": ranges,
        "openapi": openapi_text,
        "pretty": _pretty,
        "remake": command,
        "clearer": clearer,
    }
    made.globals |= figures.FUNCTIONS | markup.FUNCTIONS | rows.FUNCTIONS | sections.FUNCTIONS | live_rows.FUNCTIONS
    made.globals |= prompt_rows.FUNCTIONS | jumps.FUNCTIONS | place_rows.FUNCTIONS | switches.FUNCTIONS
    return made


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
