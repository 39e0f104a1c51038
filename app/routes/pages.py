"""The pages of stored lists."""

from fastapi import APIRouter
from starlette.responses import Response

from app import addresses
from app.routes import arguments as arg
from app.routes.dependencies import AnyLive, ServedIndex, SiteLibrary, SiteSettings, StoredLens
from app.routes.page_answer import ModelPage, PageRoute, SitePage, page
from app.routes.readings import read_pairs_again, read_vectors_again
from app.views.head import HeadView, head_view
from app.views.home import HomeView, home_view
from app.views.layer import LayerView, layer_view, token_named
from app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES
from app.views.model import ModelView, model_view
from app.views.neuron import NeuronView, neuron_view
from app.views.pairs import PairsView, pairs_view
from app.views.search import SearchView, search_view, suggest_view
from app.views.subhead import SubheadView, subhead_view
from app.views.token import TokenView, token_view
from precompute.errors import BadRequest
from precompute.index.index import Index

router = APIRouter(tags=["pages"], route_class=PageRoute)
model_router = APIRouter(tags=["pages"], route_class=PageRoute)  # the last: its path could be many another


def list_length(index: Index, k: int | None, usual: int, stored: int) -> int:
    if k is not None and k > stored > 0:
        model = index.manifest.model
        raise BadRequest(f"k = {k}: lists of {model} hold {stored} entries, so k goes from 1 to {stored}")
    return k or usual


@page(router, "/{model:name}/ff/{layer:number}/{neuron:number}", NeuronView)
async def neuron(
    answer: ModelPage, index: ServedIndex, live: AnyLive, layer: arg.Layer, neuron: arg.Neuron,
    lens: StoredLens, k: arg.Entries = None, reading: arg.Reading = None,
) -> Response:  # fmt: skip
    """A neuron: what it reads (`key`, and `up` where neurons are gated) and what it writes (`value`), as words."""
    answer.at(addresses.ff(index.manifest.model, layer, neuron, lens=lens, k=k, reading=reading))
    k = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
    view = neuron_view(index, layer, neuron, lens, k)
    if reading:
        view = await read_vectors_again(live, answer.request, index, view, reading, k)
    return answer.show("neuron", view)


@page(router, "/{model:name}/head/{layer:number}/{head:number}/{matrix:matrix}", PairsView)
async def pairs(
    answer: ModelPage, index: ServedIndex, live: AnyLive, layer: arg.Layer, head: arg.Head, matrix: arg.Matrix,
    lens: StoredLens, preset: arg.Preset = "all", k: arg.Entries = None, group: arg.Group = None,
    reading: arg.Reading = None,
) -> Response:  # fmt: skip
    """A head's token pairs: `vo` maps what it reads to what it writes, `qk` what asks to what is asked for."""
    model = index.manifest.model
    answer.at(addresses.pairs(model, layer, head, matrix, lens=lens, preset=preset, k=k, group=group, reading=reading))
    k = list_length(index, k, PAIR_ENTRIES, index.manifest.pairs)
    view = pairs_view(index, matrix, layer, head, lens, preset, k)
    if reading:
        view = await read_pairs_again(live, answer.request, index, view, reading, k)
    return answer.show("pairs", view)


@page(router, "/{model:name}/head/{layer:number}/{head:number}/sub/{subhead:number}", SubheadView)
async def subhead(
    answer: ModelPage, index: ServedIndex, live: AnyLive, layer: arg.Layer, head: arg.Head, subhead: arg.Subhead,
    lens: StoredLens, k: arg.Entries = None, reading: arg.Reading = None,
) -> Response:  # fmt: skip
    """A subhead: its column of W_Q, W_K and W_V and its row of W_O, as words."""
    answer.at(addresses.subhead(index.manifest.model, layer, head, subhead, lens=lens, k=k, reading=reading))
    k = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
    view = subhead_view(index, layer, head, subhead, lens, k)
    if reading:
        view = await read_vectors_again(live, answer.request, index, view, reading, k)
    return answer.show("subhead", view)


