"""Give a page of an error the form that was sent, with what was typed, and say which of its fields is wrong."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.datastructures import QueryParams
from starlette.requests import Request

from lexiscope.app.lists.kept_tokens import ARGUMENTS
from lexiscope.app.pages.prompt.page import PACKED
from lexiscope.app.urls import turned, unpack
from lexiscope.precompute.errors import BadRequest

# The fields of the forms that people type into, with their labels, by the name of the page; the first is what it asks.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "search": {"q": "Search"},
    "seeds": {"words": "Words"},
    "relation": {"pairs": "Pairs"},
    "transition": {"pairs": "Pairs"},
    "heads": {"words": "Words", "layers": "Layers"},
    "prompt": {"text": "Text", "off": "Off", "set": "Set", "mean": "Mean", "from": "Second text", "patch": "Patch"},
}
NUMBERED = {
    "heads": ("layers",),
    "prompt": ("off", "set", "mean", "patch"),
}  # fields with numbers of layers, neurons and heads
NUMBERS = ("layer", "neuron", "head", "position")
MOST_HIDDEN = 50  # arguments that go along; a form of 1 MB could name a quarter of a million


@dataclass(frozen=True)
class FormAgain:
    page: str
    action: str
    fields: list[tuple[str, str, str]]  # the name, the label and what was typed
    wrong: str | None  # the name of the field that is wrong; None if it is something else of the address
    hidden: list[tuple[str, str]] = field(default_factory=list)  # the other arguments, without a wrong one


async def form_again(request: Request, detail: str) -> FormAgain | None:
    """Return the form that a request came from, given the text of its error; None if the page has no form, or nothing
    was typed into it."""
    page = getattr(request.scope.get("route"), "name", "").removesuffix("_data")
    page = "prompt" if page == "post_prompt" else page
    if (labels := FIELDS.get(page)) is None:
        return None
    typed = request.query_params
    if request.method == "POST":  # the body was read already
        typed = QueryParams((await request.body()).decode("utf-8", "replace"))
    texts = {name: typed.get(name, "") for name in labels}
    with suppress(BadRequest):
        texts |= {name: unpack(typed[packed]) for packed, name in PACKED.items() if name in labels and packed in typed}
    if not any(texts.values()):
        return None
    named = (re.match(r"\w*", detail) or [""])[0]
    wrong: str | None = next(iter(labels))
    if named in labels:
        wrong = named
    elif named in typed:
        wrong = None
    elif named in NUMBERS:
        wrong = next((name for name in NUMBERED.get(page, ()) if texts[name]), wrong)
    # Without a text, other pages take their own layers; a prompt may get changes now.
    shown = [name for name in labels if texts[name] or name == wrong or page == "prompt"]
    fields = [(name, labels[name], texts[name]) for name in shown]
    in_action: dict[str, str] = {}
    if page == "prompt":  # a form that is posted takes these in its address alone
        in_action = {name: text for name, text in request.query_params.items() if name in (*ARGUMENTS, "pin")}
    left_out = {*labels, *PACKED, named, *in_action}
    hidden = [(name, text) for name, text in dict.fromkeys(typed.multi_items()) if name not in left_out][:MOST_HIDDEN]
    action = turned(request.url.path, **{name: text for name, text in in_action.items() if name != named})
    return FormAgain(page, action, fields, wrong, hidden)
