"""Find a token, or the words of a search, in the lists of all layers that are ready and whole."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup.layers import DamagedLayer, Layers
from lexiscope.precompute.index.lookup.pairs import PairListings, PairMatches, pair_listings, pair_matches
from lexiscope.precompute.index.lookup.vectors import (
    VectorListings,
    VectorMatches,
    numbers_by_layer,
    vector_listings,
    vector_matches,
)
from lexiscope.precompute.index.stored import position
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import MATRICES, PRESETS

T = TypeVar("T")

EVERYTHING = slice(0, None)  # the part of what was found that is read, unless a caller wants less


@dataclass(frozen=True, slots=True, eq=False)
class TokenLookup:
    vectors: dict[tuple[str, str], VectorListings]  # by kind and end
    pairs: PairListings
    missing: tuple[int, ...]  # layers that are not built or damaged, and may list the token, too


@dataclass(frozen=True, slots=True, eq=False)
class WordsLookup:
    vectors: VectorMatches
    pairs: PairMatches
    missing: tuple[int, ...]


def look_up_token(
    index: Index,
    token: int,
    lens: str,
    preset: str,
    kinds: Collection[str],
    matrices: Collection[str] = MATRICES,
    vector_part: slice = EVERYTHING,
    pair_part: slice = EVERYTHING,
    first: int = 0,
) -> TokenLookup:
    """Find the vectors of these kinds that list a token, and the head pairs of these matrices that hold it; kinds and
    matrices that are not stored give none.

    Only one part of what is found for each kind and end, and for each matrix, is read, in the order of rank, then
    falling |score|. `first` is how many of the first tokens are returned with each list of a vector.
    """
    index.tokens.raw(token)  # raises NotFound if there is no such token
    kinds, matrices = _stored(index, kinds, matrices)
    lens_at, preset_at = position("lens", lens, index.stored.lenses), position("preset", preset, PRESETS)

    def look(layers: Layers) -> tuple[dict[tuple[str, str], VectorListings], PairListings]:
        vectors = vector_listings(layers, token, lens_at, kinds, vector_part, first) if kinds else {}
        return vectors, pair_listings(layers, token, lens_at, preset_at, matrices, pair_part)

    (vectors, pairs), missing = over_layers(index, look)
    return TokenLookup(vectors, pairs, missing)


def look_up_words(
    index: Index,
    words: Sequence[Sequence[int]],
    lens: str,
    kinds: Collection[str],
    matrices: Collection[str] = MATRICES,
    vector_part: slice = EVERYTHING,
    pair_part: slice = EVERYTHING,
    first: int = 0,
) -> WordsLookup:
    """Find the vectors that list every word, and the head pairs that hold the one word or, of two words, one at each
    side.

    A word is given as the tokens that stand for it. More than two words, or a word without tokens, give no pairs.
    `first` is how many of the first tokens are returned with each list of a vector.
    """
    lens_at = position("lens", lens, index.stored.lenses)
    kinds, matrices = _stored(index, kinds, matrices)
    known = bool(words) and all(words)

    def look(layers: Layers) -> tuple[VectorMatches, PairMatches]:
        vectors = vector_matches(layers, words if known else (), lens_at, kinds, vector_part, first)
        pairs = pair_matches(layers, words if known and len(words) <= 2 else (), lens_at, matrices, pair_part)
        return vectors, pairs

    (vectors, pairs), missing = over_layers(index, look)
    return WordsLookup(vectors, pairs, missing)


def look_up_in_layer(
    index: Index, layer: int, token: int, lens: str, kinds: Collection[str]
) -> dict[tuple[str, str], VectorListings]:
    """Find the vectors of one layer that list a token, by kind and end; raise ShardDamaged if the inverted lists of the
    layer cannot be right."""
    index.tokens.raw(token)  # raises NotFound if there is no such token
    shard, lens_at = index.shard(layer), position("lens", lens, index.stored.lenses)
    try:
        return vector_listings(Layers({layer: shard}, index.stored), token, lens_at, kinds, EVERYTHING)
    except DamagedLayer:
        raise shard.damage(f"its inverted lists of token {token} point at what is not there") from None


def count_neurons(index: Index, token: int, lens: str) -> Array:
    """Count the neurons of each layer, (n_layers,), whose key or value lists a token at either end."""
    kinds, _ = _stored(index, ("ff_key", "ff_value"), ())
    lens_at = position("lens", lens, index.stored.lenses)
    return over_layers(index, lambda layers: numbers_by_layer(layers, token, lens_at, kinds))[0]


def over_layers(index: Index, look: Callable[[Layers], T]) -> tuple[T, tuple[int, ...]]:
    """Return what `look` finds in the layers that are built and whole, and the numbers of the other layers.

    If a layer turns out to be damaged, or its file disappears meanwhile, the other layers are searched again without
    it.
    """
    shards = {shard.layer: shard for shard in index.usable_shards()}
    while True:
        try:
            result = look(Layers(shards, index.stored))
        except DamagedLayer as damaged:
            del shards[damaged.layer]
        except IndexFault:
            usable = {shard.layer for shard in index.usable_shards()}
            if shards.keys() <= usable:
                raise
            shards = {layer: shard for layer, shard in shards.items() if layer in usable}
        else:
            return result, tuple(layer for layer in range(index.shape.n_layers) if layer not in shards)


def _stored(index: Index, kinds: Collection[str], matrices: Collection[str]) -> tuple[list[str], list[str]]:
    """Return those of these kinds and matrices that the index stores."""
    stored = index.stored
    return [kind for kind in kinds if kind in stored.kinds], [name for name in matrices if name in stored.matrices]
