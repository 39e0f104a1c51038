"""What is worth reading first in a model: its most coherent neurons and heads, and keys and values that agree.
Showing it is for the model's page."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import numpy as np

from app.page_types import HeadCard, NeuronCard
from app.views.layer import first_tokens
from app.views.parameters import pairs_view
from app.views.parts import token_views
from precompute.errors import IndexFault
from precompute.index import Index
from precompute.shape import LENSES, MATRICES, PRESETS
from precompute.shard_reader import Array, Shard

CARDS, TOKENS, PAIRS = 8, 6, 3

At = TypeVar("At")
Card = TypeVar("Card")
Cards = tuple[tuple[NeuronCard, ...], tuple[NeuronCard, ...], tuple[HeadCard, ...]]


def worth_reading(index: Index, shards: Mapping[int, Shard], lens: str, preset: str) -> Cards:
    """Most coherent values, most alike keys and values, most coherent heads."""
    lens_at, at = LENSES.index(lens), (LENSES.index(lens), PRESETS.index(preset), 0)
    coherences = {layer: shard.array("ff_value.coherence")[:, lens_at, 0] for layer, shard in shards.items()}
    similarities = {layer: shard.array("ff.similarity")[:, lens_at] for layer, shard in shards.items()}
    heads = {
        (layer, matrix): shard.array(f"{matrix}.coherence")[(slice(None), *at)]
        for layer, shard in shards.items()
        for matrix in MATRICES
    }
    return (
        _cards(lambda layer, n, number: _neuron(index, shards[layer], n, number, lens), coherences),
        _cards(lambda layer, n, number: _neuron(index, shards[layer], n, number, lens), similarities),
        _cards(lambda place, head, number: _head(index, *place, head, number, lens, preset), heads),
    )


def _cards(make: Callable[[At, int, float], Card], numbers: Mapping[At, Array]) -> tuple[Card, ...]:
    """One card for each of the largest; a damaged layer does not take the page with it."""
    cards: list[Card] = []
    for entry in _largest(numbers):
        with suppress(IndexFault):
            cards.append(make(*entry))
    return tuple(cards)


def _largest(numbers: Mapping[At, Array]) -> list[tuple[At, int, float]]:
    """The largest of all, with the place and the number of each; what is undefined does not count."""
    found: list[tuple[At, int, float]] = []
    for place, column in numbers.items():
        values = np.where(np.isfinite(column), column, -np.inf)
        least = np.partition(values, -CARDS)[-CARDS] if len(values) > CARDS else -np.inf
        few = np.flatnonzero((values >= least) & np.isfinite(values))
        best = few[np.argsort(-values[few], kind="stable")[:CARDS]]
        found += [(place, int(at), float(column[at])) for at in best]
    return sorted(found, key=lambda entry: -entry[2])[:CARDS]


def _neuron(index: Index, shard: Shard, neuron: int, number: float, lens: str) -> NeuronCard:
    ids = first_tokens(index, shard, "ff_value", np.array([neuron]), lens, TOKENS)[0]
    return {
        "layer": shard.layer,
        "neuron": neuron,
        "number": number,
        "tokens": token_views(index.tokens, ids.tolist()),
    }


def _head(index: Index, layer: int, matrix: str, head: int, number: float, lens: str, preset: str) -> HeadCard:
    pairs = pairs_view(index, matrix, layer, head, lens, preset, PAIRS).pairs
    return {"layer": layer, "head": head, "matrix": matrix, "number": number, "pairs": pairs}
