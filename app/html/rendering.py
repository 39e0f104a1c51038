"""Turn the data of a page into HTML: the template environment, and the values that every template gets."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote
from weakref import WeakKeyDictionary

from jinja2 import Environment
from markupsafe import Markup

from lexiscope.app import urls
from lexiscope.app.formats.pair_tables import pair_groups, pair_list
from lexiscope.app.formats.table import token_list
from lexiscope.app.html import (
    charts,
    citation,
    count_chart,
    glossary,
    help_pages,
    hubs,
    line_chart,
    links,
    mini_map,
    numbers,
    openapi_text,
    pins,
    run_pictures,
    tables,
    tokens,
)
from lexiscope.app.html.assets import folder, template_environment
from lexiscope.app.library.labels import ModelLabels
from lexiscope.app.library.library import TwoModels
from lexiscope.app.lists import checks as lengths
from lexiscope.app.lists import difference, worth
from lexiscope.app.lists.labels import LABELS_SHOWN, as_label, page_of
from lexiscope.app.lists.notes import example_texts
from lexiscope.app.lists.view import visible
from lexiscope.precompute.index import not_stored
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.index.layout import LOOKS
from lexiscope.precompute.index.parameter_names import example_names, matched_name, vector_name
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.paper.lists import lists_of, printed_number
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.shape import DIRECTION_KINDS, PRESETS


@dataclass(frozen=True)
class PageRequest:
    """What a template gets besides the data of its page, such as addresses, the index, and the other models."""

    path: str  # the path of the address, without the query
    canonical: str  # path and query of the address, without arguments that have their default value
    origin: str = ""  # scheme://host, for links that leave the site
    formats: Mapping[str, str] = field(default_factory=dict)  # the URL of each format: "json", "csv", "md", "tex"
    index: Index | None = None  # the index of the model, on pages about a model
    pinned: str = ""  # the same with the build of the index, on pages of a model
    # the names of all models, to switch to, with the best lens of each
    models: Mapping[str, str] = field(default_factory=dict)
    # Names of models that this one is compared with, and the address of each comparison.
    comparisons: Mapping[str, str] = field(default_factory=dict)
    own_lens: str = ""  # the lens of the page's lists
    difference: TwoModels | None = None  # the two models of a difference
    can_run: frozenset[str] = frozenset()  # those of the two models of a difference that a worker can run
    labels: ModelLabels = field(default_factory=ModelLabels)  # what people said of the model's parameters
    vocabularies: tuple[str, ...] = ()  # names of corpora and word lists that lists can be kept to
    live: bool = False  # whether a worker can run the model, so that links to live pages work

    @cached_property
    def lens(self) -> str:
        """Return the lens (dot or cosine) that links pass on: the page's own or, if it has none, the lens whose lists
        are the most readable."""
        if self.own_lens or not self.index:
            return self.own_lens or "dot"
        return self.models.get(self.index.manifest.model) or self.index.stored.lens

    def same_page_of(self, model: str) -> str:
        """Return the address of the same page of another model, without arguments that only the difference of two
        models has. That model may have no classification head."""
        path, _, query = self.canonical.partition("?")
        _, slash, rest = path.removeprefix("/").partition("/")
        if rest.startswith("classifier"):
            return urls.link("model", model, lens=self.lens)
        left_out: dict[str, None] = {"build": None, "pin": None}
        left_out |= {name: None for name in ("map", "sort") if self.query.get(name, "").removeprefix("-") == "change"}
        return urls.turned(f"/{quote(model)}{slash}{rest}?{query}", **left_out)

    @cached_property
    def query(self) -> Mapping[str, str]:
        """Return the arguments in the page's canonical address, which leaves out those with their default value."""
        return dict(parse_qsl(self.canonical.partition("?")[2]))


_written: WeakKeyDictionary[Index, dict[str, Markup]] = WeakKeyDictionary()


def once(index: Index, name: str, macro: Callable[..., Markup], *values: Any) -> Markup:
    """Return what a macro writes of these values, which are the same as long as the index and the name."""
    known = _written.setdefault(index, {})
    if name not in known:
        known[name] = macro(*values)
    return known[name]


class Renderer:
    """Render pages with templates. `assets` maps the names of static files to their URLs."""

    def __init__(self, assets: Mapping[str, str] | None = None) -> None:
        urls = assets or {path.name: f"/static/{path.name}" for path in folder("static").iterdir()}
        self._environment = environment(folder("templates"), urls)

    def page(self, name: str, partial: bool, view: Any, request: PageRequest) -> str:
        """Render the whole document, or only a title and the inside of #page, which is what changes from page to
        page."""
        with hubs.page_of(request.index, dict(request.query), view):
            return self._environment.get_template(f"{name}.html").render(view=view, page=request, partial=partial)

    def figure(self, name: str, view: Any, address: str) -> str:
        """Render an SVG by itself, for use in a paper."""
        return self._environment.get_template(f"{name}.svg").render(view=view, address=address)


