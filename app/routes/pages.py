"""The pages of stored lists."""

from fastapi import APIRouter
from starlette.responses import Response

from lexiscope.app import addresses
from lexiscope.app.routes import arguments as arg
from lexiscope.app.routes.dependencies import ServedIndex, SiteLibrary, StoredLens
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, SitePage, page
from lexiscope.app.views.home import HomeView, home_view
from lexiscope.app.views.model import ModelView, model_view
from lexiscope.precompute.errors import BadRequest

router = APIRouter(route_class=PageRoute)
model_router = APIRouter(route_class=PageRoute)  # the last: its path could be many another


@page(router, "/", HomeView, data_path="/index")
async def home(answer: SitePage, library: SiteLibrary) -> Response:
    """The models: how large each is, and how many of its layers are ready."""
    answer.at(addresses.home())
    return answer.show("home", home_view(library))


@page(model_router, "/{model:name}", ModelView)
async def model(
    answer: ModelPage, index: ServedIndex, lens: StoredLens, preset: arg.Preset = "all",
    head_map: arg.HeadMap = addresses.MAP,
) -> Response:  # fmt: skip
    """A model: what is worth reading first, and its layers and heads as maps."""
    answer.at(addresses.link("model", index.manifest.model, lens=lens, preset=preset, map=head_map))
    if head_map == "change" and not index.stored.difference:
        raise BadRequest(f"map = change: only differences have such a map, and {index.manifest.model} is a model")
    return answer.show("model", model_view(index, lens, preset, answer.hubs is not None))
