"""Links from live pages to parameters: to the page of their stored lists or, where these are not stored, to a run that
shows them."""

from app import addresses
from precompute.index.index import Index


def layer(index: Index, layer: int) -> str:
    name, stored = index.manifest.model, index.stored
    if "ff_key" in stored.kinds or "ff_value" in stored.kinds:
        return addresses.layer(name, layer)
    return addresses.model(name)


def neuron(index: Index, layer: int, neuron: int) -> str:
    name = index.manifest.model
    if index.stored.neurons:
        return addresses.ff(name, layer, neuron)
    return addresses.prompt(name, layer=layer, neuron=neuron, panel="neurons")


def head(index: Index, layer: int, head: int, lens: str = "dot") -> str:
    name = index.manifest.model
    if index.stored.heads:
        return addresses.head(name, layer, head, lens=_stored_lens(index, lens))
    return addresses.prompt(name, layer=layer, head=head, panel="attention,patterns")


def pairs(index: Index, layer: int, number: int, matrix: str, lens: str = "dot") -> str:
    if index.stored.pairs:
        return addresses.pairs(index.manifest.model, layer, number, matrix, lens=_stored_lens(index, lens))
    return head(index, layer, number, lens)


def vector(index: Index, layer: int, number: int, of_head: int | None, sub: int | None) -> str:
    """The page of a vector of any kind: its neuron's, or its subhead's."""
    if of_head is None or sub is None:
        return neuron(index, layer, number)
    if index.stored.subheads:
        return addresses.subhead(index.manifest.model, layer, of_head, sub)
    return head(index, layer, of_head)


def _stored_lens(index: Index, lens: str) -> str:
    return lens if lens in index.stored.lenses else index.stored.lens
