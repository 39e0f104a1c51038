"""One handler for all that goes wrong, one shape: {"error": {"status", "title", "detail"}}, or a page of the same.
Which errors there are is for precompute/errors.py."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from app.html.rendering import PageRequest
from app.library.fault_text import for_visitors
from app.routes.requests import is_partial, origin_of
from app.site import Site
from app.workers.errors import LiveError
from precompute.errors import BadRequest, LexiscopeError, NotBuilt, NotFound

DATA_ENDINGS = (".json", ".csv", ".md", ".tex", "/-/health", "/-/metrics")
UNAVAILABLE = 503
_TITLES = {422: "Cannot be answered", 499: "Nobody waits", 503: "Not available"}

logger = logging.getLogger("lexiscope")


class ErrorPages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def install(self, app: FastAPI) -> None:
        app.add_exception_handler(LexiscopeError, self._known)
        app.add_exception_handler(HTTPException, self._http)
        app.add_exception_handler(RequestValidationError, self._invalid)
        app.add_exception_handler(Exception, self._unexpected)

    async def answer(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        """The page of what went wrong before an answer began; what is not known goes on to be logged."""
        known = {LexiscopeError: self._known, RequestValidationError: self._invalid}
        made = next((made for kind, made in known.items() if isinstance(error, kind)), None)
        response = await (made or self._unexpected)(Request(scope), error)
        await response(scope, receive, send)
        if not made:
            raise error

    async def respond(
        self, request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        title = _TITLES.get(status) or HTTPStatus(status).phrase
        error = {"error": {"status": status, "title": title, "detail": detail}}
        if wants_data(request):
            body, media_type = orjson.dumps(error), "application/json"
        else:
            page = self._page(request, error, (headers or {}).get("retry-after"))
            body, media_type = page.encode("utf-8", "backslashreplace"), "text/html"
        kept = {"cache-control": "no-cache", "vary": "Accept, HX-Request, HX-Request-Type"}
        return Response(body, status, {**kept, **(headers or {})}, media_type)

    def _page(self, request: Request, error: dict[str, Any], retry: str | None) -> str:
        model = request.scope.get("path_params", {}).get("model")
        index, models = None, self._site.models
        if model in models:
            with suppress(LexiscopeError):
                index = self._site.library.index(model)
        live = index is not None and self._site.live.serves(model)
        about = PageRequest(
            request.url.path, request.url.path, origin_of(request), index=index, models=models, live=live
        )
        return self._site.renderer.page("error", is_partial(request), {**error, "links": [], "retry": retry}, about)

    async def _known(self, request: Request, error: Exception) -> Response:
        match error:
            case NotBuilt():
                return await self.respond(request, 404, str(error), {"retry-after": "10"})
            case NotFound():
                return await self.respond(request, 404, str(error))
            case BadRequest():
                return await self.respond(request, 422, str(error))
            case LiveError():  # nothing is logged: it may quote what a visitor typed
                after = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
                return await self.respond(request, error.status, str(error), after)
            case _:
                logger.warning("%s: %s", request.url.path, error)
                said = for_visitors(error, self._site.library.data)
                return await self.respond(request, UNAVAILABLE, said, {"retry-after": "10"})

    async def _http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            allowed = ", ".join(_allowed(request))
            said = f"{request.method} is not for this address: it takes {allowed}"
            return await self.respond(request, 405, said, {"allow": allowed})
        if error.status_code == 404:
            said = (
                f"there is no page at {request.url.path[:200]}. Pages have addresses such as /MODEL, /MODEL/layer/3, "
                "/MODEL/ff/10/2361, /MODEL/head/8/11, /MODEL/head/8/11/vo, /MODEL/token/3290 and /MODEL/search?q=dog"
            )
            return await self.respond(request, 404, said)
        return await self.respond(request, error.status_code, str(error.detail), error.headers)

    async def _invalid(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return await self.respond(request, 422, explain(error.errors()))

    async def _unexpected(self, request: Request, error: Exception) -> Response:
        del error  # guard.py logs it
        said = "this page failed, which is a fault of the program: its log says more. Other pages still work"
        return await self.respond(request, 500, said)


def explain(faults: Sequence[Mapping[str, Any]]) -> str:
    """What pydantic finds wrong with the arguments of an address, in a sentence."""
    return "; ".join(f"{fault['loc'][-1]} = {str(fault['input'])[:100]!r}: {fault['msg']}" for fault in faults)


def _allowed(request: Request) -> list[str]:
    """What some route takes at this address: a page that is read may also take a form. HEAD is the guard's."""
    taken = [method for method in ("GET", "POST") if _routed({**request.scope, "method": method}, request.app.routes)]
    return ["GET", "HEAD", *taken[1:]] if "GET" in taken else taken


def _routed(scope: Scope, routes: Sequence[BaseRoute]) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def wants_data(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return request.url.path.endswith(DATA_ENDINGS) or ("application/json" in accept and "text/html" not in accept)
