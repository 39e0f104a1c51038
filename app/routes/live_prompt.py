"""The prompt's other two ways in: a form's POST, which gives every text an address, and the events of a run under way.
The page itself is in live_pages.py."""

from urllib.parse import parse_qsl

from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from app.routes.live_events import event_stream
from app.routes.live_pages import prompt, prompt_ask
from app.routes.table import Call
from app.site import Site
from app.views.prompt import PromptView, prompt_view
from app.wire import PromptAnswer
from app.workers.errors import TooLarge, VisitorGone
from precompute.errors import BadRequest

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

        def view(answer: PromptAnswer) -> PromptView:
            return prompt_view(index, ask, arguments["panel"], answer)

        return await event_stream(site, request, prompt, index, arguments, site.live.stream(model, ask), view)

    return router


async def _form(request: Request) -> bytes:
    """As a query; blank fields are as if they were not there, and a byte that is no text becomes a mark."""
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > LONGEST_FORM:
                raise TooLarge(f"a form of more than {LONGEST_FORM} bytes: a text may have as many at most")
    except ClientDisconnect:
        raise VisitorGone("the visitor left before the form had arrived") from None
    said = parse_qsl(body.decode("utf-8", "replace"))
    if not any(name == "text" for name, _ in said):
        raise BadRequest("there is no text: send it as the field text of a form")
    return body
