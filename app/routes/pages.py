"""The pages of stored lists."""

from fastapi import APIRouter
from starlette.responses import Response

from app import addresses
from app.routes import arguments as arg
from app.routes.dependencies import AnyLive, ServedIndex, SiteLibrary, SiteSettings, StoredLens
from app.routes.page_answer import ModelPage, PageRoute, SitePage, page
from app.routes.readings import read_pairs_again, read_vectors_again
from app.views.checks import list_length
from app.views.classifier import ClassifierView, classifier_view
from app.views.direction import DirectionView
from app.views.head import HeadView
from app.views.home import HomeView, home_view
from app.views.layer import LayerView, layer_view, token_named
from app.views.layer_lists import layer_lists_view
from app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES
from app.views.matches import version_of_matches
from app.views.model import ModelView, model_view
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.parameter_pages import direction_page, head_page, neuron_page, pairs_page, subhead_page
from app.views.search import SearchView, search_view, suggest_view, with_labels
from app.views.subhead import SubheadView
from app.views.token import TokenView, token_view
from precompute.errors import BadRequest

router = APIRouter(tags=["pages"], route_class=PageRoute)
model_router = APIRouter(tags=["pages"], route_class=PageRoute)  # the last: its path could be many another


@page(router, "/{model:name}/ff/{layer:number}/{neuron:number}", NeuronView)
async def neuron(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, live: AnyLive, layer: arg.Layer, neuron: arg.Neuron,
    lens: StoredLens, k: arg.Entries = None, reading: arg.Reading = None, side: arg.NeuronSide = None,
) -> Response:  # fmt: skip
    """A neuron: what it reads (`key`, and `up` where neurons are gated) and what it writes (`value`), as words."""
    address = addresses.ff(index.manifest.model, layer, neuron, lens=lens, k=k, reading=reading)
    answer.at(address, also=f"{side} {version_of_matches(library, index)}")
    view = neuron_page(library, index, layer, neuron, lens, k, bool(answer.hubs))
    if reading:
        length = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
        view = await read_vectors_again(live, answer.request, index, view, reading, length)
    return answer.show("neuron", view, side)


@page(router, "/{model:name}/head/{layer:number}/{head:number}/{matrix:matrix}", PairsView)
async def pairs(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, live: AnyLive,
    layer: arg.Layer, head: arg.Head, matrix: arg.Matrix, lens: StoredLens,
    preset: arg.Preset = "all", k: arg.Entries = None, group: arg.Group = None,
    reading: arg.Reading = None, side: arg.PairsSide = None,
) -> Response:  # fmt: skip
    """A head's token pairs: `vo` maps what it reads to what it writes, `qk` what asks to what is asked for."""
    model = index.manifest.model
    address = addresses.pairs(model, layer, head, matrix, lens=lens, preset=preset, k=k, group=group, reading=reading)
    answer.at(address, also=side or "")
    view = pairs_page(library, index, matrix, layer, head, lens, preset, k)
    if reading:
        length = list_length(index, k, PAIR_ENTRIES, index.manifest.pairs)
        view = await read_pairs_again(live, answer.request, index, view, reading, length)
    return answer.show("pairs", view, side)


@page(router, "/{model:name}/head/{layer:number}/{head:number}/sub/{subhead:number}", SubheadView)
async def subhead(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, live: AnyLive,
    layer: arg.Layer, head: arg.Head, subhead: arg.Subhead, lens: StoredLens,
    k: arg.Entries = None, reading: arg.Reading = None, side: arg.SubheadSide = None,
) -> Response:  # fmt: skip
    """A subhead: its column of W_Q, W_K and W_V and its row of W_O, as words."""
    address = addresses.subhead(index.manifest.model, layer, head, subhead, lens=lens, k=k, reading=reading)
    answer.at(address, also=f"{side} {version_of_matches(library, index)}")
    view = subhead_page(library, index, layer, head, subhead, lens, k, bool(answer.hubs))
    if reading:
        length = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
        view = await read_vectors_again(live, answer.request, index, view, reading, length)
    return answer.show("subhead", view, side)


@page(router, "/{model:name}/head/{layer:number}/{head:number}/svd/{direction:number}", DirectionView)
async def direction(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, live: AnyLive,
    layer: arg.Layer, head: arg.Head, direction: arg.Direction, lens: StoredLens,
    k: arg.Entries = None, reading: arg.Reading = None, side: arg.DirectionSide = None,
) -> Response:  # fmt: skip
    """A singular direction of a head, as words: what VO reads and writes along it, and what QK matches, query and key.

    W_V W_O is the sum of σ_j in_jᵀ out_j, and W_Q W_Kᵀ of σ_j query_jᵀ key_j. The directions of the two are numbered
    alike, and have nothing else in common."""
    address = addresses.direction(index.manifest.model, layer, head, direction, lens=lens, k=k, reading=reading)
    answer.at(address, also=f"{side} {version_of_matches(library, index)}")
    view = direction_page(library, index, layer, head, direction, lens, k, bool(answer.hubs))
    if reading:
        length = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
        view = await read_vectors_again(live, answer.request, index, view, reading, length)
    return answer.show("direction", view, side)


