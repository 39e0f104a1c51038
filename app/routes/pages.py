"""The pages of stored lists."""

from fastapi import APIRouter
from starlette.responses import Response

from lexiscope.app import addresses
from lexiscope.app.routes import arguments as arg
from lexiscope.app.routes.dependencies import AnyLive, ServedIndex, SiteLibrary, SiteSettings, StoredLens
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, SitePage, page
from lexiscope.app.views.home import HomeView, home_view
from lexiscope.app.views.model import ModelView, model_view
from lexiscope.app.views.search import SearchView, search_view, suggest_view, with_labels
from lexiscope.precompute.errors import BadRequest

router = APIRouter(route_class=PageRoute)
model_router = APIRouter(route_class=PageRoute)  # the last: its path could be many another


@page(
    router, "/{model:name}/search", SearchView,
    responses={303: {"description": "The search names a parameter, or a pair: the page for people goes there"}},
)  # fmt: skip
async def search(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, settings: SiteSettings, live: AnyLive,
    lens: StoredLens, q: arg.Words = "", kind: arg.MatchKind = None, page: arg.PageNumber = 1,
) -> Response:  # fmt: skip
    """Tokens that are like the words, the parameters that list all of them, and the heads that pair one or two.

    An address such as L10N2361, 8.11 or a pasted link is in `jump`; the page for people goes there. A pair such as
    `king > queen` goes to Pairs to heads."""
    address = addresses.link("search", index.manifest.model, q=q, lens=lens, kind=kind, page=page)
    if answer.wants_suggestions:
        answer.at(address)
        return answer.show("_suggestions", suggest_view(index, q, lens, kind))
    tokenizer = library.tokenizer(index.manifest.model) if q else None
    is_live = live.serves(index.manifest.model)
    answer.at(address, also=f"{tokenizer is not None}, {is_live}")  # its file may come back, and is looked for
    window = answer.window(page, settings.search_rows)
    view = await answer.make(search_view, index, q, lens, kind, *window, tokenizer, answer.hidden_hubs(lens), is_live)
    view = with_labels(index, view, library.labels(index))
    if view.jump and answer.format == "html":
        return answer.redirect(view.jump)
    return answer.show("search", view)


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
