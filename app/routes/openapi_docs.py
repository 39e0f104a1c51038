"""The OpenAPI document: what FastAPI finds in the routes, with each face of a page as an address of its own.
Showing it at /docs is for templates/docs.html."""

import copy
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.addresses import FORMATS
from app.routes.arguments import FACES
from app.routes.examples import ERROR, EXAMPLES
from app.routes.live_examples import LIVE_EXAMPLES
from app.site import program_version
from app.system_types import ErrorView

FACE = "{face}"
HAS_FACES = "x-faces"  # of an operation, while the document is made
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorView, "description": "The address is not text in UTF-8"},
    404: {"model": ErrorView, "description": "There is no such model, layer, neuron, head, subhead, token or page"},
    414: {"model": ErrorView, "description": "The address is too long"},
    422: {"model": ErrorView, "description": "An argument has a value it cannot have; the detail says which it can"},
    503: {"model": ErrorView, "description": "The layer's file is damaged or gone; other layers still work"},
}
LIVE_ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorView, "description": "There is no such model, token or page, or live pages are off"},
    413: {"model": ErrorView, "description": "More than a limit allows; the detail has the limit and its setting"},
    499: {"model": ErrorView, "description": "The visitor has left"},
    500: {"model": ErrorView, "description": "A fault of the program in the worker; other pages still work"},
    503: {"model": ErrorView, "description": "The worker loads its model, is full, or is gone: see Retry-After"},
}
DESCRIPTION = """A transformer's weights as words. Every page is an address that holds its whole state; with `.json` at
the end of the path it is data, with `.csv`, `.md` and `.tex` its tables; a prompt has `.json` and `.csv`. Addresses
answer GET and HEAD, and carry an `ETag`; arguments that have their default are left out. A token is
`{"id", "token"}`, in a list with `"score"`; a vector is `{"top", "bottom"}`."""


def document_of(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """A function that makes the document when it is first asked for."""
    made: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not made:
            found = get_openapi(
                title="Lexiscope", version=program_version(), description=DESCRIPTION, routes=app.routes
            )
            made.update(_with_faces(found))
        return made

    return document


def _with_faces(found: dict[str, Any]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for path, item in found["paths"].items():
        if path == "/":
            faces = {"json": "/index.json", "html": "/", **{face: f"/index.{face}" for face in FACES if face != "json"}}
        elif FACE in path:
            faces = {"json": path.replace(FACE, ".json"), "html": path.replace(FACE, "")}
            offered = item["get"].pop(HAS_FACES, FACES)
            faces |= {face: path.replace(FACE, f".{face}") for face in offered if face != "json"}
        else:
            _let_errors_be_pages(item["get"])
            paths[path] = item
            continue
        for face, address in faces.items():
            paths[address] = {"get": _operation(item["get"], face)}
    return {**found, "paths": paths}


def _operation(declared: dict[str, Any], face: str) -> dict[str, Any]:
    """One face of a page; FastAPI declares the page with the schema of its JSON."""
    operation = copy.deepcopy(declared)
    _let_words_be_ids(operation)
    operation["operationId"] = f"{declared['operationId']}_{face}"
    if face == "json":
        operation["responses"]["200"]["content"]["application/json"]["example"] = (EXAMPLES | LIVE_EXAMPLES)[
            declared["operationId"]
        ]
        operation["responses"]["404"]["content"]["application/json"]["example"] = ERROR
        return operation
    operation["summary"] += f" ({face})"
    kind = FORMATS[face]
    operation["responses"]["200"]["content"] = {kind: {"schema": {"type": "string"}}}
    if face == "html":
        _let_errors_be_pages(operation)
        if declared["operationId"] == "search":
            operation["responses"]["303"] = {"description": "The search names a parameter: goes to its page"}
    return operation


def _let_words_be_ids(operation: dict[str, Any]) -> None:
    if operation["operationId"] == "layer":
        operation["responses"]["303"] = {"description": "The token is given as a word: goes to the address with its id"}


def _let_errors_be_pages(operation: dict[str, Any]) -> None:
    """Unless data are asked for, by the address or by Accept."""
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            response["content"] = {"text/html": {"schema": {"type": "string"}}, **response["content"]}