@page(router, "/{model:name}/classifier", ClassifierView)
async def classifier(answer: ModelPage, index: ServedIndex, lens: StoredLens, k: arg.Entries = None) -> Response:
    """The classification head of a checkpoint that has one: what every label reads, as words."""
    answer.at(addresses.classifier(index.manifest.model, lens=lens, k=k))
    k = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
    return answer.show("classifier", classifier_view(index, lens=lens, k=k))


@page(router, "/{model:name}/classifier/{kind:head_kind}/{index_of_kind:number}", ClassifierView)
async def classifier_vector(
    answer: ModelPage, index: ServedIndex, kind: arg.HeadKind, index_of_kind: arg.HeadIndex, lens: StoredLens,
    k: arg.Entries = None,
) -> Response:  # fmt: skip
    """One vector of a classification head: a label's (`classifier`), or one of the step before (`dense`)."""
    answer.at(addresses.classifier(index.manifest.model, kind, index_of_kind, lens=lens, k=k))
    k = list_length(index, k, VECTOR_ENTRIES, index.manifest.k)
    return answer.show("classifier", classifier_view(index, kind, index_of_kind, lens, k))


@page(router, "/{model:name}/token/{token:number}", TokenView)
async def token(
    answer: ModelPage, index: ServedIndex, settings: SiteSettings, token: arg.TokenId,
    lens: StoredLens, preset: arg.Preset = "all", kind: arg.TokenKind = None, page: arg.PageNumber = 1,
) -> Response:  # fmt: skip
    """A token: which parameters read, write, avoid or suppress it, and which heads map from it or to it."""
    answer.at(addresses.token(index.manifest.model, token, lens=lens, preset=preset, kind=kind, page=page))
    window = answer.window(page, settings.token_rows)
    return answer.show(
        "token", await answer.make(token_view, index, token, lens, preset, kind, *window, answer.hidden_hubs(lens))
    )


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
    address = addresses.search(index.manifest.model, q=q, lens=lens, kind=kind, page=page)
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


@page(router, "/{model:name}/head/{layer:number}/{head:number}", HeadView)
async def head(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, layer: arg.Layer, head: arg.Head,
    lens: StoredLens, preset: arg.Preset = "all",
) -> Response:  # fmt: skip
    """A head at a glance: its first pairs, and the first tokens of its subheads and singular directions."""
    answer.at(addresses.head(index.manifest.model, layer, head, lens=lens, preset=preset))
    return answer.show("head", head_page(library, index, layer, head, lens, preset, bool(answer.hubs)))


@page(
    router, "/{model:name}/layer/{layer:number}", LayerView,
    responses={303: {"description": "The token is given as a word: goes to the address with its id"}},
)  # fmt: skip
async def layer(
    answer: ModelPage, index: ServedIndex, settings: SiteSettings, layer: arg.Layer,
    lens: StoredLens, sort: arg.Sort = "neuron", token: arg.TokenFilter = None, page: arg.PageNumber = 1,
    k: arg.CsvEntries = None, ends: arg.CsvEnds = None,
) -> Response:  # fmt: skip
    """The neurons of a layer as a table: first tokens of key and value, norm, coherence, similarity.

    With `k` or `ends`, a CSV holds all lists of these neurons instead: a row for each token, with its score, as the CSV
    of each neuron has."""
    model = index.manifest.model
    lists = k is not None or ends is not None
    if lists and answer.format != "csv":
        raise BadRequest("k and ends are for the CSV of a layer, which then holds all its lists: add .csv to the path")
    if isinstance(token, str):
        named = token_named(index, token)
        return answer.redirect(addresses.layer(model, layer, lens=lens, sort=sort, token=named, k=k, ends=ends))
    address = addresses.layer(model, layer, lens=lens, sort=sort, token=token, page=page)
    answer.at(address, also=f"{k} {ends}" if lists else "")
    if lists:
        k = list_length(index, k, index.manifest.k, index.manifest.k)
        hubs = answer.hidden_hubs(lens)
        all_lists = await answer.make(layer_lists_view, index, layer, lens, sort, token, k, ends or "both", hubs)
        return answer.show("layer", all_lists)
    window = answer.window(page, settings.layer_rows)
    return answer.show(
        "layer", await answer.make(layer_view, index, layer, lens, sort, token, *window, answer.hidden_hubs(lens))
    )


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
    answer.at(addresses.model(index.manifest.model, lens=lens, preset=preset, map=head_map))
    if head_map == "change" and not index.stored.difference:
        raise BadRequest(f"map = change: only differences have such a map, and {index.manifest.model} is a model")
    return answer.show("model", model_view(index, lens, preset, answer.hubs is not None))
