"""Makes routes from pages: each page of app/pages gets its two addresses, its formats and its 304."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from lexiscope.app.pages.page import LensArguments, Page, Site, find_pages
from lexiscope.app.routes.dependencies import AnyLive, ServedIndex, SiteLibrary
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, page


def page_router() -> APIRouter:
    router = APIRouter(tags=["pages"], route_class=PageRoute)
    for declared in find_pages().values():
        path = f"/{{model:name}}/{declared.at.pattern}".rstrip("/")
        page(router, path, declared.view, name=declared.name, formats=declared.formats)(endpoint(declared))
    return router


def endpoint(declared: Page[Any, Any, Any]) -> Any:
    """The function that FastAPI calls for a page."""

    async def answer_page(
        answer: ModelPage,
        index: ServedIndex,
        library: SiteLibrary,
        live: AnyLive,
        at: Any,
        ask: Any,
    ) -> Response:
        if isinstance(ask, LensArguments):
            ask = ask.with_lens(index)
        site = Site(index=index, library=library, hide_hubs=bool(answer.hubs))
        address = declared.address(index.manifest.model, at, ask)
        answer.at(address, declared.formats, also=declared.version(site))
        asks = declared.asks(site, at, ask)
        if asks:
            answers = [await live.ask(index.manifest.model, each, answer.request) for each in asks]
            site = Site(index=index, library=library, hide_hubs=site.hide_hubs, answers=answers)
        view = await answer.make(declared.make, site, at, ask)
        return answer.show(declared.template or declared.name, view)

    answer_page.__doc__ = declared.make.__doc__
    answer_page.__annotations__ |= {
        "at": Annotated[declared.at, Path()],
        "ask": Annotated[declared.arguments, Query()],
    }
    return answer_page
