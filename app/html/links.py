"""Return links for templates: from live pages to parameters, and from a token to its row in a list.

A link to a parameter leads to the page of its stored lists or, if these are not stored, to a run of the model that
shows it. A link for which no lens (dot or cosine) is given takes the one whose lists are the most readable.
"""

from collections.abc import Mapping
from typing import Any

from lexiscope.app import urls
from lexiscope.app.lists.checks import PAIR_ENTRIES, VECTOR_ENTRIES, reaching
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.grammar import write_layers

# Pages of parameters, and how the parameter is named there.
PARAMETERS = {
    "neuron": "L{layer}N{neuron}",
    "head": "L{layer}H{head}",
    "pairs": "L{layer}H{head}",
    "subhead": "L{layer}H{head}.{subhead}",
    "direction": "L{layer}H{head}.svd{direction}",
}


def first_layers(index: Index) -> str:
    """Return the range of layers for examples of words sent through heads: the first four, where the input of a head is
    still mostly the word's embedding."""
    return write_layers(tuple(range(min(4, index.shape.n_layers))))


def parameter_at(path: str) -> str:
    """Return the name of the parameter whose page has this path, such as L8H11.5; "" if it is another page."""
    below = path.split("/", 2)[-1]
    for page, written in PARAMETERS.items():
        if (read := urls.DECLARED[page].read(below)) is not None:
            return written.format(**read)
    return ""


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
    """Return the address of the page that shows a vector: the page of its neuron, its subhead (channel of a head) or
    its singular direction."""
    if vector["head"] is None:
        return neuron(index, vector["layer"], vector["index"], lens)
    if index.stored.subheads if vector["direction"] is None else index.stored.directions:
        return urls.vector(index.manifest.model, vector, lens=_lens(index, lens))
    return head(index, vector["layer"], vector["head"], lens)


def row(index: Index, listing: Mapping[str, Any], end: str, rank: int, token: int, lens: str) -> str:
    """Return the address of a token's row in a vector's list, on a page that is long enough to reach the token's
    rank."""
    k = reaching(rank, VECTOR_ENTRIES, index.manifest.k)
    page = urls.vector(index.manifest.model, listing, lens=lens, k=k)
    return f"{page}#{listing['kind']}-{end[0]}{token}"  # templates/_lists.html gives the row this id


def pair_row(index: Index, listing: Mapping[str, Any], first: int, second: int, lens: str, preset: str) -> str:
    """Return the address of the row of a token pair in a head's list."""
    place = listing["layer"], listing["head"], listing["matrix"]
    k = reaching(listing["rank"], PAIR_ENTRIES, index.manifest.pairs)
    page = urls.link("pairs", index.manifest.model, *place, lens=lens, preset=preset, k=k)
    return f"{page}#{listing['end'][0]}{first}-{second}"


def _lens(index: Index, lens: str) -> str:
    """Return the lens (dot or cosine) of the linking page if the index has lists under it, else the lens whose lists
    are the most readable."""
    return lens if lens in index.stored.lenses else index.best_lens
