"""The table of pages about models: where each is, what it takes, and which view it shows.
Filling the views is for views/; the pages of the system are in system.py."""

from collections.abc import Mapping
from typing import Any

from app import addresses
from app.routes import arguments as arg
from app.routes.readings import read_again, read_pairs_again
from app.routes.table import Call, Elsewhere, page
from app.views.head import HeadView, head_view
from app.views.home import HomeView, home_view
from app.views.layer import LayerView, layer_view, token_named
from app.views.model import ModelView, model_view
from app.views.neuron import NeuronView, neuron_view
from app.views.pairs import PairsView, pairs_view
from app.views.search import SearchView, search_view, suggest_view
from app.views.subhead import SubheadView, subhead_view
from app.views.token import TokenView, token_view


@page("/{model:name}/ff/{layer:number}/{neuron:number}", addresses.ff, arg.VECTOR_ENTRIES)
async def neuron(
    call: Call, layer: arg.Layer, neuron: arg.Neuron,
    lens: arg.Lens = "dot", k: arg.Entries = None, reading: arg.Reading = None,
) -> NeuronView:  # fmt: skip
    """A neuron: what it reads (`key`, and `up` where neurons are gated) and what it writes (`value`), as words."""
    k = call.entries(k, arg.VECTOR_ENTRIES, call.index.manifest.k)
    view = neuron_view(call.index, layer, neuron, lens, k)
    return await read_again(call, view, reading, k) if reading else view


@page("/{model:name}/head/{layer:number}/{head:number}/{matrix:matrix}", addresses.pairs, arg.PAIR_ENTRIES)
async def pairs(
    call: Call, layer: arg.Layer, head: arg.Head, matrix: arg.Matrix,
    lens: arg.Lens = "dot", preset: arg.Preset = "all", k: arg.Entries = None, group: arg.Group = None,
    reading: arg.Reading = None,
) -> PairsView:  # fmt: skip
    """A head's token pairs: `vo` maps what it reads to what it writes, `qk` what asks to what is asked for."""
    del group  # how the page shows them; the data are the same
    k = call.entries(k, arg.PAIR_ENTRIES, call.index.manifest.pairs)
    view = pairs_view(call.index, matrix, layer, head, lens, preset, k)
    return await read_pairs_again(call, view, reading, k) if reading else view


@page("/{model:name}/head/{layer:number}/{head:number}/sub/{subhead:number}", addresses.subhead, arg.VECTOR_ENTRIES)
async def subhead(
    call: Call, layer: arg.Layer, head: arg.Head, subhead: arg.Subhead,
    lens: arg.Lens = "dot", k: arg.Entries = None, reading: arg.Reading = None,
) -> SubheadView:  # fmt: skip
    """A subhead: its column of W_Q, W_K and W_V and its row of W_O, as words."""
    k = call.entries(k, arg.VECTOR_ENTRIES, call.index.manifest.k)
    view = subhead_view(call.index, layer, head, subhead, lens, k)
    return await read_again(call, view, reading, k) if reading else view


@page("/{model:name}/head/{layer:number}/{head:number}", addresses.head)
def head(call: Call, layer: arg.Layer, head: arg.Head, lens: arg.Lens = "dot", preset: arg.Preset = "all") -> HeadView:
    """A head at a glance: its first pairs, and the first tokens of its subheads."""
    return head_view(call.index, layer, head, lens, preset)


@page("/{model:name}/token/{token:number}", addresses.token)
def token(
    call: Call, token: arg.TokenId, lens: arg.Lens = "dot", preset: arg.Preset = "all",
    kind: arg.TokenKind = None, page: arg.PageNumber = 1,
) -> TokenView:  # fmt: skip
    """A token: which parameters read, write, avoid or suppress it, and which heads map from it or to it."""
    return token_view(call.index, token, lens, preset, kind, *call.part(page, call.site.settings.token_rows))


def _split(call: Call, arguments: Mapping[str, Any]) -> str:
    """Whether a search can say how the tokenizer splits a word: its file may come back, and is looked for."""
    splits = arguments["q"] and not call.suggesting and call.site.library.tokenizer(call.model)
    return "split" if splits else ""


@page("/{model:name}/search", addresses.search, state=_split)
def search(
    call: Call, q: arg.Words = "", lens: arg.Lens = "dot", kind: arg.MatchKind = None, page: arg.PageNumber = 1
) -> SearchView:
    """Tokens that are like the words, the parameters that list all of them, and the heads that pair one or two.

    An address such as L10N2361, 8.11 or a pasted link is in `jump`; the page for people goes there."""
    if call.suggesting:
        return suggest_view(call.index, q, lens, kind)
    tokenizer = call.site.library.tokenizer(call.model) if q else None
    return search_view(call.index, q, lens, kind, *call.part(page, call.site.settings.search_rows), tokenizer)


@page("/{model:name}/layer/{layer:number}", addresses.layer)
def layer(
    call: Call, layer: arg.Layer, lens: arg.Lens = "dot", sort: arg.Sort = "neuron",
    token: arg.TokenFilter = None, page: arg.PageNumber = 1,
) -> LayerView:  # fmt: skip
    """The neurons of a layer as a table: first tokens of key and value, norm, coherence, similarity."""
    if isinstance(token, str):
        named = token_named(call.index, token)
        raise Elsewhere(addresses.layer(call.model, layer, lens=lens, sort=sort, token=named))
    return layer_view(call.index, layer, lens, sort, token, *call.part(page, call.site.settings.layer_rows))


@page("/{model:name}", addresses.model)
def model(call: Call, lens: arg.Lens = "dot", preset: arg.Preset = "all") -> ModelView:
    """A model: its layers and heads as a map, and what is worth reading first."""
    return model_view(call.index, lens, preset)


@page("/", addresses.home)
def home(call: Call) -> HomeView:
    """The models: how large each is, and how many of its layers are ready."""
    return home_view(call.site.library)


MODEL, HOME = model, home

# Where one path could be another, the first answers. Often asked ones first: each is tried in turn.
PAGES = (neuron, pairs, subhead, token, search, head, layer)
