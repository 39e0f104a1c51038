"""Links that templates write: from live pages to parameters, and from a token to its row in the lists that hold it.

A link to a parameter leads to the page of its stored lists or, where these are not stored, to a run that shows it.
Without a lens it leads to the one that reads best."""

from collections.abc import Mapping
from typing import Any

from lexiscope.app import urls
from lexiscope.app.lists.checks import PAIR_ENTRIES, VECTOR_ENTRIES, reaching
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.grammar import write_layers


def first_layers(index: Index) -> str:
    """Write the range of layers for examples of words through heads: the first four, where the input of a head is still
    mostly the word's embedding."""
    return write_layers(tuple(range(min(4, index.shape.n_layers))))


def layer(index: Index, layer: int, lens: str = "") -> str:
    name, stored = index.manifest.model, index.stored
    if "ff_key" in stored.kinds or "ff_value" in stored.kinds:
        return urls.link("layer", name, layer, lens=_lens(index, lens))
    return urls.link("model", name, lens=_lens(index, lens))


def neuron(index: Index, layer: int, neuron: int, lens: str = "") -> str:
    name = index.manifest.model
    if index.stored.neurons:
        return urls.link("neuron", name, layer, neuron, lens=_lens(index, lens))
    return urls.link("prompt", name, layer=layer, neuron=neuron, panel="neurons", lens=_lens(index, lens))


def head(index: Index, layer: int, head: int, lens: str = "") -> str:
    name = index.manifest.model
    if index.stored.heads:
        return urls.link("head", name, layer, head, lens=_lens(index, lens))
    return urls.link("prompt", name, layer=layer, head=head, panel="attention,patterns", lens=_lens(index, lens))


def pairs(index: Index, layer: int, number: int, matrix: str, lens: str = "") -> str:
    if index.stored.pairs:
        return urls.link("pairs", index.manifest.model, layer, number, matrix, lens=_lens(index, lens))
    return head(index, layer, number, lens)


def vector(index: Index, vector: Mapping[str, Any], lens: str = "") -> str:
    """Return the address of the page of a vector of any kind: its neuron's, its subhead's or its direction's."""
    if vector["head"] is None:
        return neuron(index, vector["layer"], vector["index"], lens)
    if index.stored.subheads if vector["direction"] is None else index.stored.directions:
        return urls.vector(index.manifest.model, vector, lens=_lens(index, lens))
    return head(index, vector["layer"], vector["head"], lens)


def row(index: Index, listing: Mapping[str, Any], end: str, rank: int, token: int, lens: str) -> str:
    """The address of a token's row in a vector's list, on a page that is long enough to reach its rank."""
    k = reaching(rank, VECTOR_ENTRIES, index.manifest.k)
    page = urls.vector(index.manifest.model, listing, lens=lens, k=k)
    return f"{page}#{listing['kind']}-{end[0]}{token}"  # the id of the row, as in templates/_lists.html


def pair_row(index: Index, listing: Mapping[str, Any], first: int, second: int, lens: str, preset: str) -> str:
    """The address of a pair's row in a head's list."""
    place = listing["layer"], listing["head"], listing["matrix"]
    k = reaching(listing["rank"], PAIR_ENTRIES, index.manifest.pairs)
    page = urls.link("pairs", index.manifest.model, *place, lens=lens, preset=preset, k=k)
    return f"{page}#{listing['end'][0]}{first}-{second}"


def _lens(index: Index, lens: str) -> str:
    """Return the lens of the page that links, if the index has lists under it; otherwise return the lens that reads
    best."""
    return lens if lens in index.stored.lenses else index.best_lens
