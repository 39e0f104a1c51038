"""Pages whose work tells how far it has come, as server-sent events: `progress` any number of times, then `page` with
its HTML, or `fault`."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent

from lexiscope.app.asgi.disconnect import cancel_on_disconnect
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.routes.dependencies import LiveOfModel, ServedIndex, stream_slot
from lexiscope.app.routes.live_arguments import AskedPrompt
from lexiscope.app.routes.live_pages import prompt_address, prompt_ask, prompt_formats
from lexiscope.app.routes.page_answer import ModelPage, PageAnswer
from lexiscope.app.views.difference import check_can_run
from lexiscope.app.views.prompt import prompt_view
from lexiscope.app.views.tokens import View
from lexiscope.precompute.errors import BadRequest, LexiscopeError
from lexiscope.precompute.live.wire.errors import status_of
from lexiscope.precompute.live.wire.protocol import Progress

router = APIRouter(include_in_schema=False, dependencies=[Depends(stream_slot)])


@dataclass(frozen=True)
class Run:
    """Work under way in the worker. Its first report has arrived: what is wrong from the start is a plain error."""

    first: Any  # Progress, or already the worker's answer
    reports: AsyncIterator[Any]  # more of them, the answer last
    template: str
    view: Callable[[Any], View]  # of the worker's answer


async def prompt_run(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, arguments: AskedPrompt
) -> AsyncIterator[Run]:
    check_can_run(index)
    model, ask = index.manifest.model, prompt_ask(index, arguments, without_hubs=bool(answer.hubs))
    if ask is None:
        raise BadRequest("there is no text: give it as text=")
    answer.at(prompt_address(model, arguments), prompt_formats(answer.format, arguments))
    async with aclosing(live.stream(model, ask, answer.request)) as reports:
        yield Run(
            await cancel_on_disconnect(answer.request, _first_report(reports)),
            reports,
            "prompt",
            lambda result: prompt_view(index, ask, result, answer.hidden_hubs(ask.lens)),
        )


async def _first_report(reports: AsyncIterator[Any]) -> Any:
    return await anext(reports)


@router.get("/{model:name}/prompt.events", response_class=EventSourceResponse)
async def prompt_events(answer: ModelPage, run: Annotated[Run, Depends(prompt_run)]) -> AsyncIterator[ServerSentEvent]:
    async for event in _events(answer, run):
        yield event


async def _events(answer: PageAnswer, run: Run) -> AsyncIterator[ServerSentEvent]:
    data = answer.request.app.state.settings.data
    try:
        report = run.first
        while isinstance(report, Progress):
            yield ServerSentEvent(event="progress", data={"stage": report.stage, "share": report.share})
            report = await anext(run.reports)
        html = answer.html(run.template, run.view(report), partial=True)
        yield ServerSentEvent(event="page", data={"html": html, "canonical": answer.address})
    except LexiscopeError as error:
        yield ServerSentEvent(event="fault", data={"status": status_of(error), "detail": for_visitors(error, data)})
