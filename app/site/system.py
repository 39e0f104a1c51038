"""Answer addresses that are not about parameters: health, settings, metrics, help, documentation, static files."""

from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from lexiscope.app.html.help_pages import START, help_link, help_pages
from lexiscope.app.html.rendering import PageRequest
from lexiscope.app.metrics import MEDIA_TYPE
from lexiscope.app.settings import described
from lexiscope.app.site.answer import VARY, has_etag, is_partial, origin_of
from lexiscope.app.site.dependencies import AnyLive, SiteLibrary, SiteSettings, best_lenses
from lexiscope.app.site.docs import example_links
from lexiscope.app.site.llms import llms_text
from lexiscope.precompute.errors import NotFound

YEAR = "public, max-age=31536000, immutable"
LIVE = ("seeds", "relation", "transition", "heads", "prompt")
ENDLESS = ("random", "search", "sample", "beside", *LIVE)
# arguments that cost the worker much, or give each page again
ASKED = ("reading", "beforehand", "build", "pin", "vocabulary", "min_similarity", "max_similarity")
PATHS = (*(f"/*/{page}" for page in ENDLESS), *(f"/*{name}=" for name in ASKED), "/-/metrics")
ROBOTS = "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in PATHS)

router = APIRouter(tags=["system"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHealth:
    model: str
    layers_ready: int
    n_layers: int
    faults: tuple[str, ...]  # errors of the model's index, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    status: Literal["ok"]
    models: tuple[ModelHealth, ...]
    labels: tuple[str, ...]  # errors in files of labels, for people
    # Workers by model: ready, loading or down. For a worker that this server does not run, it is the result of the last
    # request: ready, down, timed out, or refused because of its token; unchecked before the first request.
    workers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    name: str
    variable: str  # the name of the setting in the environment
    value: Any
    default: Any
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    settings: tuple[SettingRow, ...]


@router.get("/-/health", operation_id="health")
async def health(library: SiteLibrary, live: AnyLive, response: Response) -> HealthView:
    """The state of the server: which layers of which models are ready, and how its workers are."""
    response.headers["cache-control"] = "no-store"
    models = tuple(
        ModelHealth(model=card.model, layers_ready=len(card.layers), n_layers=card.n_layers, faults=card.faults)
        for card in library.cards()
    )
    return HealthView(status="ok", models=models, labels=library.labels.errors(), workers=live.worker_states())


@router.get("/-/settings.json", operation_id="settings")
async def settings_data(settings: SiteSettings, response: Response) -> SettingsView:
    """Every setting with its value and its meaning."""
    response.headers["cache-control"] = "no-cache"
    return SettingsView(settings=tuple(SettingRow(**row) for row in described(settings)))


@router.get("/-/settings", include_in_schema=False)
async def settings(request: Request, settings: SiteSettings) -> Response:
    return _page(request, "settings", {"settings": described(settings)}, data="/-/settings.json")


@router.get("/-/metrics", operation_id="metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """The numbers of requests, their times, and the memory in use, in the format of Prometheus."""
    return Response(request.app.state.metrics.text(), 200, {"cache-control": "no-store"}, MEDIA_TYPE)


@router.get("/-/help", include_in_schema=False)
async def help_start(request: Request) -> Response:
    return _page(request, "help", help_pages()[START])


@router.get("/-/help.{format}", include_in_schema=False)
@router.get("/help.{format}", include_in_schema=False)
async def help_data(format: str) -> Response:
    raise NotFound(f"help has no .{format}: it is text for people, at {help_link()}")


@router.get("/-/help/{name}", include_in_schema=False)
async def help_page(request: Request, name: str) -> Response:
    if name not in help_pages():
        raise NotFound(f"no help page {name[:100]!r}: there are {', '.join(help_pages())}")
    return _page(request, "help", help_pages()[name])


@router.get("/help", include_in_schema=False)
async def short_help() -> Response:
    return RedirectResponse(help_link(), 303)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The OpenAPI document as a page for people, without scripts."""
    document = request.app.openapi()
    view = {"document": document, "links": example_links(request.app.state, document)}
    return _page(request, "docs", view, data="/openapi.json")


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


@router.get("/robots.txt", include_in_schema=False)
async def robots() -> Response:
    return Response(ROBOTS, 200, media_type="text/plain")


@router.get("/llms.txt", include_in_schema=False)
async def llms(library: SiteLibrary) -> Response:
    return Response(llms_text(library), 200, {"cache-control": "no-cache"}, "text/plain")


@router.get("/static/{name}", include_in_schema=False)
async def static(name: str, request: Request, v: str = "") -> Response:
    return _file(request, name, version=v)


@router.get("/favicon.ico", include_in_schema=False)
async def favicon(request: Request) -> Response:
    return _file(request, "favicon.ico", "favicon.svg")


@router.get("/favicon.svg", include_in_schema=False)
async def favicon_svg(request: Request) -> Response:
    return _file(request, "favicon.svg")


def _page(request: Request, template: str, view: Any, data: str | None = None) -> Response:
    """Answer with a page that stays the same until the server restarts; `data` is the address of its JSON."""
    state, path = request.app.state, request.url.path
    formats, link = {}, f'<{path}>; rel="canonical"'
    if data:
        formats = {"json": data}
        link += f', <{data}>; rel="alternate"; type="application/json"'
    about = PageRequest(path, path, origin_of(request, state.settings), formats, models=best_lenses(state.library))
    body = state.renderer.page(template, is_partial(request), view, about)
    return Response(body, 200, {"cache-control": "no-cache", "vary": VARY, "link": link}, "text/html")


def _file(request: Request, *names: str, version: str = "") -> Response:
    """Answer with the first of these files that exists. A file whose address contains its version never changes."""
    assets = request.app.state.assets
    asset = next((assets[name] for name in names if name in assets), None)
    if asset is None:
        raise HTTPException(404)
    etag = f'"{asset.version}"'
    headers = {"etag": etag, "cache-control": YEAR if version == asset.version else "no-cache"}
    if has_etag(request, etag):
        return Response(None, 304, headers)
    return Response(asset.content, 200, headers, asset.media_type)
