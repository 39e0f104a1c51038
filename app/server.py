"""Puts the explorer together: create_app(settings) is the whole of it, as an ASGI app.
What is where is for routes/; listening and stopping is for commands/serve.py."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from app.middleware.stack import wrap_app
from app.routes import arguments
from app.routes.answers import PageRoute, Pages, endpoint
from app.routes.error_pages import ErrorPages
from app.routes.live_pages import LIVE
from app.routes.live_prompt import prompt_router
from app.routes.openapi_docs import ERRORS, HAS_FACES, LIVE_ERRORS, document_of
from app.routes.pages import HOME, MODEL, PAGES
from app.routes.reading_events import reading_router
from app.routes.system import system_router
from app.routes.table import Page
from app.settings import Settings
from app.site import Site, open_site


def create_app(settings: Settings) -> ASGIApp:
    site = open_site(settings)
    arguments.register()
    app = FastAPI(
        openapi_url=None, docs_url=None, redoc_url=None, title="Lexiscope", lifespan=_life(site),
        redirect_slashes=False,  # it would go to whatever host the visitor names
        telemetry={"tracing": False, "metrics": False, "logs": False},  # /-/metrics has ours
    )  # fmt: skip
    for page in PAGES:
        _add(app, site, page, page.path + "{face:face}")
    for page in LIVE:
        _add(app, site, page, page.path + "{face:face}", live=True)
    straight = [route for route in app.router.routes if isinstance(route, PageRoute)]
    _add(app, site, HOME, "/")
    _add(app, site, HOME, "/index{face:twin}", documented=False)
    app.include_router(prompt_router(site))
    app.include_router(reading_router(site))
    app.include_router(system_router(site, document_of(app)))
    _add(app, site, MODEL, MODEL.path + "{face:face}")  # last: its path could be many another
    errors = ErrorPages(site)
    errors.install(app)
    return wrap_app(Pages(straight, app, errors), settings, site.metrics, errors.respond)


def _life(site: Site) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        site.live.start()
        try:
            yield
        finally:
            await site.live.close()

    return life


def _add(app: FastAPI, site: Site, page: Page, path: str, documented: bool = True, live: bool = False) -> None:
    responses: dict[int | str, dict[str, Any]] = {200: {"model": page.shape}, **ERRORS, **(LIVE_ERRORS if live else {})}
    app.router.add_api_route(
        path,
        endpoint(site, page),
        name=page.name,
        operation_id=page.name,
        summary=page.name.capitalize(),
        description=page.make.__doc__,
        tags=["live pages" if live else "pages"],
        responses=responses,
        response_model=None,
        include_in_schema=documented,
        openapi_extra={HAS_FACES: page.faces},
        route_class_override=PageRoute,
    )
