"""Find an address to try for each endpoint of the OpenAPI document, in a model that is served here: the page, and its
JSON as an example of the data. templates/docs.html shows them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import State

from lexiscope.app.addresses import format_address
from lexiscope.app.html.openapi_text import endpoints, example
from lexiscope.app.library.library import Library
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index

LIVE = "live pages"  # the tag of pages that ask a worker
ASKED = ("q", "words", "pairs", "text")  # without them a page is a form and no more


def example_links(state: State, document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the addresses to try by path: of the page, and of its JSON if it has any. Leave out pages that nothing
    served here has."""
    index = _first(state.library)
    compared = next((card for card in state.library.comparisons() if not card.fault), None)
    live = index is not None and state.live.serves(index.manifest.model)
    links: dict[str, list[str]] = {}
    for each in endpoints(dict(document)):
        path, operation = each["path"], each["operation"]
        if ("{model}" in path and index is None) or (LIVE in operation.get("tags", ()) and not live):
            continue
        numbers = _numbers(index) if index else {}
        if "{direction}" in path and index and not index.stored.directions:
            continue
        if "/classifier" in path:
            labelled = _first(state.library, has_head=True)
            if labelled is None:
                continue
            numbers["model"] = labelled.manifest.model
            numbers["index_of_kind"] = range(len(labelled.classifier().entry.labels))
        if "{other}" in path:
            if compared is None:
                continue
            numbers = {"model": compared.a, "other": compared.b}
        query = {}
        for asked in operation.get("parameters", ()):
            sample = example(asked)
            if asked["in"] == "path":
                value = numbers.get(asked["name"], sample)
                path = path.replace(f"{{{asked['name']}}}", quote(str(_within(value, sample))))
            elif asked["name"] in ASKED and "{other}" not in each["path"]:  # which is a page without them
                query[asked["name"]] = ",".join(sample) if isinstance(sample, list) else sample
        page = path + (f"?{urlencode(query, safe=',:>')}" if query else "")
        links[each["path"]] = [page, format_address(page, "json")] if "json" in each["formats"] else [page]
    return links


def _first(library: Library, has_head: bool = False) -> Index | None:
    """The first model of which a layer is ready; with a classification head, if it is to have one."""
    for card in library.cards():
        try:
            index = library.index(card.model)
            if card.layers and (index.manifest.classifier or not has_head):
                return index
        except LexiscopeError:
            continue
    return None


def _numbers(index: Index) -> dict[str, Any]:
    """What may stand in the paths: numbers as ranges, of which the example is taken if it is among them."""
    shape = index.shape
    counts = {"neuron": shape.d_mlp, "head": shape.n_heads, "subhead": shape.d_head, "token": shape.d_vocab}
    counts["direction"] = shape.d_head
    ranges = {name: range(count) for name, count in counts.items()}
    return {"model": index.manifest.model, "layer": index.layers, **ranges}


def _within(allowed: Any, sample: Any) -> Any:
    if isinstance(allowed, str | int):
        return allowed
    return sample if sample in allowed else allowed[-1]
