"""Which tables a view has, what a file of them is about, and the file itself: CSV, Markdown or LaTeX."""

from collections.abc import Iterator
from typing import Any

from app.formats.csv_format import csv_chunks, defused
from app.formats.live_tables import relation_tables, seeds_tables, through_heads_tables
from app.formats.parameter_tables import head_tables, neuron_tables, pairs_tables, subhead_tables
from app.formats.prompt_tables import prompt_tables
from app.formats.stored_tables import home_tables, layer_tables, model_tables, search_tables, token_tables
from app.formats.table import Table
from app.formats.text_formats import Source, as_latex, as_markdown
from app.views.head import HeadView
from app.views.home import HomeView
from app.views.layer import LayerView
from app.views.model import ModelView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.prompt import PromptView
from app.views.relation import RelationView
from app.views.search import SearchView
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.through_heads import ThroughHeadsView
from app.views.token import TokenView
from app.views.tokens import View
from precompute.index.index import Index


def view_csv(view: View) -> Iterator[str]:
    """The CSV of a view, in chunks of rows: a token may stand in a hundred thousand lists."""
    return csv_chunks(tables(view), about(view))


def view_text(format: str, view: View, url: str, index: Index | None) -> str:
    """The Markdown (`md`) or LaTeX (`tex`) of a view. It says which page it is of, and which weights and index."""
    build = f"weights {index.manifest.weights_sha256[:12]}, index {index.manifest.build[:12]}" if index else ""
    write = {"md": as_markdown, "tex": as_latex}[format]
    return write(tables(view), Source(url, build))


def tables(view: View) -> list[Table]:
    match view:
        case NeuronView():
            return neuron_tables(view)
        case SubheadView():
            return subhead_tables(view)
        case PairsView():
            return pairs_tables(view)
        case HeadView():
            return head_tables(view)
        case LayerView():
            return layer_tables(view)
        case TokenView():
            return token_tables(view)
        case SearchView():
            return search_tables(view)
        case ModelView():
            return model_tables(view)
        case HomeView():
            return home_tables(view)
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
    """What CSV says on every row, after its own columns: a file may lose its name."""
    match view:
        case NeuronView():
            return {"model": view.model, "layer": view.layer, "neuron": view.neuron, "lens": view.lens}
        case SubheadView():
            of_head = {"layer": view.layer, "head": view.head, "subhead": view.subhead}
            return {"model": view.model, **of_head, "lens": view.lens}
        case PairsView() | HeadView():
            of_head = {"layer": view.layer, "head": view.head}
            return {"model": view.model, **of_head, "lens": view.lens, "preset": view.preset}
        case LayerView():
            only = {"listing": view.token["token"], "listing_id": view.token["id"]} if view.token else {}
            return {"model": view.model, "layer": view.layer, "lens": view.lens, **only}
        case TokenView():
            token = {"token": view.token["token"], "token_id": view.token["id"]}
            return {"model": view.model, **token, "lens": view.lens, "preset": view.preset}
        case ModelView():
            return {"model": view.model, "lens": view.lens, "preset": view.preset}
        case SearchView():
            return {"model": view.model, "q": defused(view.q), "lens": view.lens}
        case RelationView():
            return {"model": view.model, "lens": view.lens}
        case ThroughHeadsView():
            return {"model": view.model, "lens": view.lens, "end": view.end}
        case SeedsView():
            return {"model": view.model, "words": defused(view.words)}
        case PromptView():
            return {"model": view.model, "convention": view.convention}
    return {}
