"""Views of pages, made from an index as the site makes them."""

from collections.abc import Sequence
from typing import Any, Literal

from lexiscope.app.library.library import Library
from lexiscope.app.pages.head import HeadView
from lexiscope.app.pages.page import ModelSite, find_pages
from lexiscope.app.pages.pairs import PairsView
from lexiscope.app.pages.parameter import DirectionView, NeuronView, SubheadView
from lexiscope.app.pages.token import TokenView
from lexiscope.precompute.index.index import Index


def make_view(
    index: Index,
    name: str,
    numbers: dict[str, Any],
    hide_hubs: bool = False,
    rows: int | Literal["all"] | None = None,
    answers: Sequence[Any] = (),
    **arguments: Any,
) -> Any:
    """`answers` are those of a worker."""
    page = find_pages()[name]
    library = Library(index.folder.parent)
    site = ModelSite(index=index, library=library, hide_hubs=hide_hubs, rows=rows, answers=answers)
    return page.view_of(site, page.at.model_validate(numbers), arguments)


def neuron_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> NeuronView:
    """Without k the lists are as long as they are stored."""
    at = {"layer": layer, "neuron": neuron}
    view: NeuronView = make_view(index, "neuron", at, lens=lens, k=k or index.manifest.k)
    return view


def subhead_view(
    index: Index, layer: int, head: int, subhead: int, lens: str = "dot", k: int | None = None
) -> SubheadView:
    at = {"layer": layer, "head": head, "subhead": subhead}
    view: SubheadView = make_view(index, "subhead", at, lens=lens, k=k or index.manifest.k)
    return view


def direction_view(
    index: Index, layer: int, head: int, direction: int, lens: str = "dot", k: int | None = None
) -> DirectionView:
    at = {"layer": layer, "head": head, "direction": direction}
    view: DirectionView = make_view(index, "direction", at, lens=lens, k=k or index.manifest.k)
    return view


def pairs_view(
    index: Index, matrix: str, layer: int, head: int, lens: str = "dot", preset: str = "all", k: int | None = None
) -> PairsView:
    at = {"layer": layer, "head": head, "matrix": matrix}
    k = k or index.manifest.pairs or None
    view: PairsView = make_view(index, "pairs", at, lens=lens, preset=preset, k=k)
    return view


def head_view(
    index: Index, layer: int, head: int, lens: str = "dot", preset: str = "all", hide_hubs: bool = False
) -> HeadView:
    view: HeadView = make_view(
        index, "head", {"layer": layer, "head": head}, hide_hubs=hide_hubs, lens=lens, preset=preset
    )
    return view


def token_view(
    index: Index,
    token: int,
    lens: str = "dot",
    preset: str = "all",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 100,
) -> TokenView:
    """Without a size, all that is listed is on one page."""
    view: TokenView = make_view(
        index, "token", {"token": token}, rows=size or "all", lens=lens, preset=preset, kind=kind, page=page
    )
    return view
