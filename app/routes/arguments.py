"""The arguments in addresses of stored pages, each with its meaning, for FastAPI to check and to document; and the
convertors that paths are made of."""

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Path, Query
from pydantic import BeforeValidator
from starlette.convertors import Convertor, register_url_convertor

from lexiscope.app.addresses import FIGURE_FORMATS, SEGMENTS
from lexiscope.app.html.glossary import tip
from lexiscope.precompute.live.wire.fields import empty_is

Model = Annotated[str, Path(description="A model's name, as on the home page", examples=["smollm2-135m"])]
ComparedModel = Annotated[str, Path(description="One of two models that are compared", examples=["minilm"])]
OtherModel = Annotated[str, Path(description="The other one", examples=["gte-small"])]

AskedLens = Annotated[
    Literal["dot", "cosine"] | None,
    Query(
        description="How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and scaled. "
        "If it is not given: `dot`, or `cosine` where that alone is stored"
    ),
    empty_is(None),
]
Hubs = Annotated[
    Literal["hide"] | None,
    Query(description="`hide` leaves hubs out of all lists: " + tip("hub") + " Ranks stay the true ones"),
    BeforeValidator(lambda value: None if value in ("", "show") else value),
]
LabFigure = Annotated[
    Literal["similarity", "inverse", "coverage"] | None,
    Query(description="One measurement alone; the others are then null"),
    empty_is(None),
]
PageNumber = Annotated[
    int, Query(ge=1, description="Which page of a long list, from 1; a `.csv` has all of them"), empty_is(1)
]
VectorKind: TypeAlias = Literal[
    "ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o", "vo_in", "vo_out", "qk_query", "qk_key"
]  # fmt: skip
ComparedKind = Annotated[
    VectorKind | None, Query(description="Only vectors of this kind, with more of its matches"), empty_is(None)
]
ComparedAs = Annotated[
    Literal["gpt2-medium", "gpt2"] | None,
    Query(alias="as", description="Whose printed lists to compare with, of a model that has another name"),
    empty_is(None),
]
PrintedList = Annotated[
    str | None,
    Query(
        alias="list",
        max_length=40,
        description="Only this printed list, such as `vo/21/7` or `ff/3/2711`, entry by entry",
        examples=["vo/21/7"],
    ),
    empty_is(None),
]


class _Segment(Convertor[Any]):
    """What may stand between the slashes of a path, by the expressions that addresses are read with."""

    def convert(self, value: str) -> Any:
        return value

    def to_string(self, value: Any) -> str:
        return str(value)


for _name, _regex in (SEGMENTS | {"format": "|".join(FIGURE_FORMATS)}).items():
    register_url_convertor(_name, type(f"_Segment_{_name}", (_Segment,), {"regex": _regex})())
