"""Declare the entries that every list consists of, and the fields that the data of every page has.

JSON has these fields, except those marked PAGE_ONLY, and those marked OMIT_NONE if they are None.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.difference import Minus, minus_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.live.wire.answers import ScoredToken as ScoredToken
from lexiscope.precompute.live.wire.answers import Token as Token
from lexiscope.precompute.live.wire.answers import TokenPair as TokenPair
from lexiscope.precompute.plain_text import escaped
from lexiscope.precompute.shape import DIRECTION_KINDS, Shape

if TYPE_CHECKING:
    from lexiscope.app.formats.png import Picture
    from lexiscope.app.formats.table import Table


PAGE_ONLY: Any = Field(exclude=True)  # only the HTML shows it; programs get it in another way, or do not need it
OMIT_NONE: Any = Field(exclude_if=lambda value: value is None)
OF_DIFFERENCE: Any = Field(exclude_if=lambda value: value is None, description="Only of a difference of two models")
HUBS: Any = Field(
    exclude_if=lambda value: value is None, description="Only if hubs are left out of the lists (`hubs=hide`)"
)
HUBS_HIDDEN: Any = Field(exclude_if=lambda value: value is None, description="How many entries of lists are left out")
ONLY: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only if lists are kept to some tokens: to whole `words` (`preset=words`), or to a `vocabulary`",
)
ONLY_HIDDEN: Any = Field(
    exclude_if=lambda value: value is None,
    description="How many entries were left out for that; those of vectors and pairs are filled up and not counted",
)
NOTE: Any = Field(description="What must be said beside these lists, such as what they leave out; may be empty")


class Only(TypedDict):
    words: bool
    vocabulary: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The data that a page shows; the base class of all such data."""

    hubs: Annotated[Literal["hide"] | None, HUBS] = None
    hubs_hidden: Annotated[int | None, HUBS_HIDDEN] = None
    only: Annotated[Only | None, ONLY] = None
    only_hidden: Annotated[int | None, ONLY_HIDDEN] = None

    def tables(self) -> "list[Table]":
        """Return the lists of the page as tables, from which CSV, Markdown, LaTeX and the terminal are made."""
        raise NotImplementedError

    def picture(self) -> "Picture":
        """Return what a picture of the page shows, if the page has the format `png`."""
        raise NotImplementedError

    @property
    def chosen_model(self) -> str | None:
        """Return the model that the page is mostly about, if its address does not name one."""
        return None

    def sources(self) -> str:
        """Return which weights and which build the page's data comes from, if that is not the index of its model."""
        return ""

    def about(self) -> dict[str, Any]:
        """Return the columns that CSV has at the end of every row, because a file may lose its name or be joined with
        others."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOfModel(View):
    model: str
    build: Annotated[str, Field(description="Of the index: as long as it is the same, so are the lists")]
    minus: Annotated[Minus | None, OF_DIFFERENCE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownError:
    """What a visitor reads of an error: on a page by itself, or in place of a part that cannot be shown."""

    status: int  # HTTP status of the answer
    title: str
    detail: str
    retry_after: int | None  # seconds after which the visitor may ask again; None if that would not help

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


def of_index(index: Index) -> dict[str, Any]:
    """Return the fields that the data of every page about a model has."""
    return {"model": index.manifest.model, "build": index.manifest.build, "minus": minus_of(index)}


def token_of(tokens: TokenTable, token: int) -> Token:
    return {"id": token, "token": tokens.texts[token]}


def tokens_of(tokens: TokenTable, ids: Iterable[int]) -> list[Token]:
    texts = tokens.texts
    return [{"id": token, "token": texts[token]} for token in ids]


def scored_tokens(
    tokens: TokenTable, ids: Iterable[int], scores: Iterable[float], cosines: Sequence[float] = ()
) -> list[ScoredToken]:
    """Return the entries of a list by score, with their cosines if these are given."""
    texts = tokens.texts
    if cosines:
        return [
            {"id": token, "token": texts[token], "score": score, "cosine": cosine}
            for token, score, cosine in zip(ids, scores, cosines, strict=True)
        ]
    return [{"id": token, "token": texts[token], "score": score} for token, score in zip(ids, scores, strict=True)]


def token_pairs(tokens: TokenTable, pairs: Iterable[tuple[int, int]], scores: Iterable[float]) -> list[TokenPair]:
    texts = tokens.texts
    return [
        {"from": {"id": a, "token": texts[a]}, "to": {"id": b, "token": texts[b]}, "score": score}
        for (a, b), score in zip(pairs, scores, strict=True)
    ]


_NAMED = {" ": "␣", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""Write a token with visible spaces and control characters. The no-break space, U+00A0, becomes \u00a0, because
    \xa0 stands for a byte that is no text by itself."""
    shown = "".join([_NAMED.get(character) or _visible(character) for character in text])
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = "\N{DOTTED CIRCLE}" + shown  # a combining mark would be drawn over the character before the token
    return shown or "(no text)"  # some rows of the embedding have no token


def _visible(character: str) -> str:
    return escaped(character) if unicodedata.category(character)[0] in "CZ" else character


class InHead(TypedDict):
    """The place of a vector in its head; all fields are null for a vector of a neuron."""

    head: Annotated[int | None, Field(description="Of kinds that heads share, the first head that has it")]
    subhead: int | None
    direction: Annotated[
        int | None, Field(description="Of `vo_in`, `vo_out`, `qk_query` and `qk_key`: which singular direction, from 0")
    ]


IN_NO_HEAD: InHead = {"head": None, "subhead": None, "direction": None}


def in_head(shape: Shape, kind: str, row: int) -> InHead:
    if kind.startswith("ff_"):
        return IN_NO_HEAD
    head, number = shape.head_and_subhead(kind, row)
    if kind in DIRECTION_KINDS:
        return {"head": head, "subhead": None, "direction": number}
    return {"head": head, "subhead": number, "direction": None}
