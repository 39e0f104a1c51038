"""Make views of pages from an index, as the site makes them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from lexiscope.app.library.library import Library
from lexiscope.app.pages.find import page_at
from lexiscope.app.pages.head import HeadView
from lexiscope.app.pages.layer import LayerView
from lexiscope.app.pages.model import ModelView
from lexiscope.app.pages.page import ModelSite, Moved, find_pages
from lexiscope.app.pages.pairs import PairsView
from lexiscope.app.pages.parameter import DirectionView, NeuronView, SubheadView
from lexiscope.app.pages.search import SearchView
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.app.pages.token import TokenView
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import SeedsAnswer


def make_view(
    index: Index,
    name: str,
    numbers: dict[str, Any],
    of_site: Mapping[str, Any] = MappingProxyType({}),
    **arguments: Any,
) -> Any:
    """Make the view of a page; `of_site` has fields of the ModelSite that the page's function gets."""
    page = find_pages()[name]
    site = ModelSite(**{"index": index, "library": Library(index.folder.parent), **of_site})
    return page.view_of(site, page.at.model_validate(numbers), arguments)


def neuron_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> NeuronView:
    """Make a neuron's view; without k, the lists have their stored length."""
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
        index, "head", {"layer": layer, "head": head}, {"hide_hubs": hide_hubs}, lens=lens, preset=preset
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
    """Make a token's view; without a size, all listings are on one page."""
    view: TokenView = make_view(
        index, "token", {"token": token}, {"rows": size or "all"}, lens=lens, preset=preset, kind=kind, page=page
    )
    return view


def layer_view(
    index: Index,
    layer: int,
    lens: str = "dot",
    sort: str = "neuron",
    token: int | None = None,
    page: int = 1,
    size: int | None = 50,
) -> LayerView:
    """Make a layer's view; without a size, all neurons are on one page."""
    view: LayerView = make_view(
        index, "layer", {"layer": layer}, {"rows": size or "all"}, lens=lens, sort=sort, token=token, page=page
    )
    return view


def search_view(
    index: Index,
    q: str,
    lens: str = "dot",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 50,
    live: bool = False,
    **of_site: Any,
) -> SearchView:
    """Make a search's view; without a size, all matches and pairs are on one page. `live` is True if a worker answers
    for the model."""
    of_site = {"rows": size or "all", "serves": lambda _: live, **of_site}
    view: SearchView = make_view(index, "search", {}, of_site, q=q, lens=lens, kind=kind, page=page)
    return view


def suggest_view(index: Index, q: str) -> SearchView:
    return search_view(index, q, part="suggestions")


def model_view(index: Index, lens: str = "dot", preset: str = "all") -> ModelView:
    view: ModelView = make_view(index, "model", {}, lens=lens, preset=preset)
    return view


def random_neuron(index: Index) -> tuple[int, int]:
    """Return the layer and number of the neuron to which the page of a random neuron leads."""
    with pytest.raises(Moved) as moved:
        make_view(index, "random", {})
    at = page_at(moved.value.address)[1]
    return int(at["layer"]), int(at["neuron"])


def seeds_of(index: Index, kind: str, layer: int, number: int, word: str) -> SeedsView:
    """Make the view of a search by one seed word that found one vector."""
    place: Any = {"kind": kind, "layer": layer, "index": number}
    result: Any = {**place, "score": 0.5, "scores": [0.5], "fit": 1.5, "cosine": 0.25}
    answer: SeedsAnswer = {
        "terms": [{"word": word, "weight": 1.0, "tokens": [{"id": 65}]}], "nearest": [], "results": [result],
        "heads": [], "lists": [], "rank": None, "near": {"reads": [], "writes": []}, "chance": 1.25,
    }  # fmt: skip
    view: SeedsView = make_view(index, "seeds", {}, {"answers": [answer]}, words="x", kind=kind, rank="fit")
    return view
