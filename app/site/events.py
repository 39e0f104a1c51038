"""Send the progress of a page's work as server-sent events: `progress` any number of times, then `page` with its HTML,
or `fault`."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from lexiscope.app.asgi.disconnect import cancel_on_disconnect
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.lists.view import View
from lexiscope.app.pages.page import Page, find_pages
from lexiscope.app.site.answer import PageAnswer
from lexiscope.app.site.dependencies import stream_slot
from lexiscope.app.site.routes import begin, parameters
from lexiscope.precompute.errors import BadRequest, LexiscopeError
from lexiscope.precompute.live.wire.errors import status_of
from lexiscope.precompute.live.wire.protocol import Progress


@dataclass(frozen=True)
class Run:
    """A worker's job that is under way. Its first report has arrived; errors before that report are answered as plain
    errors, not as events."""

    first: Any  # Progress, or the worker's answer if it came at once
    reports: AsyncIterator[Any]  # the further reports; the last one is the answer
    page: Page[Any, Any, Any]
    view: Callable[[Any], View]  # a function that makes the page's data from the worker's answer


def events_router() -> APIRouter:
    """Make the routes `path.events` of those pages that have them."""
    router = APIRouter(include_in_schema=False, dependencies=[Depends(stream_slot)])
    for declared in find_pages().values():
        if declared.has_events:
            path = f"/{{model:name}}/{declared.at.pattern}.events"
            router.add_api_route(path, _events_of(declared), response_class=EventSourceResponse)
    return router


def _events_of(declared: Page[Any, Any, Any]) -> Any:
    async def start(answer: PageAnswer, at: Any, ask: Any) -> AsyncIterator[Run]:
        site, ask = begin(declared, answer, at, ask, "events")
        asks = list(declared.asks(site, at, ask))
        if not asks:
            raise BadRequest("there is nothing to wait for: this page asks nothing of a worker as it is")
        (asked,) = asks
        async with aclosing(answer.live.stream(answer.model, asked, answer.request)) as reports:
            yield Run(
                await cancel_on_disconnect(answer.request, _first_report(reports)),
                reports,
                declared,
                lambda result: declared.make(replace(site, answers=[result]), at, ask),
            )

    start.__annotations__ |= parameters(declared)

    async def events(answer: PageAnswer, run: Run) -> AsyncIterator[ServerSentEvent]:
        async for event in _events(answer, run):
            yield event

    events.__annotations__ |= {"answer": parameters(declared)["answer"], "run": Annotated[Run, Depends(start)]}
    return events


async def _first_report(reports: AsyncIterator[Any]) -> Any:
    return await anext(reports)


async def _events(answer: PageAnswer, run: Run) -> AsyncIterator[ServerSentEvent]:
    data = answer.request.app.state.settings.data
    stages = {"waiting": "waiting for the worker", **run.page.stages}
    try:
        report = run.first
        while isinstance(report, Progress):
            text = stages.get(report.stage, report.stage)
            progress = {"stage": report.stage, "text": text, "share": report.share}
            yield ServerSentEvent(event="progress", data=progress)
            report = await anext(run.reports)
        view = await run_in_threadpool(run.view, report)
        html = answer.html(run.page.template or run.page.name, view, partial=True)
        yield ServerSentEvent(event="page", data={"html": html, "canonical": answer.address})
    except LexiscopeError as error:
        yield ServerSentEvent(event="fault", data={"status": status_of(error), "detail": for_visitors(error, data)})
