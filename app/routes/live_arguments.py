"""The arguments of live pages: what visitors type, each brought into its one form, so that one view has one address.
How it is read is for terms.py; arguments of stored pages are in arguments.py."""

from typing import Annotated, Literal, get_args

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator

from app.packed_text import unpack
from app.views.terms import (
    parse_off,
    parse_pairs,
    parse_set,
    parse_terms,
    write_off,
    write_pairs,
    write_set,
    write_terms,
)
from app.wire import Panel
from precompute.errors import BadRequest
from precompute.shape import SIDES

SEED_RESULTS = 50
LIKELY = 5  # tokens of a cell
PANELS: tuple[Panel, ...] = get_args(Panel)


def _kinds(text: str) -> str:
    named = {part.strip() for part in text.split(",") if part.strip()}
    if unknown := named - SIDES.keys():
        raise BadRequest(f"kind = {sorted(unknown)[0][:100]!r}: there are {', '.join(SIDES)}; several with commas")
    return ",".join(kind for kind in SIDES if kind in named) or "ff_value"


def _words(text: str) -> str:
    return write_terms(parse_terms(text))


def _with_heads(said: str | int) -> str | int:
    if str(said) not in ("0", "1"):
        raise BadRequest(f"heads = {str(said)[:100]!r}: write 1 for all heads, or 0 for none")
    return said


def _pairs(text: str) -> str:
    return write_pairs(parse_pairs(text))


def _panels(text: str) -> str:
    named = {part.strip() for part in text.split(",") if part.strip()}
    if unknown := named - set(PANELS):
        raise BadRequest(f"panel = {sorted(unknown)[0][:100]!r}: there are {', '.join(PANELS)}; several with commas")
    return ",".join(panel for panel in PANELS if panel in named) or PANELS[0]


def _lines(text: str) -> str:
    """Forms send both characters at the end of a line. An address can hold no NUL."""
    if "\0" in text:
        raise BadRequest("the text holds a NUL character: leave it out")
    return text.replace("\r\n", "\n")


def _packed(packed: str) -> str:
    unpack(packed)
    return packed


SeedWords = Annotated[
    str,
    Query(
        description='Words such as `horse,dog,lion`; weighted `king - man + woman`, `2*dog`; `"New York"`',
        examples=["horse,dog,lion", "king - man + woman"],
    ),
    AfterValidator(_words),
]
SeedKinds = Annotated[
    str,
    Query(description=f"Kinds of vectors to rank, with commas between: {', '.join(SIDES)}", examples=["ff_value"]),
    AfterValidator(_kinds),
]
Results = Annotated[int, Query(ge=1, le=1000, description="How many vectors")]
WithHeads = Annotated[
    int,
    Query(ge=0, le=1, description="1: also what every head would do with the average"),
    BeforeValidator(_with_heads),
]
RelationPairs = Annotated[
    str,
    Query(
        description="Pairs of words such as `France>Paris,Italy>Rome`: what is read, and what should be written",
        examples=["France>Paris,Italy>Rome"],
    ),
    AfterValidator(_pairs),
]

Text = Annotated[
    str,
    Query(description="The prompt, as it is", examples=["The capital of France is"]),
    AfterValidator(_lines),
]
Packed = Annotated[
    str | None,
    Query(description="Instead of `text`, a long one: UTF-8, raw deflate, base64 for addresses. POST makes it"),
    AfterValidator(lambda packed: packed and _packed(packed)),
]
Position = Annotated[int | None, Query(ge=0, le=10**6, description="Which token to look at, from 0; the last")]
ChosenLayer = Annotated[
    int | None,
    Query(
        ge=0,
        le=10**6,
        description="Which layer to look at in `attention` (a long text has no other) and `patterns`; the last",
    ),
]
ChosenNeuron = Annotated[
    int | None, Query(ge=0, le=10**6, description="A neuron of that layer to tell of in `neurons`, however weak it is")
]
ChosenHead = Annotated[
    int | None, Query(ge=0, le=10**6, description="A head of that layer to tell more of in `attention` and `patterns`")
]
Panels = Annotated[
    str,
    Query(description=f"What to compute, with commas between: {', '.join(PANELS)}", examples=["evolution,neurons"]),
    AfterValidator(_panels),
]
Off = Annotated[
    str,
    Query(description="Neurons and heads to switch off in this run", examples=["10.2361,8.h11"]),
    AfterValidator(lambda text: write_off(parse_off(text))),
]
Set = Annotated[
    str,
    Query(description="Neurons whose coefficient is set in this run, at all positions", examples=["10.5:2.5"]),
    AfterValidator(lambda text: write_set(parse_set(text))),
]
HowCompared = Annotated[
    Literal["final", "vocabulary", "exact"],
    Query(description="How `patterns` are compared with tokens: final norm, the layer's norm on tokens, or exactly"),
]
Likeliest = Annotated[int, Query(ge=1, le=50, description="Tokens of each cell and prediction")]
