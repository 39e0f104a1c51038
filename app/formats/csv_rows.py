"""The rows of a CSV: a view's records, and on each what the whole file is about, for a file may lose its name.
What a view lists is for records.py; how rows are written is for table_text.py."""

from collections.abc import Iterator

from app.formats.records import columns, records
from app.formats.table_text import Record
from app.views.head import HeadView
from app.views.layer import LayerView
from app.views.model import ModelView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.prompt import PromptView
from app.views.relation import RelationView
from app.views.search import SearchView
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.token import TokenView
from app.views.tokens import View


def csv_rows(view: View) -> Iterator[Record]:
    said = said_of(view)
    without = said | {name: None for name in ("preset", "convention") if name in said}
    for record in records(view):
        yield record | (said if _is_so_read(view, record) else without)


def csv_columns(view: View) -> tuple[str, ...]:
    """Of the rows of a view that may have none; () of one that always has some."""
    return (*listed, *said_of(view)) if (listed := columns(view)) else ()


def said_of(view: View) -> Record:
    """The same on every row, after its own columns: with these, files can be put one after the other."""
    match view:
        case NeuronView():
            return {"model": view.model, "layer": view.layer, "neuron": view.neuron, "lens": view.lens}
        case SubheadView():
            place = {"layer": view.layer, "head": view.head, "subhead": view.subhead}
            return {"model": view.model, **place, "lens": view.lens}
        case PairsView() | HeadView():
            place = {"layer": view.layer, "head": view.head}
            return {"model": view.model, **place, "lens": view.lens, "preset": view.preset}
        case LayerView():
            only = {"listing": view.token["token"], "listing_id": view.token["id"]} if view.token else {}
            return {"model": view.model, "layer": view.layer, "lens": view.lens, **only}
        case TokenView():
            token = {"token": view.token["token"], "token_id": view.token["id"]}
            return {"model": view.model, **token, "lens": view.lens, "preset": view.preset}
        case ModelView():
            return {"model": view.model, "lens": view.lens, "preset": view.preset}
        case SearchView():
            return {"model": view.model, "q": view.q, "lens": view.lens}
        case RelationView():
            return {"model": view.model, "lens": view.lens}
        case SeedsView():
            return {"model": view.model, "words": view.words}
        case PromptView():
            return {"model": view.model, "convention": view.convention}
    return {}


def _is_so_read(view: View, record: Record) -> bool:
    """Vectors have no preset, also where they stand beside pairs, and only patterns and messages a convention."""
    match view:
        case HeadView():
            return record["matrix"] is not None
        case TokenView():
            return bool(record["role"] == "maps")
        case PromptView():
            return record["panel"] in ("patterns", "messages")
    return True
