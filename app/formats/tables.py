"""Which tables a view has, what a file of them is about, and the file itself: CSV, Markdown or LaTeX."""

from collections.abc import Iterator
from typing import Any

from app.formats.compact_tables import compact_tables
from app.formats.comparison_tables import comparison_tables
from app.formats.csv_format import csv_chunks, defused
from app.formats.lab_tables import lab_tables
from app.formats.label_tables import labels_tables
from app.formats.latex import as_latex
from app.formats.live_tables import relation_tables, seeds_tables, through_heads_tables
from app.formats.paper_tables import paper_tables
from app.formats.parameter_tables import (
    classifier_tables,
    direction_tables,
    head_tables,
    neuron_tables,
    pairs_tables,
    subhead_tables,
)
from app.formats.prompt_tables import prompt_tables
from app.formats.stored_tables import (
    home_tables,
    layer_lists_tables,
    layer_tables,
    model_tables,
    search_tables,
    token_tables,
)
from app.formats.table import Table
from app.formats.text_formats import Source, as_markdown
from app.views.classifier import ClassifierView
from app.views.comparison import ComparisonView
from app.views.direction import DirectionView
from app.views.head import HeadView
from app.views.home import HomeView
from app.views.lab import LabView
from app.views.labels import LabelsView
from app.views.layer import LayerView
from app.views.layer_lists import LayerListsView
from app.views.model import ModelView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.paper import PaperView
from app.views.prompt import PromptView
from app.views.relation import RelationView
from app.views.search import SearchView
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.through_heads import ThroughHeadsView
from app.views.token import TokenView
from app.views.tokens import View, ViewOfModel
from precompute.index.index import Index


def view_csv(view: View) -> Iterator[str]:
    """The CSV of a view, in chunks of rows: a token may stand in a hundred thousand lists."""
    return csv_chunks(tables(view), about(view))


def view_text(format: str, view: View, url: str, index: Index | None, side: str | None = None) -> str:
    """The Markdown (`md`) or LaTeX (`tex`) of a view; with a side, a small table of it. It says which page it is of,
    and which weights and index."""
    build = f"weights {_weights(index)}, index build {index.manifest.build}" if index else ""
    if isinstance(view, ComparisonView):
        build = f"weights {' and '.join(side.weights_sha256[:12] for side in view.models)}, comparison {view.build}"
    write = {"md": as_markdown, "tex": as_latex}[format]
    return write(compact_tables(view, side) if side else tables(view), Source(url, build))


def _weights(index: Index) -> str:
    tuned, minus = index.manifest.weights_sha256[:12], index.manifest.minus
    return f"{tuned} less {minus.weights_sha256[:12]} ({minus.tuned} − {minus.model})" if minus else tuned


def tables(view: View) -> list[Table]:
    match view:
        case NeuronView():
            return neuron_tables(view)
        case SubheadView():
            return subhead_tables(view)
        case DirectionView():
            return direction_tables(view)
        case PairsView():
            return pairs_tables(view)
        case HeadView():
            return head_tables(view)
        case ClassifierView():
            return classifier_tables(view)
        case LayerView():
            return layer_tables(view)
        case LayerListsView():
            return layer_lists_tables(view)
        case TokenView():
            return token_tables(view)
        case SearchView():
            return search_tables(view)
        case ModelView():
            return model_tables(view)
        case HomeView():
            return home_tables(view)
        case LabelsView():
            return labels_tables(view)
        case ComparisonView():
            return comparison_tables(view)
        case LabView():
            return lab_tables(view)
        case PaperView():
            return paper_tables(view)
        case SeedsView():
            return seeds_tables(view)
        case RelationView():
            return relation_tables(view)
        case ThroughHeadsView():
            return through_heads_tables(view)
        case PromptView():
            return prompt_tables(view)
    raise TypeError(f"{type(view).__name__} has no table")


def about(view: View) -> dict[str, Any]:
    """What CSV says on every row, after its own columns: a file may lose its name, and be put together with others."""
    if not isinstance(view, ViewOfModel):
        return _about(view)
    minus = {"minus": view.minus.model} if view.minus else {}
    return {**_about(view), **minus, "build": view.build}


def _about(view: View) -> dict[str, Any]:
    match view:
        case ClassifierView():
            return {"model": view.model, "lens": view.lens}
        case NeuronView():
            return {"model": view.model, "layer": view.layer, "neuron": view.neuron, "lens": view.lens}
        case SubheadView():
            of_head = {"layer": view.layer, "head": view.head, "subhead": view.subhead}
            return {"model": view.model, **of_head, "lens": view.lens}
        case DirectionView():
            of_head = {"layer": view.layer, "head": view.head, "direction": view.direction}
            return {"model": view.model, **of_head, "lens": view.lens}
        case PairsView() | HeadView():
            of_head = {"layer": view.layer, "head": view.head}
            return {"model": view.model, **of_head, "lens": view.lens, "preset": view.preset}
        case LayerView() | LayerListsView():
            only = {"listing": view.token["token"], "listing_id": view.token["id"]} if view.token else {}
            return {"model": view.model, "layer": view.layer, "lens": view.lens, **only}
        case TokenView():
            token = {"token": view.token["token"], "token_id": view.token["id"]}
            return {"model": view.model, **token, "lens": view.lens, "preset": view.preset}
        case LabelsView():
            return {"model": view.model}
        case ModelView():
            return {"model": view.model, "lens": view.lens, "preset": view.preset}
        case ComparisonView():
            return {"a": view.a, "b": view.b, "common_tokens": view.tokens, "build": view.build}
        case LabView():
            return {"model": view.model}
        case PaperView():
            return {"model": view.model, "lists": view.lists, "lens": view.lens}
        case SearchView():
            return {"model": view.model, "q": defused(view.q), "lens": view.lens}
        case RelationView():
            return {"model": view.model, "matrix": view.matrix, "lens": view.lens}
        case ThroughHeadsView():
            return {"model": view.model, "lens": view.lens, "end": view.end}
        case SeedsView():
            return {"model": view.model, "words": defused(view.words), "lens": view.lens}
        case PromptView():
            return {"model": view.model, "convention": view.convention, "lens": view.lens}
    return {}
