"""Put the site together: create_app(settings) returns all of it as an ASGI app."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from fastapi import Depends, FastAPI
from starlette.types import ASGIApp

from lexiscope.app.asgi.middleware import BodyLimit, CatchErrors, ErrorPage, RequestLog
from lexiscope.app.html.assets import fingerprint, folder, load_assets
from lexiscope.app.html.rendering import Renderer
from lexiscope.app.library.library import Library
from lexiscope.app.live.client import LiveClient
from lexiscope.app.metrics import Metrics
from lexiscope.app.settings import Settings
from lexiscope.app.site import prompt_form, system
from lexiscope.app.site.docs import DESCRIPTION
from lexiscope.app.site.errors import add_error_pages, check_arguments, error_page
from lexiscope.app.site.events import events_router
from lexiscope.app.site.limits import StreamLimit
from lexiscope.app.site.pictures import Pictures
from lexiscope.app.site.routes import page_router
from lexiscope.app.site.security import AddressCheck, HeadAsGet, SecurityHeaders
from lexiscope.app.urls import is_reserved


def create_app(settings: Settings) -> ASGIApp:
    app = app_without_routes(settings)
    for room in (system, prompt_form):
        app.include_router(room.router)
    app.include_router(events_router())
    app.include_router(page_router())
    return with_middleware(app)


def app_without_routes(settings: Settings) -> FastAPI:
    """Make the FastAPI app. What all routes share is stored in app.state; app/site/dependencies.py gives it to them."""
    app = FastAPI(
        title="Lexiscope",
        version=program_version(),
        description=DESCRIPTION,
        lifespan=_lifespan,
        dependencies=[Depends(check_arguments)],
        openapi_url=None,  # a route of this app serves it, and checks its arguments
        docs_url=None,  # a page of this app without scripts
        redoc_url=None,
        redirect_slashes=False,  # the redirect would go to any host that the visitor names
        telemetry={"tracing": False, "metrics": False, "logs": False},  # /-/metrics has metrics of this app
    )
    app.state.settings = settings
    app.state.library = Library(settings.data, settings.refresh, is_reserved)
    app.state.live = LiveClient(settings, app.state.library)
    app.state.assets = load_assets(folder("static"))
    app.state.renderer = Renderer({name: asset.url for name, asset in app.state.assets.items()})
    app.state.metrics = Metrics()
    app.state.streams = StreamLimit(settings.streams)  # the limit of streamed CSV and events
    app.state.pictures = Pictures()
    app.state.version = _version(app)
    add_error_pages(app)
    return app


def with_middleware(app: FastAPI) -> ASGIApp:
    return wrap_app(app, app.state.settings, app.state.metrics, partial(error_page, app.state))


def wrap_app(app: ASGIApp, settings: Settings, metrics: Metrics, error_page: ErrorPage) -> ASGIApp:
    """Put the middleware around the finished app, innermost first. FastAPI's add_middleware would not see errors for
    which there is no handler."""
    app = BodyLimit(app, settings.body_limit, settings.body_seconds)
    app = AddressCheck(app, settings.url_limit, error_page)
    app = CatchErrors(app, error_page)
    app = RequestLog(app, metrics, settings.access_log)
    app = HeadAsGet(app)
    return SecurityHeaders(app)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.live.start()
    try:
        yield
    finally:
        await app.state.live.close()


def _version(app: FastAPI) -> str:
    """Return a text that changes with the program, its templates, its static files and its settings: it is a part of
    every ETag."""
    facts = [
        program_version(),
        fingerprint(folder("templates")),
        fingerprint(folder("reading")),
        app.state.settings.model_dump_json(),
    ]
    facts += [asset.url for asset in app.state.assets.values()]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def program_version() -> str:
    try:
        return version("lexiscope")
    except PackageNotFoundError:
        return "0"
