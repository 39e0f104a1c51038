"""Choose what to read first in a model: its clearest neurons and heads, and neurons whose key and value have similar
lists. readable.py decides which tokens people can read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import Annotated, Any, NotRequired, TypeVar

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.kept_tokens import first_tokens
from lexiscope.app.lists.pair_lists import stored_pairs
from lexiscope.app.lists.readable import INDISTINCT, FreshWords, Readable, readable
from lexiscope.app.lists.view import Token, TokenPair, tokens_of
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import MATRICES

CARDS, CARD_TOKENS, CARD_PAIRS = 8, 6, 3  # how many cards of the clearest lists are shown; tokens, or pairs, of each
CARD_CANDIDATES = 400  # the cards are chosen from so many largest numbers
# Under another lens or preset, pairs of a word with itself and of rare pieces of words come first.
HEAD_LENS, HEAD_PRESET = "cosine", "words"
NAMEABLE = 0.4  # least readability: of rated heads (benchmarks/ratings.json), 23 of the 27 above it could be named
# a head is shown only if so many of its pairs hold so many different words at each side
HEAD_PAIRS, HEAD_WORDS = 50, 10
CLEAREST = 3  # the home page takes one of so many clearest heads: pairs of others are less plainly related


CARD_OF_DIFFERENCE: Any = Field(description="Only of a difference; the change is |Δ| / |base|")


class NeuronCard(TypedDict):
    layer: int
    neuron: int
    number: float  # the coherence or similarity by which the card was chosen
    end: str  # the end of the value whose first tokens the card shows: the one with the larger similarity
    tokens: list[Token]
    kind: Annotated[NotRequired[str], CARD_OF_DIFFERENCE]  # ff_key or ff_value: the vector whose tokens the card shows
    change: Annotated[NotRequired[float | None], CARD_OF_DIFFERENCE]


class HeadCard(TypedDict):
    layer: int
    head: int
    matrix: str
    lens: str  # the lens (dot or cosine) of number and pairs
    preset: str
    number: float  # readability
    pairs: list[TokenPair]  # the first pairs that repeat no word
    change: Annotated[NotRequired[float | None], CARD_OF_DIFFERENCE]


At = TypeVar("At")
Card = TypeVar("Card")
NeuronCards = tuple[NeuronCard, ...]
Cards = tuple[NeuronCards | None, NeuronCards | None, tuple[HeadCard, ...] | None]  # None if it is not stored


def worth_reading(index: Index, shards: Mapping[int, Shard], lens: str, hubs: frozenset[int] = frozenset()) -> Cards:
    """Choose the neurons whose value lists have the most similar tokens, those whose key and value have the most
    similar lists, and the most readable heads, of those that people can read. The given hubs (tokens in very many
    lists) are left out of the tokens shown."""
    values, agreeing = "ff_value" in index.stored.kinds, index.stored.similarity

    def coherence(layer: int, end: str) -> Array:
        return shards[layer].all_coherences("ff_value", lens, end)

    def neurons(numbers: Mapping[tuple[int, str], Array]) -> NeuronCards:
        """Make cards (entries of the model's page) of the neurons with the largest numbers, which are given by layer
        and by the end of the value's list that is shown."""
        words = FreshWords(readable(index))
        wanted = {at: np.where(coherence(*at) < INDISTINCT, column, np.nan) for at, column in numbers.items()}
        return largest_cards(
            lambda at, n, number: _neuron(index, words, shards[at[0]], n, number, lens, at[1], hubs), wanted
        )

    coherences = {(layer, "top"): coherence(layer, "top") for layer in shards if values}
    similarities = {
        at: column
        for layer, shard in shards.items()
        if agreeing
        for at, column in _larger_ends(layer, shard.all_similarities("ff", lens))
    }
    return (
        neurons(coherences) if values else None,
        neurons(similarities) if agreeing else None,
        _heads(index, shards) if index.stored.pairs else None,
    )


def head_lens(index: Index) -> str:
    return HEAD_LENS if HEAD_LENS in index.stored.lenses else index.stored.lens


def _heads(index: Index, shards: Mapping[int, Shard]) -> tuple[HeadCard, ...]:
    words, lens = FreshWords(readable(index)), head_lens(index)
    numbers: dict[tuple[int, str], Array] = {}
    for (layer, shard), matrix in product(shards.items(), MATRICES):
        of_heads = shard.heads.all_readabilities(matrix, lens, HEAD_PRESET)
        numbers[layer, matrix] = np.where(of_heads >= NAMEABLE, of_heads, np.nan)
    return largest_cards(lambda group, head, value: head_card(index, words, *group, head, value, lens), numbers)


def richest(index: Index, cards: Sequence[HeadCard]) -> HeadCard | None:
    """Return the head, of the clearest ones, whose pairs hold the most different words."""
    return max(
        cards[:CLEAREST], key=lambda card: min(map(len, _sides(readable(index), _pairs(index, card)))), default=None
    )


def largest_cards(make: Callable[[At, int, float], Card | None], numbers: Mapping[At, Array]) -> tuple[Card, ...]:
    """Make cards (entries of the model's page) of the largest numbers for which `make` does not return None; a damaged
    layer is skipped."""

    def readable_cards() -> Iterator[Card]:
        for entry in _largest(numbers):
            with suppress(IndexFault):
                if card := make(*entry):
                    yield card

    return tuple(islice(readable_cards(), CARDS))


def _largest(numbers: Mapping[At, Array]) -> list[tuple[At, int, float]]:
    """Return the largest of all numbers, each with its group and its index in the group; undefined numbers are left
    out."""
    entries: list[tuple[At, int, float]] = []
    for group, column in numbers.items():
        values = np.where(np.isfinite(column), column, -np.inf)
        least = np.partition(values, -CARD_CANDIDATES)[-CARD_CANDIDATES] if len(values) > CARD_CANDIDATES else -np.inf
        few = np.flatnonzero((values >= least) & np.isfinite(values))
        entries += [(group, at, value) for at, value in zip(few.tolist(), column[few].tolist(), strict=True)]
    return sorted(entries, key=lambda entry: -entry[2])[:CARD_CANDIDATES]


def _larger_ends(layer: int, similarities: Array) -> Iterator[tuple[tuple[int, str], Array]]:
    """Split similarities of n keys with both ends of their values' lists, (n, 2), into a column for the top and one for
    the bottom. In each, neurons that are more similar at the other end are NaN."""
    top, bottom = similarities.T
    yield (layer, "top"), np.where(top >= bottom, top, np.nan)
    yield (layer, "bottom"), np.where(bottom > top, bottom, np.nan)


def _neuron(
    index: Index, fresh: FreshWords, shard: Shard, neuron: int, number: float, lens: str, end: str, hubs: frozenset[int]
) -> NeuronCard | None:
    """Make the card of a neuron if people can read the first tokens at this end of its value's list, and they are not
    mostly words of earlier cards; otherwise return None."""
    (ids,) = first_tokens(shard, "ff_value", np.array([neuron]), lens, CARD_TOKENS, hubs, end)
    if not fresh.take_if_readable(ids):
        return None
    tokens = tokens_of(index.tokens, ids)
    return {"layer": shard.layer, "neuron": neuron, "number": number, "end": end, "tokens": tokens}


def head_card(
    index: Index, fresh: FreshWords, layer: int, matrix: str, head: int, number: float, lens: str
) -> HeadCard | None:
    card: HeadCard = {
        "layer": layer, "head": head, "matrix": matrix, "lens": lens, "preset": HEAD_PRESET,
        "number": number, "pairs": [],
    }  # fmt: skip
    listed = _pairs(index, card)
    pairs = [pair for pair in listed if _are_different(fresh.words, pair)]
    if 2 * len(pairs) < len(listed) or min(map(len, _sides(fresh.words, pairs))) < HEAD_WORDS:
        return None  # a head that links forms of words has few other pairs, and these are not telling
    card["pairs"], stems = without_repetition(fresh.words, pairs)
    return card if len(card["pairs"]) == CARD_PAIRS and fresh.take(stems) else None


def _are_different(words: Readable, pair: TokenPair) -> bool:
    """Return True if the two tokens of a pair are different words, not two forms of one."""
    stems = words.stems((pair["from"]["id"], pair["to"]["id"]))
    return len(stems) == 2 and not stems[0].startswith(stems[1]) and not stems[1].startswith(stems[0])


def _pairs(index: Index, card: HeadCard) -> list[TokenPair]:
    where = card["matrix"], card["layer"], card["head"], card["lens"], card["preset"]
    return stored_pairs(index, *where, HEAD_PAIRS).top


def _sides(words: Readable, pairs: Sequence[TokenPair]) -> tuple[set[str], set[str]]:
    """Return the words on the first side of the pairs, and those on the second."""
    return set(words.stems(p["from"]["id"] for p in pairs)), set(words.stems(p["to"]["id"] for p in pairs))


def without_repetition(words: Readable, pairs: Sequence[TokenPair]) -> tuple[list[TokenPair], list[str]]:
    """Return the first pairs that repeat no word, and the words in them."""
    chosen: list[TokenPair] = []
    stems: list[str] = []
    for pair in pairs:
        ends = words.stems((pair["from"]["id"], pair["to"]["id"]))
        if len(ends) == 2 and not {*ends} & {*stems} and len(chosen) < CARD_PAIRS:
            chosen.append(pair)
            stems += ends
    return chosen, stems