def environment(templates: Path, assets: Mapping[str, str]) -> Environment:
    """Make the template environment. Functions of one value are filters in templates; other functions, and values, are
    globals."""
    jinja = template_environment(templates)
    jinja.filters |= {
        "around_rank": tokens.around_rank,
        "asset": assets.__getitem__,
        "bar": numbers.bar,
        "chip": tokens.chip,
        "chip_text": tokens.chip_text,
        "change": difference.change_text,
        "chips": tokens.chips,
        "exp": math.exp,
        "heat": numbers.heat,
        "help": help_pages.help_link,
        "html": tables.html,
        "largest": numbers.largest,
        "list_chips": tokens.list_chips,
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
        "z_text": numbers.z_text,
    }
    jinja.globals |= {
        "api_endpoints": openapi_text.endpoints,
        "api_example": openapi_text.example,
        "api_type": openapi_text.type_name,
        "are_mostly_hubs": hubs.are_most,
        "as_label": as_label,
        "attention_squares": charts.attention_squares,
        "axis_labels": charts.axis_labels,
        "better_lens": hubs.better_lens,
        "CHART_COLOURS": line_chart.COLOURS,
        "chart_figure": line_chart.figure,
        "CHART_HEIGHT": line_chart.HEIGHT,
        "CHART_LEFT": line_chart.LEFT,
        "chart_legend": line_chart.legend,
        "CHART_MARKS": line_chart.MARKS,
        "CHART_WIDTH": line_chart.WIDTH,
        "count_hubs": hubs.count,
        "coverage_charts": charts.coverage_charts,
        "crowded_lists": hubs.crowded,
        "distance_charts": charts.distance_charts,
        "example_names": example_names,
        "example_texts": example_texts,
        "expected_heads": numbers.expected,
        "explain_mark": glossary.explain_mark,
        "first_layers": links.first_layers,
        "HEAD_TOKENS": lengths.HEAD_TOKENS,
        "heat_steps": numbers.heat_steps,
        "HELP_ANCHORS": help_pages.anchors(),
        "HELP_PAGES": help_pages.help_pages(),
        "histogram_path": charts.histogram_path,
        "hubs_of_page": hubs.marked,
        "is_bias": hubs.is_bias,
        "is_direction": DIRECTION_KINDS.__contains__,
        "KIND_WORDS": glossary.KIND_WORDS,
        "KINDS": glossary.KINDS,
        "LABELS_SHOWN": LABELS_SHOWN,
        "link_to_head": links.head,
        "link_to_layer": links.layer,
        "link_to_neuron": links.neuron,
        "link_to_pair_row": links.pair_row,
        "link_to_pairs": links.pairs,
        "link_to_row": links.row,
        "link_to_vector": links.vector,
        "matched_name": matched_name,
        "mini_map_of_heads": mini_map.of_heads,
        "mini_map_of_neurons": mini_map.of_neurons,
        "most_active": charts.most_active,
        "most_attended": charts.most_attended,
        "most_similar": numbers.most_similar,
        "moved_change": grammar.moved_change,
        "NEURON_CLASSES": worth.CLASSES,
        "no_run": difference.no_run,
        "offered_lengths": lengths.offered,
        "LOOKS": LOOKS,
        "once": once,
        "page_bibtex": citation.page_bibtex,
        "page_of_label": page_of,
        "pair_chips": tokens.pair_chips,
        "parameter_at": links.parameter_at,
        "paper_lists": lists_of,
        "peak": numbers.peak,
        "pins_of": pins.of_page,
        "positions_chart": charts.positions_chart,
        "PRESETS": PRESETS,
        "printed_number": printed_number,
        "ranges": ranges,
        "ROLES": glossary.ROLES,
        "shown_positions": charts.shown_positions,
        "similarity_chart": count_chart.similarity_chart,
        "standard_error": charts.standard_error,
        "standing": worth.standing,
        "stitching_charts": charts.stitching_charts,
        "rank_chart": run_pictures.rank_chart,
        "strip_map": run_pictures.strip_map,
        "term_bars": charts.term_bars,
        "term_scale": charts.term_scale,
        "sweep_plot": run_pictures.sweep_plot,
        "term_path": run_pictures.term_path,
        "TERMS": glossary.TERMS,
        "turned": urls.turned,
        "url": urls.Links(),
        "taken_along": urls.taken_along.get,
        "vector_name": vector_name,
        "why_kinds_not_stored": not_stored.why_kinds_not_stored,
        "without_change": grammar.without_change,
        "worth_charts": charts.worth_charts,
        "write_words": grammar.write_words,
        "update_charts": charts.update_charts,
        "writers_chart": count_chart.writers_chart,
        "z_cells": tables.z_cells,
    }
    return jinja
