"""Turns a view into a page: the template environment, and what every template is given."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app import addresses
from app.formats import stored_tables
from app.html import charts, glossary, listings, numbers, openapi_text, parameter_links, tokens
from app.html.assets import folder
from app.views import lengths, parse_address, terms, through_heads
from app.views.example_texts import example_texts
from app.views.readable_alternative import readable_alternative
from app.views.token_text import visible
from precompute.index import not_stored
from precompute.index.index import Index, ranges
from precompute.plain_text import file_size
from precompute.rebuild_command import rebuild_command
from precompute.shape import PRESETS

ASSETS = ("lexiscope.css", "lexiscope.js", "htmx-4.0.0.min.js", "favicon.svg")


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

    def page(self, name: str, partial: bool, view: Any, request: PageRequest) -> str:
        """The whole document, or only what changes from page to page: the inside of #page, with a title."""
        return self._environment.get_template(f"{name}.html").render(view=view, page=request, partial=partial)


def environment(templates: Path, assets: Mapping[str, str]) -> Environment:
    """What is made of one value is a filter; all else that templates call is a global."""
    jinja = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,  # for every file: tokens are hostile text
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {
        "asset": assets.__getitem__,
        "bar": numbers.bar,
        "by_first_token": tokens.by_first_token,
        "chip": tokens.chip,
        "chip_text": tokens.chip_text,
        "chips": tokens.chips,
        "heat": numbers.heat,
        "help": addresses.help_page,
        "largest": numbers.largest,
        "number": numbers.number,
        "percent": numbers.percent,
        "plain": tokens.plain,
        "plain_pairs": tokens.plain_pairs,
        "predicted": numbers.predicted,
        "pretty_json": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "pulling_words": tokens.pulling_words,
        "rank_heat": numbers.rank_heat,
        "ratio": numbers.ratio,
        "score": numbers.score,
        "seed_words": tokens.seed_words,
        "short_rank": numbers.short_rank,
        "size": file_size,
        "thousands": numbers.thousands,
        "tip": glossary.tip,
        "visible": visible,
    }
    jinja.globals |= {
        "PRESETS": PRESETS,
        "charts": charts,
        "example_texts": example_texts,
        "glossary": glossary,
        "lengths": lengths,
        "links": parameter_links,
        "listings": listings,
        "not_stored": not_stored,
        "numbers": numbers,
        "openapi": openapi_text,
        "parse_address": parse_address,
        "ranges": ranges,
        "readable_alternative": readable_alternative,
        "rebuild_command": rebuild_command,
        "stored_tables": stored_tables,
        "terms": terms,
        "through_heads": through_heads,
        "turned": addresses.turned,
        "url": addresses,
    }
    return jinja
