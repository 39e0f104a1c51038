"""A page whose work tells how far it has come: server-sent events `progress`, then `page` with its HTML, or `fault`.
Which pages do so is for live_prompt.py and readings.py; what a worker says of its work is for live/client.py."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.formats.faces import html_face, twin_addresses
from app.library.live_index import LiveIndex
from app.routes.answers import page_request
from app.routes.table import Page
from app.site import Site
from app.views.tokens import View
from app.wire import Progress
from app.workers.errors import LiveError, status_of
from precompute.errors import LexiscopeError


async def event_stream(
    site: Site,
    request: Request,
    page: Page,
    index: LiveIndex,
    arguments: Mapping[str, Any],
    run: Any,  # an async generator of Progress, and at last the answer
    view: Callable[[Any], View],
) -> Response:
    """What is wrong from the start is answered as everywhere: the first event is waited for."""

    def made(answer: Any) -> bytes:
        canonical = page.canonical(index.manifest.model, arguments)
        about = page_request(site, request, canonical, twin_addresses(canonical, page.faces), index)
        html = html_face(site, page.name, "partial", view(answer), about).decode()
        return _event("page", {"html": html, "canonical": canonical})

    first = await anext(run)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_events(first, run, made), 200, headers, "text/event-stream")


async def _events(first: Any, run: Any, made: Callable[[Any], bytes]) -> AsyncIterator[bytes]:
    async with aclosing(run):
        try:
            item = first
            while isinstance(item, Progress):
                yield _event("progress", {"stage": item.stage, "share": item.share})
                item = await anext(run)
            yield made(item)
        except LexiscopeError as error:
            status = error.status if isinstance(error, LiveError) else status_of(error)
            yield _event("fault", {"status": status, "detail": str(error)})


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
