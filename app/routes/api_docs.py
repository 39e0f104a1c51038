"""Describe answers in the OpenAPI document: their shapes, their formats, and their errors."""

from typing import Any, TypeAlias

from lexiscope.app.addresses import MEDIA_TYPES
from lexiscope.app.system_types import ErrorView
from lexiscope.app.views.tokens import View

Responses: TypeAlias = dict[int | str, dict[str, Any]]

DESCRIPTION = """A transformer's weights as words. Every page is an address that holds its whole state; with `.json` at
the end of the path it is data, with `.csv`, `.md` and `.tex` its tables; a prompt has `.json` and `.csv`, a comparison
of two models and a lab also `.svg`. Addresses answer GET and HEAD, and carry an `ETag`; arguments that have their
default are left out, and one that an address does not take (also `utm_source` and its like) is an error that names the
nearest. A token is `{"id", "token"}`, in a list with `"score"`; a vector is `{"top", "bottom"}`."""

_TEXT = {"schema": {"type": "string"}}
_ERRORS = {
    400: "The address is not text in UTF-8",
    404: "There is no such model, layer, neuron, head, subhead, token or page",
    414: "The address is too long",
    422: "An argument has a value it cannot have, or there is none of that name; the detail says what there is",
    503: "The layer's file is damaged or gone; other layers still work",
}
_LIVE_ERRORS = {
    404: "There is no such model, token or page, or live pages are off",
    413: "More than a limit allows; the detail has the limit and its setting",
    499: "The visitor has left",
    500: "A fault of the program in the worker; other pages still work",
    503: "The worker loads its model, is full, or is gone: see Retry-After",
}


def data_responses(view: type[View], formats: tuple[str, ...], live: bool) -> Responses:
    """Describe the answers of a page's data: JSON of the shape of its view, or one of the other formats."""
    content = {MEDIA_TYPES[format]: _TEXT for format in formats if format != "json"}
    errors: Responses = {status: {"model": ErrorView, "description": text} for status, text in _errors(live).items()}
    return {200: {"model": view, "content": content}, **errors}


def page_responses(live: bool = False) -> Responses:
    """Describe the answers of a page for people; its errors are pages, too, unless Accept asks for data."""
    shape = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorView"}}}
    return {
        status: {"description": text, "content": {"text/html": _TEXT, **shape}}
        for status, text in _errors(live).items()
    }


def _errors(live: bool) -> dict[int, str]:
    return {**_ERRORS, **(_LIVE_ERRORS if live else {})}
