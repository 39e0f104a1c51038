"""The arguments in addresses of stored pages, each with its meaning, for FastAPI to check and to document; and the
convertors that paths are made of."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BeforeValidator
from starlette.convertors import Convertor, register_url_convertor

from lexiscope.app.addresses import FIGURE_FORMATS, SEGMENTS
from lexiscope.app.html.glossary import tip
from lexiscope.app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES
from lexiscope.precompute.live.wire.fields import empty_is
from lexiscope.precompute.shape import PRESETS
from lexiscope.precompute.shape import Preset as PresetName

Model = Annotated[str, Path(description="A model's name, as on the home page", examples=["smollm2-135m"])]
ComparedModel = Annotated[str, Path(description="One of two models that are compared", examples=["minilm"])]
Layer = Annotated[int, Path(ge=0, description="A layer, from 0", examples=[29])]
Neuron = Annotated[int, Path(ge=0, description="A neuron of the layer, from 0", examples=[432])]
Head = Annotated[int, Path(ge=0, description="A head of the layer, from 0", examples=[2])]
Subhead = Annotated[int, Path(ge=0, description="A subhead of the head, from 0", examples=[3])]
Direction = Annotated[int, Path(ge=0, description="A singular direction of the head, from 0", examples=[0])]
Matrix = Annotated[Literal["vo", "qk"], Path(description="W_V W_O, or W_Q W_Kᵀ", examples=["vo"])]
HeadKind = Annotated[
    Literal["classifier", "dense"],
    Path(description="The vectors of the labels, or of the step before them", examples=["classifier"]),
]
HeadIndex = Annotated[int, Path(ge=0, description="A vector of that kind, from 0", examples=[1])]

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
Hubs = Annotated[
    Literal["hide"] | None,
    Query(description="`hide` leaves hubs out of all lists: " + tip("hub") + " Ranks stay the true ones"),
    BeforeValidator(lambda value: None if value in ("", "show") else value),
]
Preset = Annotated[
    PresetName,
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
Group = Annotated[
    Literal["from"] | None, Query(description="In the page for people: pairs grouped by first token"), empty_is(None)
]
Reading = Annotated[
    Literal["norm", "mlp"] | None,
    Query(description="Beside the stored lists, the worker's: norms folded in, or tokens after the first MLP"),
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
