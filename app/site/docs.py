"""Describe the site in OpenAPI: the shape of its answers, their formats and errors. For each endpoint, find an example
address in a model that is served here, for templates/docs.html."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from starlette.datastructures import State

from lexiscope.app.html.openapi_text import endpoints, example
from lexiscope.app.library.library import Library
from lexiscope.app.lists.view import View
from lexiscope.app.pages.find import counts_in_paths
from lexiscope.app.urls import BINARY_FORMATS, MEDIA_TYPES, format_address
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index

Responses: TypeAlias = dict[int | str, dict[str, Any]]

DESCRIPTION = """A transformer's weights as words. Every page is an address that holds its whole state; with `.json` at
the end of the path it is data, with `.csv`, `.md` and `.tex` its tables; a prompt has `.json` and `.csv`, its
sheet also `.parquet`, a comparison of two models and a lab `.svg`; a neuron, a head and its pairs `.png`, their first
words as a picture. Addresses answer GET and HEAD, and carry an `ETag`; arguments that have their default are left out,
and one that an address does not take (also `utm_source` and its like) is an error that names the nearest. A token is
`{"id", "token"}`, in a list with `"score"`; a vector is `{"top", "bottom"}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDetail:
    status: int
    title: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorView:
    """The shape of every error in JSON."""

    error: ErrorDetail


_TEXT = {"schema": {"type": "string"}}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_ERRORS = {
    400: "The address is not text in UTF-8",
    404: "There is no such model, layer, neuron, head, subhead, token or page",
    414: "The address is too long",
    410: "`build` asks for a build of an index, and there is another one now",
    422: "An argument has a value it cannot have, or there is none of that name; the detail says what there is",
    503: "The layer's file is damaged or gone; other layers still work",
}
_LIVE_ERRORS = {
    404: "There is no such model, token or page, or live pages are off",
    413: "More than a limit allows; the detail has the limit and its setting",
    499: "The visitor has left",
    500: "An error of the program in the worker; other pages still work",
    503: "The worker loads its model, is full, or is gone: see Retry-After, or ask with the header `Prefer: wait=30`",
}


def data_responses(view: type[View], formats: tuple[str, ...], live: bool) -> Responses:
    """Describe the responses of a page's data: JSON with the fields of the page's view, or one of the other formats."""
    shapes = {format: _BYTES if format in BINARY_FORMATS else _TEXT for format in formats if format != "json"}
    content = {MEDIA_TYPES[format]: shape for format, shape in shapes.items()}
    errors: Responses = {status: {"model": ErrorView, "description": text} for status, text in _errors(live).items()}
    return {200: {"model": view, "content": content}, **errors}


def page_responses(live: bool = False) -> Responses:
    """Describe the responses of a page for people. Errors are pages, too, unless the header Accept asks for data."""
    shape = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorView"}}}
    return {
        status: {"description": text, "content": {"text/html": _TEXT, **shape}}
        for status, text in _errors(live).items()
    }


def _errors(live: bool) -> dict[int, str]:
    return {**_ERRORS, **(_LIVE_ERRORS if live else {})}


LIVE = "live pages"  # the tag of pages that send requests to a worker
ASKED = ("q", "words", "pairs", "text")  # a page without a value for these arguments is only a form


def example_links(state: State, document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return example addresses by path: that of the page, and that of its JSON if it has any. Pages that no model here
    has are left out."""
    index = _first(state.library)
    compared = next((card for card in state.library.comparisons.cards() if not card.fault), None)
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
            elif asked["name"] in ASKED and "{other}" not in each["path"]:  # these pages need a value for the argument
                query[asked["name"]] = ",".join(sample) if isinstance(sample, list) else sample
        page = path + (f"?{urlencode(query, safe=',:>')}" if query else "")
        links[each["path"]] = [page, format_address(page, "json")] if "json" in each["formats"] else [page]
    return links


def _first(library: Library, has_head: bool = False) -> Index | None:
    """Return the index of the first model that has a layer ready and, if `has_head`, a classification head."""
    for card in library.cards():
        try:
            index = library.index(card.model)
            if card.layers and (index.manifest.classifier or not has_head):
                return index
        except LexiscopeError:
            continue
    return None


def _numbers(index: Index) -> dict[str, Any]:
    """Return possible values for the braces of paths. Numbers are ranges: a page's own example is taken if it is in the
    range."""
    ranges = {name: range(count) for name, count in counts_in_paths(index.shape).items()}
    return {"model": index.manifest.model, **ranges, "layer": index.layers}


def _within(allowed: Any, sample: Any) -> Any:
    if isinstance(allowed, str | int):
        return allowed
    return sample if sample in allowed else allowed[-1]
