"""Give routes those arguments that belong to no page, such as objects in app.state and the index of the model in the
path; declare the convertors that paths are made of."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import Depends, Path, Query
from pydantic import BeforeValidator
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request

from lexiscope.app.html.glossary import tip
from lexiscope.app.library.library import Library
from lexiscope.app.lists.kept_tokens import KeptTokens
from lexiscope.app.lists.labels import parameter_name
from lexiscope.app.live.client import LiveClient
from lexiscope.app.settings import Settings
from lexiscope.app.urls import ALL_FORMATS, SEGMENTS
from lexiscope.precompute.errors import BadRequest, IndexFault, OtherBuild
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.parameter_names import parameter_named
from lexiscope.precompute.shape import Preset

MOST_PINNED = 8

Model = Annotated[str, Path(description="A model's name, as on the home page", examples=["smollm2-135m"])]
ComparedModel = Annotated[str, Path(description="One of two models that are compared", examples=["minilm"])]
Hubs = Annotated[
    Literal["hide"] | None,
    Query(description="`hide` leaves hubs out of all lists: " + tip("hub") + " Ranks stay the true ones"),
    BeforeValidator(lambda value: None if value in ("", "show") else value),
]
AskedPreset = Annotated[
    Preset,
    Query(description="`words` keeps all lists to whole words; `all` and `distinct` are for pairs"),
    BeforeValidator(lambda value: value or "all"),
]
AskedVocabulary = Annotated[
    str,
    Query(
        max_length=200,
        description="Keeps all lists to the tokens of this corpus or word list, a file of DATA/vocabularies",
    ),
]
AskedBuild = Annotated[
    str,
    Query(
        max_length=100,
        description="Pins the build of the index, which JSON has as `build`: if there is another one now, the answer "
        "is 410 and leads to the page as it is now",
    ),
]

AskedPin = Annotated[
    str,
    Query(
        max_length=300,
        description=f"Up to {MOST_PINNED} parameters, such as L29N808,29.2: pages for people show their first "
        "words, and pass them on; data stay as they are",
    ),
]


class _Segment(Convertor[Any]):
    """A convertor of Starlette that matches one segment of a path, by the same regular expressions that read addresses
    elsewhere."""

    def convert(self, value: str) -> Any:
        return value

    def to_string(self, value: Any) -> str:
        return str(value)


for _name, _regex in (SEGMENTS | {"format": "|".join(ALL_FORMATS)}).items():
    register_url_convertor(_name, type(f"_Segment_{_name}", (_Segment,), {"regex": _regex})())


def best_lenses(library: Library) -> dict[str, str]:
    """Return the models that can be read, each with the lens (dot or cosine) whose lists are the most readable; none
    while the data folder cannot be read."""
    try:
        return {card.model: card.best_lens for card in library.cards() if card.n_layers}
    except IndexFault:
        return {}


def held(name: str) -> Any:
    """Make the FastAPI dependency that gives a route the object of this name in app.state."""

    async def of_state(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(of_state)


async def stream_slot(request: Request) -> AsyncIterator[None]:
    """Hold one of the limited slots for streamed answers while an answer is sent."""
    with request.app.state.streams.slot():
        yield


async def index_of(model: Model, request: Request) -> Index:
    library: Library = request.app.state.library
    return library.index(model)


ServedIndex = Annotated[Index, Depends(index_of)]


def check_build(request: Request, index: Index, build: str) -> None:
    """Raise OtherBuild if the visitor asks for another build of the index than there is now."""
    now = index.manifest.build
    if build not in ("", now):
        raise OtherBuild(
            f"this address is of build {build} of the index of {index.manifest.model}, and there is build {now} now: "
            f"its lists may be others. `{unpinned(request)}` is the page as it is now"
        )


def read_pins(index: Index, pin: str) -> str:
    """Return the pinned parameters as addresses write them: each once, by the one name that it has there."""
    named = (parameter_named(index.manifest.model, index.shape, text) for text in pin.split(",") if text.strip())
    pins = list(dict.fromkeys(map(parameter_name, named)))
    if len(pins) > MOST_PINNED:
        raise BadRequest(f"pin names {len(pins)} parameters: up to {MOST_PINNED} can be pinned at once")
    return ",".join(pins)


def unpinned(request: Request) -> str:
    """Return the address of a request without the build that it asks for."""
    query = urlencode([argument for argument in request.query_params.multi_items() if argument[0] != "build"])
    return quote(request.url.path) + (f"?{query}" if query else "")


async def kept_tokens(request: Request, preset: AskedPreset = "all", vocabulary: AskedVocabulary = "") -> KeptTokens:
    """Return which tokens the visitor wants in lists. When a vocabulary is first asked for, it is tokenised."""
    words, model = preset == "words", request.path_params.get("model", "")
    if not vocabulary:
        return KeptTokens(words)
    library: Library = request.app.state.library
    index = library.index(model)
    found = library.vocabularies.held(vocabulary, index) or await run_in_threadpool(
        lambda: library.vocabularies.find(vocabulary, index, library.tokenizer(model))
    )
    return KeptTokens(words, found)


SiteSettings = Annotated[Settings, held("settings")]
SiteLibrary = Annotated[Library, held("library")]
AskedTokens = Annotated[KeptTokens, Depends(kept_tokens)]
AnyLive = Annotated[LiveClient, held("live")]
