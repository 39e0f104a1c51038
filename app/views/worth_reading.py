"""What is worth reading first in a model: its clearest neurons and heads, and keys and values that agree.
Which tokens people can read is for readable.py."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeVar

import numpy as np
from typing_extensions import TypedDict

from app.views.pairs import pairs_view
from app.views.readable import SAME, FreshWords, Readable, readable
from app.views.tokens import Token, TokenPair, tokens_of
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.index.shard_reader import Array, Shard
from precompute.shape import MATRICES

CARDS, TOKENS, PAIRS = 8, 6, 3
LOOKED_AT = 400  # of the largest numbers: there the cards are found, or there are fewer
HEAD_LENS, HEAD_PRESET = "cosine", "words"  # with others, pairs of a word with itself and of rare pieces come first
HEAD_PAIRS, HEAD_WORDS = 50, 10  # in so many pairs, a head worth reading has so many words at each side
CLEAREST = 3  # heads, of which the home page shows one: below them pairs are less plainly related
STRONG = 0.75  # of the heads have a weaker first pair: what is weak is mostly chance


class NeuronCard(TypedDict):
    layer: int
    neuron: int
    number: float  # what it was chosen by: coherence or similarity
    tokens: list[Token]


class HeadCard(TypedDict):
    layer: int
    head: int
    matrix: str
    lens: str  # of number and pairs, whichever the maps are of
    preset: str
    number: float  # coherence
    pairs: list[TokenPair]  # the first that repeat no word


At = TypeVar("At")
Card = TypeVar("Card")
NeuronCards = tuple[NeuronCard, ...]
Cards = tuple[NeuronCards | None, NeuronCards | None, tuple[HeadCard, ...] | None]  # None: not stored


def worth_reading(index: Index, shards: Mapping[int, Shard], lens: str) -> Cards:
    """Most coherent values, most alike keys and values, most coherent heads, of those that people can read."""
    values, agreeing = "ff_value" in index.stored.kinds, index.stored.similarity
    coherences = {layer: shard.all_coherences("ff_value", lens) for layer, shard in shards.items() if values}
    similarities = {layer: shard.all_similarities(lens) for layer, shard in shards.items() if agreeing}
    learned = {layer: np.where(column < SAME, 0, np.nan) for layer, column in coherences.items()}

    def neurons(numbers: Mapping[int, Array]) -> NeuronCards:
        words = FreshWords(readable(index))
        wanted = {layer: column + learned[layer] for layer, column in numbers.items()}
        return _cards(lambda layer, n, value: _neuron(index, words, shards[layer], n, value, lens), wanted)

    return (
        neurons(coherences) if values else None,
        neurons(similarities) if agreeing else None,
        _heads(index, shards) if index.stored.pairs else None,
    )


def head_lens(index: Index) -> str:
    return HEAD_LENS if HEAD_LENS in index.stored.lenses else index.stored.lens


def _heads(index: Index, shards: Mapping[int, Shard]) -> tuple[HeadCard, ...]:
    words, lens = FreshWords(readable(index)), head_lens(index)
    numbers = _head_numbers(shards, lens)
    return _cards(lambda group, head, value: _head(index, words, *group, head, value, lens), numbers)


def richest(index: Index, cards: Sequence[HeadCard]) -> HeadCard | None:
    """The one of the clearest heads that has the most to say: whose pairs hold the most words."""
    return max(
        cards[:CLEAREST], key=lambda card: min(map(len, _sides(readable(index), _pairs(index, card)))), default=None
    )


def _cards(make: Callable[[At, int, float], Card | None], numbers: Mapping[At, Array]) -> tuple[Card, ...]:
    """Cards of the largest numbers that make one; a damaged layer does not take the page with it."""

    def readable_cards() -> Iterator[Card]:
        for entry in _largest(numbers):
            with suppress(IndexFault):
                if card := make(*entry):
                    yield card

    return tuple(islice(readable_cards(), CARDS))


def _largest(numbers: Mapping[At, Array]) -> list[tuple[At, int, float]]:
    """The largest of all, with the group and the number of each; what is undefined does not count."""
    entries: list[tuple[At, int, float]] = []
    for group, column in numbers.items():
        values = np.where(np.isfinite(column), column, -np.inf)
        least = np.partition(values, -LOOKED_AT)[-LOOKED_AT] if len(values) > LOOKED_AT else -np.inf
        few = np.flatnonzero((values >= least) & np.isfinite(values))
        entries += [(group, at, value) for at, value in zip(few.tolist(), column[few].tolist(), strict=True)]
    return sorted(entries, key=lambda entry: -entry[2])[:LOOKED_AT]


def _neuron(index: Index, fresh: FreshWords, shard: Shard, neuron: int, number: float, lens: str) -> NeuronCard | None:
    """The card of a neuron, if two thirds of its first tokens are words."""
    ids = shard.first_ids("ff_value", np.array([neuron]), lens, TOKENS)[0].tolist()
    if not fresh.take_if_readable(ids):
        return None
    return {"layer": shard.layer, "neuron": neuron, "number": number, "tokens": tokens_of(index.tokens, ids)}


def _head_numbers(shards: Mapping[int, Shard], lens: str) -> dict[tuple[int, str], Array]:
    """The coherence of every head with a strong first pair, by layer and matrix."""
    coherences: dict[tuple[int, str], Array] = {}
    for matrix in MATRICES:
        first = {layer: shard.all_best_scores(matrix, lens, HEAD_PRESET) for layer, shard in shards.items()}
        least = np.quantile([*first.values()], STRONG) if first else 0
        for layer, shard in shards.items():
            coherence = shard.all_pair_coherences(matrix, lens, HEAD_PRESET)
            coherences[layer, matrix] = np.where(first[layer] >= least, coherence, np.nan)
    return coherences


def _head(
    index: Index, fresh: FreshWords, layer: int, matrix: str, head: int, number: float, lens: str
) -> HeadCard | None:
    card: HeadCard = {
        "layer": layer, "head": head, "matrix": matrix, "lens": lens, "preset": HEAD_PRESET,
        "number": number, "pairs": [],
    }  # fmt: skip
    pairs = _pairs(index, card)
    if min(map(len, _sides(fresh.words, pairs))) < HEAD_WORDS:
        return None
    card["pairs"], stems = without_repetition(fresh.words, pairs)
    return card if len(card["pairs"]) == PAIRS and fresh.take(stems) else None


def _pairs(index: Index, card: HeadCard) -> list[TokenPair]:
    where = card["matrix"], card["layer"], card["head"], card["lens"], card["preset"]
    return pairs_view(index, *where, HEAD_PAIRS).top


def _sides(words: Readable, pairs: Sequence[TokenPair]) -> tuple[set[str], set[str]]:
    """The words in each column."""
    return set(words.stems(p["from"]["id"] for p in pairs)), set(words.stems(p["to"]["id"] for p in pairs))


def without_repetition(words: Readable, pairs: Sequence[TokenPair]) -> tuple[list[TokenPair], list[str]]:
    """The first pairs that repeat no word, and their words."""
    chosen: list[TokenPair] = []
    stems: list[str] = []
    for pair in pairs:
        ends = words.stems((pair["from"]["id"], pair["to"]["id"]))
        if len(ends) == 2 and not {*ends} & {*stems} and len(chosen) < PAIRS:
            chosen.append(pair)
            stems += ends
    return chosen, stems
