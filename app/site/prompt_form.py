"""Handle the form of a prompt: a text that is too long for an address is sent by POST, and then gets an address with
the compressed text."""

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from lexiscope.app import urls
from lexiscope.app.pages.prompt.page import PROMPT, PromptAt, PromptQuery
from lexiscope.app.pages.prompt.prediction import CHANGES
from lexiscope.app.site.dependencies import AskedPin, AskedTokens, Hubs, ServedIndex, SiteSettings, read_pins
from lexiscope.app.site.errors import check_names
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.errors import TooLarge, VisitorGone

LISTS = (*CHANGES, "neurons")  # fields with several neurons and heads

router = APIRouter()


@router.post("/{model:name}/prompt", include_in_schema=False)
async def post_prompt(
    request: Request,
    index: ServedIndex,
    settings: SiteSettings,
    kept: AskedTokens,
    hubs: Hubs = None,
    pin: AskedPin = "",
) -> Response:
    """Turns the text into an address, and redirects there."""
    arguments = await _form_arguments(request)
    plain = PROMPT.address(index.manifest.model, PromptAt(), arguments)
    address = urls.turned(plain, hubs=hubs, **kept.query(), pin=read_pins(index, pin))
    if len(address) > settings.url_limit:
        raise TooLarge(
            f"a text of {len(arguments.text)} characters: its address would have {len(address)} bytes, and up "
            f"to {settings.url_limit} are read (the setting url_limit)"
        )
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


async def _form_arguments(request: Request) -> PromptQuery:
    """Read the form. Bytes that are not UTF-8 become replacement characters. The chosen position is left out, because
    it belongs to the text before: the new text is read from its end."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise VisitorGone("the visitor left before the form had arrived") from None
    fields = QueryParams(body.decode("utf-8", "replace"))
    check_names(fields.keys(), PromptQuery.left_out())
    if not fields.get("text"):
        raise BadRequest("there is no text: send it as the field text of a form")
    length = sum(len(value) for name in LISTS for value in fields.getlist(name))
    if length > (limit := request.app.state.settings.url_limit):
        raise TooLarge(
            f"the changes to this run ({', '.join(CHANGES)}) and its neurons have {length} characters: up to {limit} "
            "are read"
        )
    several = {name: fields.getlist(name) for name in ("panel", *LISTS) if name in fields}
    try:
        return PromptQuery.model_validate({**fields, **several, "position": None, "z": None, "z_from": None})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
