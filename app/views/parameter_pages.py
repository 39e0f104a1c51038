"""A parameter's whole page: its lists at their usual length, what people said of it, its matches in others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from app.views.checks import list_length
from app.views.direction import SIDE_KINDS, DirectionView, direction_view
from app.views.head import HeadView, head_view
from app.views.hubs import hubs_of
from app.views.labels import labels_of
from app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES
from app.views.matches import VectorMatch, matches_of
from app.views.neuron import NeuronView, neuron_view
from app.views.pairs import PairsView, pairs_view
from app.views.subhead import SUBHEAD_KINDS, SubheadView, subhead_view
from precompute.index.index import Index
from precompute.shape import MATRICES

if TYPE_CHECKING:
    from app.library.library import Library


def neuron_page(
    library: "Library", index: Index, layer: int, neuron: int, lens: str, k: int | None = None, hide_hubs: bool = False
) -> NeuronView:
    view = neuron_view(index, layer, neuron, lens, list_length(index, k, VECTOR_ENTRIES, index.manifest.k))
    labels = labels_of(index, library.labels(index).of_neuron(layer, neuron))
    return replace(view, labels=labels, matches=_matches(library, index, view, hide_hubs))


def subhead_page(
    library: "Library", index: Index, layer: int, head: int, subhead: int, lens: str, k: int | None = None,
    hide_hubs: bool = False,
) -> SubheadView:  # fmt: skip
    view = subhead_view(index, layer, head, subhead, lens, list_length(index, k, VECTOR_ENTRIES, index.manifest.k))
    labels = labels_of(index, library.labels(index).of_subhead(layer, head, subhead))
    return replace(view, labels=labels, matches=_matches(library, index, view, hide_hubs))


def direction_page(
    library: "Library", index: Index, layer: int, head: int, direction: int, lens: str, k: int | None = None,
    hide_hubs: bool = False,
) -> DirectionView:  # fmt: skip
    view = direction_view(index, layer, head, direction, lens, list_length(index, k, VECTOR_ENTRIES, index.manifest.k))
    labels = labels_of(index, library.labels(index).of_direction(layer, head, direction))
    return replace(view, labels=labels, matches=_matches(library, index, view, hide_hubs))


def pairs_page(
    library: "Library", index: Index, matrix: str, layer: int, head: int, lens: str, preset: str, k: int | None = None
) -> PairsView:
    view = pairs_view(
        index, matrix, layer, head, lens, preset, list_length(index, k, PAIR_ENTRIES, index.manifest.pairs)
    )
    return replace(view, labels=labels_of(index, library.labels(index).of_head(layer, head, matrix)))


def head_page(
    library: "Library", index: Index, layer: int, head: int, lens: str, preset: str, hide_hubs: bool = False
) -> HeadView:
    view = head_view(index, layer, head, lens, preset, hubs_of(index, lens) if hide_hubs else frozenset())
    return replace(view, labels=labels_of(index, library.labels(index).of_head(layer, head, *MATRICES)))


def vectors_of(index: Index, view: NeuronView | SubheadView | DirectionView) -> dict[str, tuple[str, int]]:
    """Kind and row of every vector of the page; what is not stored has nothing to be compared with."""
    stored = index.stored.kinds
    if isinstance(view, NeuronView):
        return {name: (f"ff_{name}", view.neuron) for name in ("key", "up", "value") if f"ff_{name}" in stored}
    named, number = (SIDE_KINDS, view.direction) if isinstance(view, DirectionView) else (SUBHEAD_KINDS, view.subhead)
    kinds = {name: kind for name, kind in named.items() if kind in stored}
    return {name: (kind, index.shape.row(kind, view.head, number)) for name, kind in kinds.items()}


def _matches(
    library: "Library", index: Index, view: NeuronView | SubheadView | DirectionView, hide_hubs: bool
) -> Mapping[str, list[VectorMatch]]:
    return matches_of(library, index, view.layer, vectors_of(index, view), view.lens, hide_hubs)
