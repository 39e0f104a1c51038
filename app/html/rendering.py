"""Turn a view into a page: the template environment, and what every template is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lexiscope.app import urls
from lexiscope.app.formats.pair_tables import pair_groups, pair_list
from lexiscope.app.formats.table import token_list
from lexiscope.app.html import (
    charts,
    citation,
    glossary,
    hubs,
    line_chart,
    links,
    numbers,
    openapi_text,
    tables,
    tokens,
)
from lexiscope.app.html.assets import folder
from lexiscope.app.library.labels import ModelLabels
from lexiscope.app.library.library import TwoModels
from lexiscope.app.lists import checks as lengths
from lexiscope.app.lists import difference
from lexiscope.app.lists.example_texts import example_texts
from lexiscope.app.lists.labels import LABELS_SHOWN, as_label, page_of
from lexiscope.app.lists.view import visible
from lexiscope.precompute.index import not_stored
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.index.parameter_names import example_names, matched_name, vector_name
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.paper.lists import lists_of, printed_number
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.shape import DIRECTION_KINDS, PRESETS


@dataclass(frozen=True)
class PageRequest:
    """Hold what a page needs to know besides its view."""

    path: str  # without query
    canonical: str  # path and query, defaults left out
    origin: str = ""  # scheme://host, for links that leave the site
    formats: Mapping[str, str] = field(default_factory=dict)  # "json", "csv", "md", "tex" -> URL
    index: Index | None = None  # the index of the model, on pages about a model
    models: Mapping[str, str] = field(default_factory=dict)  # all models, for switching, with the best lens of each
    # Names of models that this one is compared with, and the address of each comparison.
    comparisons: Mapping[str, str] = field(default_factory=dict)
    own_lens: str = ""  # the lens of the page's lists
    difference: TwoModels | None = None  # the two models of a difference
    can_run: frozenset[str] = frozenset()  # which of the two models of a difference a worker answers for
    labels: ModelLabels = field(default_factory=ModelLabels)  # what people said of the model's parameters
    live: bool = False  # whether a worker answers for the model, so that links to live pages work

    @cached_property
    def lens(self) -> str:
        """Return the lens that links take along: the page's own or, if it has none, the lens that reads best."""
        if self.own_lens or not self.index:
            return self.own_lens or "dot"
        return self.models.get(self.index.manifest.model) or self.index.stored.lens

    def same_page_of(self, model: str) -> str:
        """Return the address of the same page of another model, without arguments that only a difference has. That
        model may have no classification head."""
        path, _, query = self.canonical.partition("?")
        _, slash, rest = path.removeprefix("/").partition("/")
        if rest.startswith("classifier"):
            return urls.link("model", model, lens=self.lens)
        left_out = {name: None for name in ("map", "sort") if self.query.get(name, "").removeprefix("-") == "change"}
        return urls.turned(f"/{quote(model)}{slash}{rest}?{query}", **left_out)

    @cached_property
    def query(self) -> Mapping[str, str]:
        """Return the arguments of the canonical address, which leaves out those with their default value."""
        return dict(parse_qsl(self.canonical.partition("?")[2]))


class Renderer:
    """Render views with templates. `assets` maps the names of static files to the URLs they are served at."""

    def __init__(self, assets: Mapping[str, str] | None = None, templates: Path | None = None) -> None:
        urls = assets or {path.name: f"/static/{path.name}" for path in folder("static").iterdir()}
        self._environment = environment(templates or folder("templates"), urls)

    def page(self, name: str, partial: bool, view: Any, request: PageRequest) -> str:
        """Render the whole document, or only the inside of #page with a title, which is what changes from page to
        page."""
        with hubs.page_of(request.index, dict(request.query)):
            return self._environment.get_template(f"{name}.html").render(view=view, page=request, partial=partial)

    def figure(self, name: str, view: Any, address: str) -> str:
        """Render an SVG by itself, to be put into a paper."""
        return self._environment.get_template(f"{name}.svg").render(view=view, address=address)


def environment(templates: Path, assets: Mapping[str, str]) -> Environment:
    """Make the template environment. Functions of one value are filters; all others that templates call are globals."""
    jinja = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,  # for every file: tokens are hostile text
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {
        "around_rank": tokens.around_rank,
        "asset": assets.__getitem__,
        "bar": numbers.bar,
        "chip": tokens.chip,
        "chip_text": tokens.chip_text,
        "change": difference.change_text,
        "chips": tokens.chips,
        "heat": numbers.heat,
        "help": urls.help_page,
        "html": tables.html,
        "largest": numbers.largest,
        "number": numbers.number,
        "pair_groups": pair_groups,
        "pair_list": pair_list,
        "percent": numbers.percent,
        "percentage": difference.percentage,
        "plain": tokens.plain,
        "plain_pairs": tokens.plain_pairs,
        "predicted": numbers.predicted,
        "rank_heat": numbers.rank_heat,
        "ratio": numbers.ratio,
        "score": numbers.score,
        "seed_words": tokens.seed_words,
        "short_rank": numbers.short_rank,
        "size": file_size,
        "thousands": numbers.thousands,
        "tip": glossary.tip,
        "token_list": token_list,
        "unless_hidden": hubs.unless_hidden,
        "visible": visible,
    }
    jinja.globals |= {
        "LABELS_SHOWN": LABELS_SHOWN,
        "PRESETS": PRESETS,
        "charts": charts,
        "citation": citation,
        "example_names": example_names,
        "example_texts": example_texts,
        "glossary": glossary,
        "hubs": hubs,
        "as_label": as_label,
        "is_direction": DIRECTION_KINDS.__contains__,
        "lengths": lengths,
        "line_chart": line_chart,
        "links": links,
        "grammar": grammar,
        "matched_name": matched_name,
        "no_run": difference.no_run,
        "not_stored": not_stored,
        "numbers": numbers,
        "openapi": openapi_text,
        "page_of_label": page_of,
        "pair_chips": tokens.pair_chips,
        "paper_lists": lists_of,
        "printed_number": printed_number,
        "ranges": ranges,
        "turned": urls.turned,
        "vector_name": vector_name,
        "url": urls.Links(),
    }
    return jinja
