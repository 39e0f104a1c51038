"""What routes are given besides the arguments in their address: what the app holds in app.state, and the index of the
model in the path."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from lexiscope.app.library.library import Library
from lexiscope.app.live.client import LiveClient
from lexiscope.app.routes.arguments import AskedLens, Model
from lexiscope.app.settings import Settings
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.errors import LiveOff


def best_lenses(library: Library) -> dict[str, str]:
    """The models that can be read, and the lens that reads best in each; none while the data folder cannot be read."""
    try:
        return {card.model: card.best_lens for card in library.cards() if card.n_layers}
    except IndexFault:
        return {}


async def settings_of(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def library_of(request: Request) -> Library:
    library: Library = request.app.state.library
    return library


async def live_of(request: Request) -> LiveClient:
    live: LiveClient = request.app.state.live
    return live


async def stream_slot(request: Request) -> AsyncIterator[None]:
    """One of the few streams that may be sent at once."""
    with request.app.state.streams.slot():
        yield


async def index_of(model: Model, request: Request) -> Index:
    library: Library = request.app.state.library
    return library.index(model)


async def lens_of(index: Annotated[Index, Depends(index_of)], lens: AskedLens = None) -> str:
    """The lens of a page of stored lists: if none is asked for, the first that the index has."""
    return lens or index.stored.lens


async def live_of_model(model: Model, request: Request) -> LiveClient:
    """The client, if a worker answers for the model: also a page that only asks for words says at once if none will."""
    live: LiveClient = request.app.state.live
    if not live.serves(model):
        raise LiveOff(live.why_off(model))
    return live


SiteSettings = Annotated[Settings, Depends(settings_of)]
SiteLibrary = Annotated[Library, Depends(library_of)]
ServedIndex = Annotated[Index, Depends(index_of)]
AnyLive = Annotated[LiveClient, Depends(live_of)]
StoredLens = Annotated[str, Depends(lens_of)]
LiveOfModel = Annotated[LiveClient, Depends(live_of_model)]
