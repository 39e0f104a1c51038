"""Answers a request for a page of the table in any of its faces: with 304 where nothing is new, else with its view.
FastAPI knows the routes by their signatures, for OpenAPI; here arguments are read in a fraction of its time."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from app.error_pages import ErrorPages
from app.faces import BARE_FACES, MEDIA_TYPES, WHOLE_FACES, csv_face, html_face, table_face, twin, twin_addresses
from app.live_index import LiveIndex
from app.page_types import SearchView
from app.rendering import PageRequest
from app.requests import VARY, has_etag, is_partial, origin_of, wants_suggestions
from app.routes.long_answers import in_parts
from app.routes.table import Call, Elsewhere, Page
from app.site import Site
from app.view_types import View
from precompute.errors import IndexFault, NotFound

_TYPES = {face: media_type.partition(";")[0] for face, media_type in MEDIA_TYPES.items()}
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
        if scope["type"] == "http":
            for route in self.routes:
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found)
                    await self._errors.around(route.answer, scope, receive, send)
                    return
        await self.app(scope, receive, send)


def endpoint(site: Site, page: Page) -> Endpoint:
    async def respond(request: Request) -> Response:
        path = request.path_params
        face: str = path.get("face", "html")
        model: str | None = path.get("model")
        numbers = {name: value for name, value in path.items() if name not in ("face", "model")}
        arguments = {**numbers, **page.parse(request.scope["query_string"])}
        if face != "html" and face not in page.faces:
            raise NotFound(f"{page.name} has no .{face}: there is .{', .'.join(page.faces)}")
        index = None if model is None else site.library.index(model)
        canonical = page.canonical(model, arguments)
        variant = _variant(request, page, face)
        call = Call(site, index, variant == "suggestions", request, face in WHOLE_FACES)
        state = page.state(call, arguments)
        etag = _etag(site, request, index, canonical, variant, state)
        headers = {"cache-control": "no-cache", "etag": etag, "vary": VARY}
        if index:
            headers["x-lexiscope-build"] = index.manifest.build  # as long as it is the same, so are the lists
        if has_etag(request, headers["etag"]):
            return Response(None, 304, headers)

        try:
            view, used = await _view(page, call, arguments)
        except Elsewhere as moved:
            where = moved.address if face == "html" else twin(moved.address, face)
            return RedirectResponse(where, 303, {"cache-control": "no-cache", "vary": VARY})
        if isinstance(view, SearchView) and view.jump and variant in ("html", "partial"):
            return RedirectResponse(view.jump, 303, {"cache-control": "no-cache", "vary": VARY})
        twins = twin_addresses(canonical, page.faces)
        headers["link"] = _links(canonical, twins)
        if used is not index:
            index, headers["etag"] = used, _etag(site, request, used, canonical, variant, state)
        if index and index.changed:  # since its version was taken
            del headers["etag"]
        if face == "json":
            return Response(view.json_bytes(), 200, headers, MEDIA_TYPES[face])
        if face == "csv":
            return in_parts(csv_face(view), headers, MEDIA_TYPES[face])
        about = page_request(site, request, canonical, twins, arguments, index)
        html = face == "html"
        body = html_face(site, page.name, variant, view, about) if html else table_face(face, view, about)
        return Response(body, 200, headers, MEDIA_TYPES[face])

    respond.__signature__ = page.signature  # type: ignore[attr-defined]
    respond.__name__ = page.name
    respond.__doc__ = page.make.__doc__
    return respond


def page_request(
    site: Site,
    request: Request,
    canonical: str,
    twins: Mapping[str, str],
    arguments: Mapping[str, Any],
    index: LiveIndex | None,
) -> PageRequest:
    model = index.manifest.model if index else None
    shown = model or next(iter(site.models), None)  # home shows the first one
    return PageRequest(
        path=request.scope["path"],
        canonical=canonical,
        origin=origin_of(request),
        twins=twins,
        query={**arguments, "model": model},
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


def _links(canonical: str, twins: Mapping[str, str]) -> str:
    alternates = [f'<{url}>; rel="alternate"; type="{_TYPES[face]}"' for face, url in twins.items()]
    return ", ".join([f'<{canonical}>; rel="canonical"', *alternates])
