"""The pages that a worker computes, for whatever a visitor types."""

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from lexiscope.app import addresses
from lexiscope.app.routes.arguments import Hubs
from lexiscope.app.routes.dependencies import LiveOfModel, ServedIndex, SiteSettings
from lexiscope.app.routes.live_arguments import AskedPrompt, PromptQuery
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, page
from lexiscope.app.routes.unknown_arguments import check_names
from lexiscope.app.views.difference import check_can_run
from lexiscope.app.views.first_tokens import unbuilt
from lexiscope.app.views.hubs import LOOKED_AT
from lexiscope.app.views.prompt import PromptView, prompt_form, prompt_view
from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.asks import (
    PromptArguments,
    PromptAsk,
)
from lexiscope.precompute.live.wire.errors import TooLarge, VisitorGone

PROMPT_FORMATS = ("json", "csv")
PATTERNS_FORMATS = (*PROMPT_FORMATS, "md", "tex")  # of a run with that panel: its tables are read by people, too

router = APIRouter(route_class=PageRoute)


@page(router, "/{model:name}/prompt", PromptView, formats=PATTERNS_FORMATS, live=True)
async def prompt(answer: ModelPage, index: ServedIndex, live: LiveOfModel, arguments: AskedPrompt) -> Response:
    """A run of the model, read as words: computed by the worker, for any text.

    Only the panels that are named are computed: `evolution`, what the stream would predict after each step;
    `attention` of every head; `patterns` and messages of every head at one position, or with `rows=tokens` of every
    token of the text at one head; the most active `neurons`; `coverage`, the paper's R_k; `attribution`, what heads
    and neurons added to the logit of a `token`. `neuron` and `head` choose one of the layer to tell more of. `off` and
    `set` change the run; `untouched` is then the prediction without. A text that is too long for an address as it is
    goes by POST, as the field `text` of a form, and gets one with `z`."""
    model = index.manifest.model
    if index.stored.difference:
        answer.at(prompt_address(model, arguments), ())
        if answer.format != "html":
            check_can_run(index)
        return answer.show("no_run", prompt_form(index, arguments))
    answer.at(prompt_address(model, arguments), prompt_formats(answer.format, arguments))
    ask = prompt_ask(index, arguments, without_hubs=bool(answer.hubs))
    if ask is None:
        return answer.show("prompt", prompt_form(index, arguments))
    result = await live.ask(model, ask, answer.request)
    return answer.show("prompt", prompt_view(index, ask, result, answer.hidden_hubs(ask.lens)))


@router.post("/{model:name}/prompt", include_in_schema=False)
async def post_prompt(request: Request, index: ServedIndex, settings: SiteSettings, hubs: Hubs = None) -> Response:
    """Gives every text an address, and goes there."""
    arguments = await _form_arguments(request)
    address = addresses.turned(prompt_address(index.manifest.model, arguments), hubs=hubs)
    if len(address) > settings.url_limit:
        raise TooLarge(
            f"a text of {len(arguments.text)} characters: its address would have {len(address)} bytes, and up "
            f"to {settings.url_limit} are read (the setting url_limit)"
        )
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


def prompt_address(model: str, arguments: PromptArguments) -> str:
    return addresses.prompt(model, **arguments.query())


def prompt_formats(format: str, arguments: PromptArguments) -> tuple[str, ...]:
    """What the page leads to. Other panels than `patterns` have no table for people."""
    if "patterns" in arguments.panel:
        return PATTERNS_FORMATS
    if format not in ("html", *PROMPT_FORMATS):
        raise NotFound(f"a run has .{format} of its patterns only: add panel=patterns. There is .json and .csv of all")
    return PROMPT_FORMATS


def prompt_ask(index: Index, arguments: PromptArguments, *, without_hubs: bool) -> PromptAsk | None:
    """Return the ask, with what only the server knows; None while there is no text."""
    if not arguments.text:
        return None
    spare = LOOKED_AT if without_hubs and "patterns" in arguments.panel else 0
    return PromptAsk(**dict(arguments), spare=spare, unbuilt=unbuilt(index, arguments.lens))


async def _form_arguments(request: Request) -> PromptArguments:
    """A byte that is no text becomes a mark. The position is that of another text: this one is read from its end."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise VisitorGone("the visitor left before the form had arrived") from None
    fields = QueryParams(body.decode("utf-8", "replace"))
    check_names(fields.keys(), PromptQuery.model_fields)
    if not fields.get("text"):
        raise BadRequest("there is no text: send it as the field text of a form")
    length = sum(len(value) for name in ("off", "set", "neurons") for value in fields.getlist(name))
    if length > (limit := request.app.state.settings.url_limit):
        raise TooLarge(
            f"the changes to this run (off, set) and its neurons have {length} characters: up to {limit} are read"
        )
    several = {name: fields.getlist(name) for name in ("panel", "off", "set", "neurons") if name in fields}
    try:
        return PromptArguments.model_validate({**fields, **several, "position": None})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