@page(router, "/{model:name}/token/{token:number}", TokenView)
async def token(
    answer: ModelPage, index: ServedIndex, settings: SiteSettings, token: arg.TokenId,
    lens: StoredLens, preset: arg.Preset = "all", kind: arg.TokenKind = None, page: arg.PageNumber = 1,
) -> Response:  # fmt: skip
    """A token: which parameters read, write, avoid or suppress it, and which heads map from it or to it."""
    answer.at(addresses.token(index.manifest.model, token, lens=lens, preset=preset, kind=kind, page=page))
    window = answer.window(page, settings.token_rows)
    return answer.show("token", await answer.make(token_view, index, token, lens, preset, kind, *window))


@page(
    router, "/{model:name}/search", SearchView,
    responses={303: {"description": "The search names a parameter: the page for people goes to its page"}},
)  # fmt: skip
async def search(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, settings: SiteSettings,
    lens: StoredLens, q: arg.Words = "", kind: arg.MatchKind = None, page: arg.PageNumber = 1,
) -> Response:  # fmt: skip
    """Tokens that are like the words, the parameters that list all of them, and the heads that pair one or two.

    An address such as L10N2361, 8.11 or a pasted link is in `jump`; the page for people goes there."""
    address = addresses.search(index.manifest.model, q=q, lens=lens, kind=kind, page=page)
    if answer.wants_suggestions:
        answer.at(address)
        return answer.show("_suggestions", suggest_view(index, q, lens, kind))
    tokenizer = library.tokenizer(index.manifest.model) if q else None
    answer.at(address, also="with tokenizer" if tokenizer else "")  # its file may come back, and is looked for
    window = answer.window(page, settings.search_rows)
    view = await answer.make(search_view, index, q, lens, kind, *window, tokenizer)
    if view.jump and answer.format == "html":
        return answer.redirect(view.jump)
    return answer.show("search", view)


@page(router, "/{model:name}/head/{layer:number}/{head:number}", HeadView)
async def head(
    answer: ModelPage, index: ServedIndex, layer: arg.Layer, head: arg.Head,
    lens: StoredLens, preset: arg.Preset = "all",
) -> Response:  # fmt: skip
    """A head at a glance: its first pairs, and the first tokens of its subheads."""
    answer.at(addresses.head(index.manifest.model, layer, head, lens=lens, preset=preset))
    return answer.show("head", head_view(index, layer, head, lens, preset))


@page(
    router, "/{model:name}/layer/{layer:number}", LayerView,
    responses={303: {"description": "The token is given as a word: goes to the address with its id"}},
)  # fmt: skip
async def layer(
    answer: ModelPage, index: ServedIndex, settings: SiteSettings, layer: arg.Layer,
    lens: StoredLens, sort: arg.Sort = "neuron", token: arg.TokenFilter = None, page: arg.PageNumber = 1,
) -> Response:  # fmt: skip
    """The neurons of a layer as a table: first tokens of key and value, norm, coherence, similarity."""
    model = index.manifest.model
    if isinstance(token, str):
        return answer.redirect(addresses.layer(model, layer, lens=lens, sort=sort, token=token_named(index, token)))
    answer.at(addresses.layer(model, layer, lens=lens, sort=sort, token=token, page=page))
    window = answer.window(page, settings.layer_rows)
    return answer.show("layer", await answer.make(layer_view, index, layer, lens, sort, token, *window))


@page(router, "/", HomeView, data_path="/index")
async def home(answer: SitePage, library: SiteLibrary) -> Response:
    """The models: how large each is, and how many of its layers are ready."""
    answer.at(addresses.home())
    return answer.show("home", home_view(library))


@page(model_router, "/{model:name}", ModelView)
async def model(answer: ModelPage, index: ServedIndex, lens: StoredLens, preset: arg.Preset = "all") -> Response:
    """A model: its layers and heads as a map, and what is worth reading first."""
    answer.at(addresses.model(index.manifest.model, lens=lens, preset=preset))
    return answer.show("model", model_view(index, lens, preset))
