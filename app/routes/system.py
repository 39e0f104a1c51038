"""The routes that are not about parameters: health, settings, metrics, help, documentation, static files, chance.
Pages about models are in pages.py."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from app import addresses
from app.formats.json_format import json_bytes
from app.html.assets import Asset
from app.html.rendering import PageRequest
from app.metrics import MEDIA_TYPE
from app.routes.arguments import Lens, Model
from app.routes.example_links import example_links
from app.routes.openapi_docs import ERRORS
from app.routes.requests import VARY, is_partial, origin_of
from app.settings import described
from app.site import Site
from app.system_types import HealthView, ModelHealth, SettingsView
from app.views.model import random_neuron

YEAR = "public, max-age=31536000, immutable"
ENDLESS = ("/*/random", "/*/search", "/*/seeds", "/*/relation", "/*/prompt", "/*reading=", "/-/metrics")
ROBOTS = "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in ENDLESS)


def system_router(site: Site, document: Callable[[], dict[str, Any]]) -> APIRouter:
    """`document` is the OpenAPI document of the whole app."""
    router = APIRouter(tags=["system"])

    @router.get("/-/health", operation_id="health", response_model=None, responses={200: {"model": HealthView}})
    async def health() -> Response:
        """Whether the server answers, and which layers of which models are ready."""
        models = tuple(
            ModelHealth(model=card.model, layers_ready=len(card.layers), n_layers=card.n_layers, faults=card.faults)
            for card in site.library.cards()
        )
        return _data(json_bytes(HealthView(status="ok", models=models)), no_store=True)

    @router.get(
        "/-/settings.json", operation_id="settings", response_model=None, responses={200: {"model": SettingsView}}
    )
    async def settings_data() -> Response:
        """Every setting, its value, its meaning."""
        return _data(orjson.dumps({"settings": described(site.settings)}))

    @router.get(
        "/-/metrics", operation_id="metrics", response_class=PlainTextResponse, responses={200: {"description": "Text"}}
    )
    async def metrics() -> Response:
        """Requests, their time, and memory, as Prometheus reads them."""
        return Response(site.metrics.text(), 200, {"cache-control": "no-store"}, MEDIA_TYPE)

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return _data(orjson.dumps(document()))

    @router.get("/help", include_in_schema=False)
    async def short_help() -> Response:
        return RedirectResponse(addresses.help_page(), 303)

    @router.get("/robots.txt", include_in_schema=False)
    async def robots() -> Response:
        return Response(ROBOTS, 200, media_type="text/plain")

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        return _file(site.assets.get(name), request)

    @router.get("/favicon.ico", include_in_schema=False)
    async def favicon(request: Request) -> Response:
        return _file(site.assets.get("favicon.ico") or site.assets.get("favicon.svg"), request)

    @router.get("/favicon.svg", include_in_schema=False)
    async def favicon_svg(request: Request) -> Response:
        return _file(site.assets.get("favicon.svg"), request)

    @router.get(
        "/{model:name}/random", operation_id="random", summary="Random", response_class=RedirectResponse,
        status_code=303, responses=ERRORS,
    )  # fmt: skip
    async def chance(model: Model, lens: Lens = "dot") -> Response:
        """Goes to the page of a random neuron."""
        layer, neuron = random_neuron(site.library.index(model))
        return RedirectResponse(addresses.ff(model, layer, neuron, lens=lens), 303, {"cache-control": "no-store"})

    for path, name, twin, view in (
        ("/-/help", "help", None, lambda: None),
        ("/-/settings", "settings", "/-/settings.json", lambda: {"settings": described(site.settings)}),
        ("/docs", "docs", "/openapi.json", lambda: {"document": document(), "links": example_links(site, document())}),
    ):
        router.add_api_route(path, _page(site, name, twin, view), name=name, include_in_schema=False)
    return router


def _page(site: Site, name: str, twin: str | None, view: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
    """A page that is the same for everybody until the server starts anew."""

    async def respond(request: Request) -> Response:
        path = request.url.path
        formats = {"json": twin} if twin else {}
        about = PageRequest(path, path, origin_of(request), formats, models=site.models)
        body = site.renderer.page(name, is_partial(request), view(), about)
        headers = {"cache-control": "no-cache", "vary": VARY, "link": f'<{path}>; rel="canonical"'}
        if twin:
            headers["link"] += f', <{twin}>; rel="alternate"; type="application/json"'
        return Response(body, 200, headers, addresses.content_type("html"))

    return respond


def _data(body: bytes, no_store: bool = False) -> Response:
    return Response(body, 200, {"cache-control": "no-store" if no_store else "no-cache"}, "application/json")


def _file(asset: Asset | None, request: Request) -> Response:
    if asset is None:
        raise HTTPException(404)
    etag = f'"{asset.version}"'
    headers = {"etag": etag, "cache-control": YEAR if request.query_params.get("v") == asset.version else "no-cache"}
    if etag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    return Response(asset.content, 200, headers, asset.media_type)
