"""Give every error one shape: {"error": {"status", "title", "detail"}}, or a page with the same content. Refuse an
argument that an address does not take, and name the most similar one that it takes."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlencode

import orjson
from fastapi import FastAPI
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from lexiscope.app.html.rendering import PageRequest
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.lists.view import ShownError
from lexiscope.app.site.answer import NotModified, is_partial, origin_of
from lexiscope.app.site.dependencies import best_lenses, unpinned
from lexiscope.app.site.form_again import form_again
from lexiscope.app.urls import ALL_FORMATS
from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotBuilt, NotFound, OtherBuild
from lexiscope.precompute.live.wire.errors import LiveDown, LiveError, TooLarge, status_of, title_of

NEAR = 0.55  # how similar two names must be, from 0 to 1, to suggest one for the other
MOST_SHOWN = 60  # most characters of an unknown name that a message shows


class UnknownArgument(BadRequest):
    """The error of an address with an argument that it does not take. `instead` names the one that was probably meant;
    None if none is similar."""

    def __init__(self, message: str, name: str = "", instead: str | None = None) -> None:
        super().__init__(message)
        self.name, self.instead = name, instead


async def check_arguments(request: Request) -> None:
    """Refuse unknown arguments of any address. The known ones are in the signature of the route and of its
    dependencies."""
    route = request.scope.get("route")
    if request.query_params and isinstance(route, APIRoute):
        known = [field.alias for field in get_flat_params(route.dependant) if field.alias not in request.path_params]
        check_names(request.query_params.keys(), list(dict.fromkeys(known)))


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            instead = next(iter(get_close_matches(name.lower(), known, n=1, cutoff=NEAR)), None)
            meant = f"did you mean {instead}? It" if instead else "it"
            takes = f"takes {', '.join(known)}" if known else "takes no arguments"
            raise UnknownArgument(f"this address has no argument {name[:MOST_SHOWN]!r}: {meant} {takes}", name, instead)


def corrected_address(request: Request, error: UnknownArgument) -> str:
    """Return the address with the argument that was probably meant, or without the unknown one."""
    arguments = [
        (error.instead if name == error.name else name, value) for name, value in request.query_params.multi_items()
    ]
    query = urlencode([(name, value) for name, value in arguments if name is not None])
    return request.url.path + (f"?{query}" if query else "")


DATA_ENDINGS = (*(f".{format}" for format in ALL_FORMATS), "/-/health", "/-/metrics")
RETRY_SECONDS = 10  # by then a layer may have been built, or a file of an index repaired

logger = logging.getLogger("lexiscope")


def add_error_pages(app: FastAPI) -> None:
    @app.exception_handler(NotModified)
    async def not_modified(_: Request, error: NotModified) -> Response:
        return Response(None, 304, error.headers)

    @app.exception_handler(LexiscopeError)
    async def known(request: Request, error: LexiscopeError) -> Response:
        shown, way_out, headers = shown_error_of(error, request), None, {}
        is_typed = isinstance(error, BadRequest | NotFound | TooLarge) and not isinstance(
            error, UnknownArgument | NotBuilt
        )
        match error:
            case UnknownArgument():
                way_out = corrected_address(request, error)
            case OtherBuild():
                way_out = unpinned(request)
                headers = {"link": f'<{way_out}>; rel="latest-version"'}
        headers |= shown.headers
        waits = isinstance(error, LiveDown)
        return await error_page(app.state, request, shown.status, shown.detail, headers, way_out, is_typed, waits)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        match error.status_code:
            case 405:
                allowed = ", ".join(_allowed(request))
                detail = f"{request.method} is not for this address: it takes {allowed}"
                return await error_page(app.state, request, 405, detail, {"allow": allowed})
            case 404:
                detail = (
                    f"there is no page at {request.url.path[:200]}. Pages have addresses such as /MODEL, "
                    "/MODEL/layer/3, /MODEL/ff/10/2361, /MODEL/head/8/11, /MODEL/head/8/11/vo, /MODEL/token/3290 and "
                    "/MODEL/search?q=dog"
                )
                return await error_page(app.state, request, 404, detail)
            case status:
                return await error_page(app.state, request, status, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return await error_page(app.state, request, 422, explain(error.errors()), is_typed=True)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, _: Exception) -> Response:
        detail = "this page failed, which is an error of the program: its log says more. Other pages still work"
        return await error_page(app.state, request, 500, detail)


def shown_error_of(error: LexiscopeError, request: Request) -> ShownError:
    """Return what a visitor reads of an error. Errors of an index are also logged; other errors are not, because they
    may quote what the visitor typed."""
    detail, retry_after = str(error), None
    match error:
        case NotBuilt():
            retry_after = RETRY_SECONDS
        case LiveError():
            retry_after = error.retry_after
        case NotFound() | BadRequest():
            pass
        case _:
            logger.warning("%s: %s", request.url.path, error)
            detail, retry_after = for_visitors(error, request.app.state.library.data), RETRY_SECONDS
    status = status_of(error)
    return ShownError(status=status, title=title_of(status), detail=detail, retry_after=retry_after)


async def error_page(
    state: State,
    request: Request,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    way_out: str | None = None,
    is_typed: bool = False,
    waits: bool = False,
) -> Response:
    """Answer with an error as a page or as data. `way_out` is an address that would work. If the error may be in what
    was typed, the page has the form again; if it waits for a worker, it shows that it does."""
    error = {"error": {"status": status, "title": title_of(status), "detail": detail}}
    headers = {"cache-control": "no-cache", "vary": "Accept, HX-Request, HX-Request-Type", **(headers or {})}
    if wants_data(request):
        return Response(orjson.dumps(error), status, headers, "application/json")
    links = [{"href": way_out, "text": f"Open {way_out[:200]}"}] if way_out else []
    view: dict[str, Any] = {**error, "links": links, "retry": headers.get("retry-after"), "query": request.url.query}
    view |= {"form": await form_again(request, detail) if is_typed else None, "waits": waits}
    page: str = state.renderer.page("error", is_partial(request), view, _page_request(state, request))
    return Response(page.encode("utf-8", "backslashreplace"), status, headers, "text/html")


def _page_request(state: State, request: Request) -> PageRequest:
    model = request.scope.get("path_params", {}).get("model")
    index, models = None, best_lenses(state.library)
    if model in models:
        with suppress(LexiscopeError):
            index = state.library.index(model)
    live = index is not None and state.live.serves(model)
    path = request.url.path
    difference = state.library.two_models(index) if index else None
    return PageRequest(
        path, path, origin_of(request, state.settings), index=index, models=models, difference=difference, live=live
    )


def explain(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence that explains which arguments of an address pydantic finds wrong, and why."""
    said = []
    for error in errors:
        where, *within = error["loc"]  # "query" and the argument, or the argument of a form; then what it may be
        name = within[0] if where in ("path", "query") else where
        said.append(f"{name} = {str(error['input'])[:100]!r}: {error['msg']}")
    return "; ".join(said)


def _allowed(request: Request) -> list[str]:
    """Return the HTTP methods that routes accept at this address: a page may also accept a form by POST. HEAD is
    answered as GET."""
    methods = [method for method in ("GET", "POST") if _routed({**request.scope, "method": method}, request.app.routes)]
    return ["GET", "HEAD", *methods[1:]] if "GET" in methods else methods


def _routed(scope: Scope, routes: Sequence[BaseRoute]) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def wants_data(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return request.url.path.endswith(DATA_ENDINGS) or ("application/json" in accept and "text/html" not in accept)
