"""Pages whose work tells how far it has come, as server-sent events: `progress` any number of times, then `page` with
its HTML, or `fault`."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from app import addresses
from app.library.fault_text import for_visitors
from app.routes import arguments as arg
from app.routes.dependencies import AnyLive, LiveOfModel, ServedIndex, StoredLens, stream_slot
from app.routes.live_arguments import PromptArguments
from app.routes.live_pages import prompt_address, prompt_ask, prompt_formats
from app.routes.page_answer import ModelPage, PageAnswer
from app.routes.readings import pairs_ask
from app.views.checks import list_length
from app.views.difference import check_can_run
from app.views.lengths import PAIR_ENTRIES
from app.views.pairs import pairs_view, with_pairs_reading
from app.views.prompt import prompt_view
from app.views.tokens import View
from app.workers.disconnect import cancel_on_disconnect
from app.workers.errors import status_of
from app.workers.protocol import Progress
from precompute.errors import BadRequest, LexiscopeError

router = APIRouter(include_in_schema=False, dependencies=[Depends(stream_slot)])


@dataclass(frozen=True)
class Run:
    """Work under way in the worker. Its first report has arrived: what is wrong from the start is a plain error."""

    first: Any  # Progress, or already the worker's answer
    reports: AsyncIterator[Any]  # more of them, the answer last
    template: str
    view: Callable[[Any], View]  # of the worker's answer


async def prompt_run(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, arguments: Annotated[PromptArguments, Query()]
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
            lambda result: prompt_view(index, ask, ",".join(arguments.panel), result, answer.hidden_hubs(ask.lens)),
        )


async def pairs_run(
    answer: ModelPage, index: ServedIndex, live: AnyLive, layer: arg.Layer, head: arg.Head, matrix: arg.Matrix,
    lens: StoredLens, preset: arg.Preset = "all", k: arg.Entries = None, group: arg.Group = None,
    reading: arg.Reading = None,
) -> AsyncIterator[Run]:  # fmt: skip
    if reading is None:
        raise BadRequest("there is nothing to wait for: give a reading, such as reading=norm")
    check_can_run(index)
    model = index.manifest.model
    answer.at(addresses.pairs(model, layer, head, matrix, lens=lens, preset=preset, k=k, group=group, reading=reading))
    k = list_length(index, k, PAIR_ENTRIES, index.manifest.pairs)
    stored = pairs_view(index, matrix, layer, head, lens, preset, k)
    async with aclosing(live.stream(model, pairs_ask(stored, reading, k), answer.request)) as reports:
        yield Run(
            await cancel_on_disconnect(answer.request, _first_report(reports)),
            reports,
            "pairs",
            lambda result: with_pairs_reading(index, stored, reading, result),
        )


async def _first_report(reports: AsyncIterator[Any]) -> Any:
    return await anext(reports)


@router.get("/{model:name}/prompt.events", response_class=EventSourceResponse)
async def prompt_events(answer: ModelPage, run: Annotated[Run, Depends(prompt_run)]) -> AsyncIterator[ServerSentEvent]:
    async for event in _events(answer, run):
        yield event


@router.get(
    "/{model:name}/head/{layer:number}/{head:number}/{matrix:matrix}.events", response_class=EventSourceResponse
)
async def pairs_events(answer: ModelPage, run: Annotated[Run, Depends(pairs_run)]) -> AsyncIterator[ServerSentEvent]:
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
