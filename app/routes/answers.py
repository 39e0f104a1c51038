"""Answers a request for a page of the table in any of its faces: with 304 where nothing is new, else with its view.
FastAPI knows the routes by their signatures, for OpenAPI; here arguments are read in a fraction of its time."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.addresses import format_address
from app.formats.faces import BARE_FACES, WHOLE_FACES, csv_face, html_face, links, table_face, twin_addresses
from app.formats.json_format import json_bytes
from app.html.rendering import PageRequest
from app.library.live_index import LiveIndex
from app.routes.error_pages import ErrorPages
from app.routes.requests import VARY, has_etag, is_partial, origin_of, wants_suggestions
from app.routes.responses import Answer, Headers, answer, in_parts
from app.routes.table import Call, Elsewhere, Page
from app.site import Site
from app.views.search import SearchView
from app.views.tokens import View
from precompute.errors import IndexFault, NotFound

_NO_CACHE, _VARY = (b"cache-control", b"no-cache"), (b"vary", VARY.encode())
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class PageRoute(APIRoute):
    """FastAPI documents it by its endpoint's signature; the endpoint gets the request itself."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app = self.answer  # nothing here has dependencies that FastAPI would have to close

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


class Pages:
    """Answers for these routes by itself and leaves all else to the app, whose layers take longer than a list does."""

    def __init__(self, routes: Sequence[PageRoute], app: ASGIApp, errors: ErrorPages) -> None:
        self.routes = routes
        self.app = app
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._found(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        try:
            response = await route.endpoint(Request(scope, receive, send))
        except Exception as error:
            await self._errors.answer(error, scope, receive, send)
        else:
            await response(scope, receive, send)

    def _found(self, scope: Scope) -> PageRoute | None:
        """The route of this path; what it says is then in the scope, as the app's own router would put it there."""
        for route in self.routes:
            if match := route.path_regex.match(scope["path"]):
                kinds = route.param_convertors
                scope["path_params"] = {name: kinds[name].convert(said) for name, said in match.groupdict().items()}
                scope["route"] = route
                return route
        return None


def endpoint(site: Site, page: Page) -> Endpoint:
    async def respond(request: Request) -> Response:
        arguments = {**request.path_params, **page.parse(request.scope["query_string"])}
        face: str = arguments.pop("face", "html")
        model: str | None = arguments.pop("model", None)
        if face != "html" and face not in page.faces:
            raise NotFound(f"{page.name} has no .{face}: there is .{', .'.join(page.faces)}")
        index = None if model is None else site.library.index(model)
        canonical = page.canonical(model, arguments)
        variant = _variant(request, page, face)
        call = Call(site, index, variant == "suggestions", request, face in WHOLE_FACES)
        state = page.state(call, arguments)
        etag = _etag(site, request, index, canonical, variant, state)
        if has_etag(request, etag):
            return Answer(b"", 304, _headers(index, etag))

        if call.whole:
            await site.turns.taken()
        try:
            view, used = await _view(page, call, arguments)
        except Elsewhere as moved:
            where = format_address(moved.address, face)
            return RedirectResponse(where, 303, {"cache-control": "no-cache", "vary": VARY})
        if isinstance(view, SearchView) and view.jump and variant in ("html", "partial"):
            return RedirectResponse(view.jump, 303, {"cache-control": "no-cache", "vary": VARY})
        if used is not index:
            index, etag = used, _etag(site, request, used, canonical, variant, state)
        headers = _headers(index, "" if index and index.changed else etag)  # changed since its version was taken
        headers.append((b"link", links(canonical, page.faces).encode()))
        if face == "json":
            return answer(json_bytes(view), face, headers)
        if face == "csv":
            return in_parts(csv_face(view), face, headers, site.turns)
        about = page_request(site, request, canonical, twin_addresses(canonical, page.faces), index)
        html = face == "html"
        body = html_face(site, page.name, variant, view, about) if html else table_face(face, view, about)
        return answer(body, face, headers)

    respond.__signature__ = page.signature  # type: ignore[attr-defined]
    respond.__name__ = page.name
    respond.__doc__ = page.make.__doc__
    return respond


def _headers(index: LiveIndex | None, etag: str) -> Headers:
    headers = [_NO_CACHE, (b"etag", etag.encode()), _VARY] if etag else [_NO_CACHE, _VARY]
    if index:  # as long as its build is the same, so are the lists
        headers.append((b"x-lexiscope-build", index.manifest.build.encode()))
    return headers


def page_request(
    site: Site,
    request: Request,
    canonical: str,
    formats: Mapping[str, str],
    index: LiveIndex | None,
) -> PageRequest:
    model = index.manifest.model if index else None
    shown = model or next(iter(site.models), None)  # home shows the first one
    return PageRequest(
        path=request.scope["path"],
        canonical=canonical,
        origin=origin_of(request),
        formats=formats,
        index=index,
        models=site.models,
        live=shown is not None and site.live.serves(shown),
    )


async def _view(page: Page, call: Call, arguments: Mapping[str, Any]) -> tuple[View, LiveIndex | None]:
    """The view, and the index that it shows: another than the call's if a file was replaced since that was opened."""
    index = call.opened
    assert index is None or isinstance(index, LiveIndex)
    try:
        view = await _made(page, call, arguments)
    except IndexFault:
        if index is None or not index.changed:
            raise
    else:
        if index is None or not index.changed:
            return view, index
    fresh = call.site.library.index(call.model)
    return await _made(page, replace(call, opened=fresh), arguments), fresh


async def _made(page: Page, call: Call, arguments: Mapping[str, Any]) -> View:
    made = page.make(call, **arguments)
    return made if isinstance(made, View) else await made


def _variant(request: Request, page: Page, face: str) -> str:
    """The face, or the part of the HTML that is asked for."""
    if face != "html" or not is_partial(request):
        return face
    return "suggestions" if page.name == "search" and wants_suggestions(request) else "partial"


def _etag(site: Site, request: Request, index: LiveIndex | None, canonical: str, variant: str, state: str) -> str:
    """Strong: another one whenever the bytes of the answer may be others. Needs no list of the index."""
    parts = [site.salt, index.version if index else site.library.version(), canonical, variant, state]
    if variant not in BARE_FACES:
        parts.append(origin_of(request))  # these hold links that leave the site
    if variant in ("html", "partial"):
        parts += site.models
    return f'"{hashlib.blake2b(chr(10).join(parts).encode(), digest_size=12).hexdigest()}"'
