"""The arguments of live pages: what visitors type, brought into one form, so that one view has one address.
An argument that is a tuple may be repeated, as forms do, or hold several values between commas."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

from fastapi import Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from app.addresses import CONVENTION, HEAD_LAYERS, SEED_KIND
from app.packed_text import unpack
from app.routes.arguments import empty_is
from app.views.lengths import HEAD_TOKENS, LIKELY_TOKENS, SEED_RESULTS
from app.views.typed_parameters import (
    parse_layers,
    parse_neurons,
    parse_off,
    parse_set,
    write_layers,
    write_neurons,
    write_off,
    write_set,
)
from app.views.typed_words import (
    parse_against,
    parse_groups,
    parse_pairs,
    parse_terms,
    parse_token,
    write_against,
    write_groups,
    write_pairs,
    write_terms,
    write_token,
)
from precompute.errors import BadRequest
from precompute.live.wire.prompt import Intervention, Panel
from precompute.shape import SIDES

PANELS: tuple[Panel, ...] = get_args(Panel)
MAX_NUMBER = 10**6  # of positions, layers, neurons, heads: far above what any model has


def _split(values: tuple[str, ...]) -> list[str]:
    return [part.strip() for part in ",".join(values).split(",") if part.strip()]


def _rewrite(rewrite: Callable[[str], str]) -> AfterValidator:
    """Rewrites several values together, as one text."""
    return AfterValidator(lambda values: tuple(_split((rewrite(",".join(values)),))))


def _kinds(values: tuple[str, ...]) -> tuple[str, ...]:
    named = set(_split(values))
    if unknown := named - SIDES.keys():
        raise BadRequest(f"kind = {sorted(unknown)[0][:100]!r}: there are {', '.join(SIDES)}; several with commas")
    return tuple(kind for kind in SIDES if kind in named) or (SEED_KIND,)


def _panels(values: tuple[str, ...]) -> tuple[str, ...]:
    named = set(_split(values))
    if unknown := named - set(PANELS):
        raise BadRequest(f"panel = {sorted(unknown)[0][:100]!r}: there are {', '.join(PANELS)}; several with commas")
    return tuple(panel for panel in PANELS if panel in named) or PANELS[:1]


def _zero_or_one(value: str | int) -> str | int:
    if str(value) not in ("0", "1"):
        raise BadRequest(f"heads = {str(value)[:100]!r}: write 1 for all heads, or 0 for none")
    return value


def _plain_lines(text: str) -> str:
    """Forms send both characters at the end of a line. An address can hold no NUL."""
    if "\0" in text:
        raise BadRequest("the text holds a NUL character: leave it out")
    return text.replace("\r\n", "\n")


def _unpackable(packed: str | None) -> str | None:
    if packed:
        unpack(packed)
    return packed


SeedWords = Annotated[
    str,
    Query(
        description='Words such as `horse,dog,lion`; weighted `king - man + woman`, `2*dog`; `"New York"`',
        examples=["horse,dog,lion", "king - man + woman"],
    ),
    AfterValidator(lambda text: write_terms(parse_terms(text))),
]
SeedKinds = Annotated[
    tuple[str, ...],
    Query(
        description=f"Kinds of vectors to rank: {', '.join(SIDES)}; several, or with commas", examples=[["ff_value"]]
    ),
    AfterValidator(_kinds),
]
Results = Annotated[int, Query(ge=1, le=1000, description="How many vectors"), empty_is(SEED_RESULTS)]
WithHeads = Annotated[
    int,
    Query(ge=0, le=1, description="1: also what every head would do with the average"),
    BeforeValidator(_zero_or_one),
    empty_is(0),
]
HeadWords = Annotated[
    str,
    Query(
        description='Words such as `couch,dog`; `horse+lion`, the mean of both; `"New York"`; `#3290`, a token by id',
        examples=["couch,dog,run,happy", "horse+lion"],
    ),
    AfterValidator(lambda text: write_groups(parse_groups(text))),
]
HeadLayers = Annotated[
    str,
    Query(description="Layers whose heads the words go through: `0-3`, `0,2,5` or `all`", examples=["0-3"]),
    AfterValidator(lambda text: write_layers(parse_layers(text))),
    empty_is(HEAD_LAYERS),
]
OneHead = Annotated[
    int | None, Query(ge=0, le=MAX_NUMBER, description="Only this head of each layer; all of them"), empty_is(None)
]
ListEnd = Annotated[
    Literal["top", "bottom"],
    Query(description="`top`: the largest scores, `bottom`: the most negative ones"),
    empty_is("top"),
]
HeadTokens = Annotated[int, Query(ge=1, le=50, description="Tokens of each list"), empty_is(HEAD_TOKENS)]
SentenceText = Annotated[
    str,
    Query(description="A sentence: what states of the first model become in the second", examples=["The capital of"]),
    AfterValidator(_plain_lines),
]
SentenceLayer = Annotated[
    int | None,
    Query(ge=0, le=MAX_NUMBER, description="Of the first model: the states after it; the last"),
    empty_is(None),
]
RelationPairs = Annotated[
    tuple[str, ...],
    Query(
        description="Pairs of words such as `France>Paris,Italy>Rome`: what is read, and what should be written",
        examples=[["France>Paris", "Italy>Rome"]],
    ),
    _rewrite(lambda text: write_pairs(parse_pairs(text))),
]


def _number(description: str) -> Any:
    return Field(ge=0, le=MAX_NUMBER, description=description)


class PromptArguments(BaseModel):
    """A text, and what to tell of its run."""

    model_config = ConfigDict(frozen=True)

    text: Annotated[
        str,
        Field(description="The prompt, as it is", examples=["The capital of France is"]),
        AfterValidator(_plain_lines),
    ] = ""
    z: Annotated[
        str | None,
        Field(description="Instead of `text`, a long one: UTF-8, raw deflate, base64 for addresses. POST makes it"),
        AfterValidator(_unpackable),
        empty_is(None),
    ] = None
    position: Annotated[
        int | None, _number("Which token to look at, from 0; the last, or an encoder's mask"), empty_is(None)
    ] = None
    layer: Annotated[
        int | None,
        _number("Which layer to look at in `attention` (a long text has no other) and `patterns`; the last"),
        empty_is(None),
    ] = None
    neuron: Annotated[
        int | None, _number("A neuron of that layer to tell of in `neurons`, however weak it is"), empty_is(None)
    ] = None
    head: Annotated[
        int | None, _number("A head of that layer to tell more of in `attention` and `patterns`"), empty_is(None)
    ] = None
    panel: Annotated[
        tuple[str, ...],
        Field(description=f"What to compute: {', '.join(PANELS)}; several, or with commas", examples=[["evolution"]]),
        AfterValidator(_panels),
    ] = PANELS[:1]
    off: Annotated[
        tuple[str, ...],
        Field(
            description="Neurons and heads to switch off in this run, at all positions or at one (`8.h11@3`)",
            examples=[["10.2361", "8.h11"]],
        ),
        _rewrite(lambda text: write_off(parse_off(text))),
    ] = ()
    set: Annotated[
        tuple[str, ...],
        Field(
            description="Neurons whose coefficient is set in this run, at all positions or at one (`10.5:2.5@3`)",
            examples=[["10.5:2.5"]],
        ),
        _rewrite(lambda text: write_set(parse_set(text))),
    ] = ()
    convention: Annotated[
        Literal["final", "vocabulary", "exact"],
        Field(
            description="How `patterns` are compared with tokens: final norm, the layer's norm on tokens, or exactly"
        ),
        empty_is(CONVENTION),
    ] = CONVENTION
    lens: Annotated[
        Literal["dot", "cosine"],
        Field(description="Of `patterns`, and of the stored lists of `neurons`: `dot` or `cosine`"),
        empty_is("dot"),
    ] = "dot"
    rows: Annotated[
        Literal["heads", "tokens"],
        Field(description="Of `patterns`: all `heads` at the position, or all `tokens` at the head (or head 0)"),
        empty_is("heads"),
    ] = "heads"
    k: Annotated[int, Field(ge=1, le=50, description="Tokens of each cell and prediction"), empty_is(LIKELY_TOKENS)] = (
        LIKELY_TOKENS
    )

    neurons: Annotated[
        tuple[str, ...],
        Field(description="Neurons whose coefficients at all tokens the panel `neurons` tells", examples=[["29.1240"]]),
        _rewrite(lambda text: write_neurons(parse_neurons(text))),
    ] = ()
    token: Annotated[
        str | None,
        Field(
            description="Whose logit `attribution` explains: a token's id, or a word; the predicted", examples=["run"]
        ),
        AfterValidator(lambda text: write_token(parse_token(text or ""))),
        empty_is(None),
    ] = None
    against: Annotated[
        str,
        Field(
            description="What that logit is compared with: the `mean` of all tokens, `none`, or a token's id or a word"
        ),
        AfterValidator(lambda text: write_against(parse_against(text))),
        empty_is("mean"),
    ] = "mean"

    @property
    def whole_text(self) -> str:
        return unpack(self.z) if self.z else self.text

    @property
    def changes(self) -> tuple[Intervention, ...]:
        return (*parse_off(",".join(self.off)), *parse_set(",".join(self.set)))
