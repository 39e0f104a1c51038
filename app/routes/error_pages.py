"""Whatever goes wrong has one shape: {"error": {"status", "title", "detail"}}, or a page that says the same."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from lexiscope.app.addresses import FIGURE_FORMATS
from lexiscope.app.html.rendering import PageRequest
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.routes.dependencies import best_lenses
from lexiscope.app.routes.page_answer import NotModified
from lexiscope.app.routes.requests import is_partial, origin_of
from lexiscope.app.routes.unknown_arguments import UnknownArgument, corrected_address
from lexiscope.app.views.trouble import Trouble
from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotBuilt, NotFound
from lexiscope.precompute.live.wire.errors import LiveError, status_of, title_of

DATA_ENDINGS = (*(f".{format}" for format in FIGURE_FORMATS), "/-/health", "/-/metrics")
RETRY_SECONDS = 10  # after which a layer may have been built, or a file of an index put right

logger = logging.getLogger("lexiscope")


def add_error_pages(app: FastAPI) -> None:
    @app.exception_handler(NotModified)
    async def not_modified(_: Request, error: NotModified) -> Response:
        return Response(None, 304, error.headers)

    @app.exception_handler(LexiscopeError)
    async def known(request: Request, error: LexiscopeError) -> Response:
        way_out = corrected_address(request, error) if isinstance(error, UnknownArgument) else None
        trouble = trouble_of(error, request)
        return await error_page(app.state, request, trouble.status, trouble.detail, trouble.headers, way_out)

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
        return await error_page(app.state, request, 422, explain(error.errors()))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, _: Exception) -> Response:
        detail = "this page failed, which is a fault of the program: its log says more. Other pages still work"
        return await error_page(app.state, request, 500, detail)


def trouble_of(error: LexiscopeError, request: Request) -> Trouble:
    """What a visitor is told of an error; a fault of an index goes to the log, too. The others do not, because they may
    quote what a visitor typed."""
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
    return Trouble(status=status, title=title_of(status), detail=detail, retry_after=retry_after)


async def error_page(
    state: State,
    request: Request,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    way_out: str | None = None,
) -> Response:
    """`way_out` is an address that would work."""
    error = {"error": {"status": status, "title": title_of(status), "detail": detail}}
    headers = {"cache-control": "no-cache", "vary": "Accept, HX-Request, HX-Request-Type", **(headers or {})}
    if wants_data(request):
        return Response(orjson.dumps(error), status, headers, "application/json")
    links = [{"href": way_out, "text": f"Open {way_out[:200]}"}] if way_out else []
    view: dict[str, Any] = {**error, "links": links, "retry": headers.get("retry-after"), "query": request.url.query}
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


def explain(faults: Sequence[Mapping[str, Any]]) -> str:
    """What pydantic finds wrong with the arguments of an address, in a sentence."""
    return "; ".join(f"{fault['loc'][-1]} = {str(fault['input'])[:100]!r}: {fault['msg']}" for fault in faults)


def _allowed(request: Request) -> list[str]:
    """What some route takes at this address: a page that is read may also take a form. HEAD is answered as GET."""
    methods = [method for method in ("GET", "POST") if _routed({**request.scope, "method": method}, request.app.routes)]
    return ["GET", "HEAD", *methods[1:]] if "GET" in methods else methods


def _routed(scope: Scope, routes: Sequence[BaseRoute]) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def wants_data(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return request.url.path.endswith(DATA_ENDINGS) or ("application/json" in accept and "text/html" not in accept)
