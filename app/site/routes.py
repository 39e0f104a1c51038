"""Make routes from pages: each page of app/pages gets the address for people and that for data, its formats, and its
answer 304."""

from collections.abc import Coroutine, Generator
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lexiscope.app.live.client import LiveClient
from lexiscope.app.pages.page import Arguments, LensArguments, ModelSite, Moved, Page, Site, TwoModelsSite, find_pages
from lexiscope.app.site.answer import LivePage, ModelPage, PageAnswer, PageRoute, SitePage, TwoModelsPage
from lexiscope.app.site.docs import Responses, data_responses, page_responses
from lexiscope.app.site.errors import shown_error_of, wants_data
from lexiscope.precompute.errors import LexiscopeError, NotFound
from lexiscope.precompute.live.wire.errors import VisitorGone

ANSWERS = {"model": ModelPage, "two models": TwoModelsPage, "site": SitePage}


def page_router() -> APIRouter:
    """Register two routes for each page: its path for people, and `path.{format}` for the same data in other
    formats."""
    router = APIRouter(route_class=PageRoute)
    for declared in find_pages().values():
        path = "/" if declared.of == "site" else f"/{{model:name}}/{declared.at.pattern}".rstrip("/")
        moved: Responses = {303: {"description": declared.leads_to}} if declared.leads_to else {}
        # A page that only redirects to another one is listed under `system`.
        tag = "live pages" if declared.is_live else "pages" if declared.formats else "system"
        common: dict[str, Any] = {"name": declared.name, "response_model": None, "tags": [tag]}
        answer_page = endpoint(declared)
        if declared.formats:
            router.add_api_route(
                f"{'/index' if path == '/' else path}.{{format:format}}",
                answer_page,
                operation_id=f"{declared.name}_data",
                summary=f"{declared.name.capitalize()} as data",
                responses=data_responses(declared.view, declared.formats, declared.is_live) | moved,
                dependencies=[_one_of(declared.formats)],
                **common,
            )
        router.add_api_route(
            path,
            answer_page,
            operation_id=declared.name,
            summary=declared.name.capitalize(),
            responses=page_responses(declared.is_live) | moved,
            response_class=HTMLResponse,
            **common,
        )
    return router


def _one_of(formats: tuple[str, ...]) -> Any:
    described = Path(description="What the data are", examples=["json"], json_schema_extra={"enum": list(formats)})

    async def check_format(format: Annotated[str, described]) -> None:
        if format not in formats:
            raise NotFound(f"this page has no .{format}: there is .{', .'.join(formats)}")

    return Depends(check_format)


def endpoint(declared: Page[Any, Any, Any]) -> Any:
    """Make the function that FastAPI calls for a page."""

    async def answer_page(answer: PageAnswer, at: Any, ask: Any) -> Response:
        site, ask = begin(declared, answer, at, ask)
        try:
            site = await with_answers(declared, site, answer.live, answer.request, at, ask)
            view = await make(declared, site, at, ask)
        except Moved as moved:
            return answer.redirect(moved.address, by_chance=moved.by_chance)
        template = f"_{site.part}" if site.part else declared.template or declared.name
        return await answer.show(template, view, site.error)

    answer_page.__doc__ = declared.make.__doc__
    answer_page.__annotations__ |= parameters(declared)
    return answer_page


def parameters(declared: Page[Any, Any, Any]) -> dict[str, Any]:
    """Return the annotated parameters, by name, that FastAPI passes to the function of a page."""
    return {
        "answer": LivePage if declared.is_live else ANSWERS[declared.of],
        "at": Annotated[declared.at, Path()],
        "ask": Annotated[declared.arguments, Query()],
    }


def begin(declared: Page[Any, Any, Any], answer: PageAnswer, at: Any, ask: Any, format: str = "") -> tuple[Site, Any]:
    """Set the address of the answer. Return the Site that the page's function reads, and the arguments with their lens
    (dot or cosine). Raise NotModified if the visitor already has this version of the page."""
    state = answer.request.app.state
    common: dict[str, Any] = {
        "library": state.library,
        "hide_hubs": bool(answer.hubs),
        "kept": answer.kept,
        "format": format or answer.format,
        "part": declared.part if answer.wants_suggestions else "",
        "settings": state.settings,
        "serves": answer.live.serves,
        "prepare": answer.live.prepare,
    }
    site: Site = Site(**common)
    if declared.of == "model":
        assert answer.index is not None
        site = ModelSite(**common, index=answer.index)
        if isinstance(ask, LensArguments):
            ask = ask.with_lens(answer.index)
    if declared.of == "two models":
        site = TwoModelsSite(**common, model=answer.model, other=at.other)
    address = declared.address(answer.model, at, ask)
    formats = declared.formats_of(site, ask) if declared.formats_of else declared.formats
    of_csv = "".join(f" {getattr(ask, name)}" for name in ask.of_csv) if isinstance(ask, Arguments) else ""
    answer.at(address, formats, also=declared.version(site) + of_csv)
    return site, ask


async def with_answers(
    declared: Page[Any, Any, Any], site: Site, live: LiveClient, request: Request, at: Any, ask: Any
) -> Site:
    """Send the page's requests to the workers, one after the other, and return the site with their answers."""
    answers: list[Any] = []
    try:
        asks: Any = declared.asks(site, at, ask)
        computes = isinstance(asks, Generator)  # a generator computes and reads files between two answers
        asks, answer = asks if computes else (asked for asked in asks), None
        while (asked := await run_in_threadpool(_next, asks, answer) if computes else _next(asks, answer)) is not None:
            model, of_model = asked if isinstance(asked, tuple) else (request.path_params["model"], asked)
            answer = await live.ask(model, of_model, request)
            answers.append(answer)
    except LexiscopeError as error:
        if not declared.made_without_answers or isinstance(error, VisitorGone) or wants_data(request):
            raise
        return replace(site, error=shown_error_of(error, request))
    return replace(site, answers=answers)


def _next(asks: Generator[Any, Any, None], answer: Any) -> Any:
    """Send an answer to the generator and return its next request to a worker; None after the last."""
    try:
        return asks.send(answer)
    except StopIteration:
        return None


def make(declared: Page[Any, Any, Any], site: Site, at: Any, ask: Any) -> Coroutine[Any, Any, Any]:
    """Make the page's data: in a thread if that reads much, or if the format, CSV or Parquet, has whole lists."""

    async def here() -> Any:
        return declared.make(site, at, ask)

    is_slow = declared.is_slow or site.format in ("csv", "parquet")
    return run_in_threadpool(declared.make, site, at, ask) if is_slow else here()
