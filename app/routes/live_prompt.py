"""The prompt's other two ways in: a form's POST, which gives every text an address, and the events of a run under way.
The page itself is in live_pages.py."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from app.faces import html_face, twin_addresses
from app.live.errors import LiveError, TooLarge, status_of
from app.routes.answers import page_request
from app.routes.live_pages import prompt, prompt_ask
from app.routes.table import Call
from app.site import Site
from app.views.prompt import prompt_page
from app.wire import Progress, PromptAnswer
from precompute.errors import BadRequest, LexiscopeError

LONGEST_FORM = 1 << 20  # bytes


def prompt_router(site: Site) -> APIRouter:
    router = APIRouter()

    @router.post("/{model:name}/prompt", include_in_schema=False)
    async def post(model: str, request: Request) -> Response:
        index = site.library.index(model)
        arguments = {**prompt.parse(await _form(request)), "position": None}
        address = prompt.canonical(index.manifest.model, arguments)
        if len(address) > site.settings.url_limit:
            raise TooLarge(
                f"a text of {len(arguments['text'])} characters: its address would have {len(address)} bytes, and up "
                f"to {site.settings.url_limit} are read (the setting url_limit)"
            )
        return RedirectResponse(address, 303, {"cache-control": "no-store"})

    @router.get("/{model:name}/prompt.events", include_in_schema=False)
    async def events(model: str, request: Request) -> Response:
        index = site.library.index(model)
        arguments = prompt.parse(request.scope["query_string"])
        ask = prompt_ask(Call(site, index), **arguments)
        if ask is None:
            raise BadRequest("there is no text: give it as text=")

        def page(answer: PromptAnswer) -> bytes:
            canonical = prompt.canonical(model, arguments)
            twins = twin_addresses(canonical, prompt.faces)
            about = page_request(site, request, canonical, twins, arguments, index)
            view = prompt_page(index, ask, arguments["panel"], answer)
            html = html_face(site, prompt.name, "partial", view, about).decode()
            return _event("page", {"html": html, "canonical": canonical})

        run = site.live.stream(model, ask)
        first = await anext(run)  # what is wrong from the start is answered as everywhere
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_events(first, run, page), 200, headers, "text/event-stream")

    return router


async def _events(first: Progress | PromptAnswer, run: Any, page: Any) -> AsyncIterator[bytes]:
    async with aclosing(run):
        try:
            item = first
            while isinstance(item, Progress):
                yield _event("progress", {"stage": item.stage, "share": item.share})
                item = await anext(run)
            yield page(item)
        except LexiscopeError as error:
            status = error.status if isinstance(error, LiveError) else status_of(error)
            yield _event("fault", {"status": status, "detail": str(error)})


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))


async def _form(request: Request) -> bytes:
    """As a query; blank fields are as if they were not there, and a byte that is no text becomes a mark."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_FORM:
            raise TooLarge(f"a form of more than {LONGEST_FORM} bytes: a text may have as many at most")
    said = parse_qsl(body.decode("utf-8", "replace"))
    if not any(name == "text" for name, _ in said):
        raise BadRequest("there is no text: send it as the field text of a form")
    return body
