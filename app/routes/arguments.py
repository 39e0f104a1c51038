"""The arguments in addresses of stored pages, each with its meaning, for FastAPI to check and to document; and the
convertors that paths are made of."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Path, Query
from pydantic import BeforeValidator
from starlette.convertors import Convertor, register_url_convertor

from app.addresses import DATA_FORMATS
from app.html.glossary import tip
from app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES
from precompute.shape import PRESETS

_NUMBER = re.compile(r"[0-9]{1,9}")


def empty_is(default: Any) -> BeforeValidator:
    """An empty argument, as forms send it, is as if it were not there. Stands last in an Annotated type."""
    return BeforeValidator(lambda value: default if value == "" else value)


Model = Annotated[str, Path(description="A model's name, as on the home page", examples=["smollm2-135m"])]
Layer = Annotated[int, Path(ge=0, description="A layer, from 0", examples=[29])]
Neuron = Annotated[int, Path(ge=0, description="A neuron of the layer, from 0", examples=[432])]
Head = Annotated[int, Path(ge=0, description="A head of the layer, from 0", examples=[2])]
Subhead = Annotated[int, Path(ge=0, description="A subhead of the head, from 0", examples=[3])]
Matrix = Annotated[Literal["vo", "qk"], Path(description="W_V W_O, or W_Q W_Kᵀ", examples=["vo"])]
TokenId = Annotated[int, Path(ge=0, description="A token's id", examples=[2767])]

Lens = Annotated[
    Literal["dot", "cosine"],
    Query(description="How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and scaled"),
    empty_is("dot"),
]
AskedLens = Annotated[
    Literal["dot", "cosine"] | None,
    Query(
        description="How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and scaled. "
        "If it is not given: `dot`, or `cosine` where that alone is stored"
    ),
    empty_is(None),
]
Preset = Annotated[
    Literal["all", "distinct", "words"],
    Query(description="Which pairs compete. " + " ".join(f"`{preset}`: {tip(preset)}" for preset in PRESETS)),
    empty_is("all"),
]
Entries = Annotated[
    int | None,
    Query(
        ge=1, description=f"Entries per list, up to what the index stores; {VECTOR_ENTRIES}, of pairs {PAIR_ENTRIES}"
    ),
    empty_is(None),
]
PageNumber = Annotated[
    int, Query(ge=1, description="Which page of a long list, from 1; a `.csv` has all of them"), empty_is(1)
]
Sort = Annotated[
    Literal[
        "neuron", "-neuron", "norm", "-norm", "coherence", "-coherence", "similarity", "-similarity",
    ],
    Query(description="By what: numbers go from large to small, and `-` turns the order round"),
    empty_is("neuron"),
]  # fmt: skip
TokenFilter = Annotated[
    int | str | None,
    BeforeValidator(lambda value: int(value) if _NUMBER.fullmatch(str(value)) else value),
    Query(
        description="Only neurons whose key or value lists this token id; with a word, or an id after #, the answer is "
        "the address with its id"
    ),
    empty_is(None),
]
ListingKind: TypeAlias = Literal["ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o", "vo", "qk"]
MatchKind = Annotated[
    ListingKind | None, Query(description="Only vectors of this kind, or pairs of this matrix"), empty_is(None)
]
TokenKind = Annotated[ListingKind | None, Query(description="Only this kind, and all of it, in pages"), empty_is(None)]
Group = Annotated[
    Literal["from"] | None, Query(description="In the page for people: pairs grouped by first token"), empty_is(None)
]
Reading = Annotated[
    Literal["norm", "mlp"] | None,
    Query(description="Beside the stored lists, the worker's: norms folded in, or tokens after the first MLP"),
    empty_is(None),
]
Words = Annotated[
    str,
    Query(
        description='Words, "quoted phrases", token ids such as #3290, or an address such as L10N2361',
        examples=["dog", "L10N2361"],
    ),
]


class _Text(Convertor[Any]):
    def convert(self, value: str) -> Any:
        return value

    def to_string(self, value: Any) -> str:
        return str(value)


class _Name(_Text):
    """A model's name or what stands in its place; as short as can be, because a format may follow."""

    regex = r"[^/-][^/]*?"


class _Number(_Text):
    """Nine digits hold whatever an index can; Python refuses to read numbers of thousands."""

    regex = r"[0-9]{1,9}"

    def convert(self, value: str) -> int:
        return int(value)


class _Matrix(_Text):
    regex = r"vo|qk"


class _Format(_Text):
    regex = "|".join(DATA_FORMATS)


register_url_convertor("name", _Name())
register_url_convertor("number", _Number())
register_url_convertor("matrix", _Matrix())
register_url_convertor("format", _Format())
