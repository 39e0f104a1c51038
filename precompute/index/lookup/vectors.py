"""Find the vectors that list a token, or a token of every word, over all layers at once, best rank first."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from lexiscope.precompute.index.lookup.layers import Layers, check, rank_parts, read_entries, token_slices
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS

_UNLISTED = np.iinfo(np.uint32).max  # the rank of a token in a list that does not hold it


@dataclass(frozen=True, slots=True, eq=False)
class VectorListings:
    """Vectors of one kind that list a token at one end, as columns."""

    total: int  # how many there are; the columns hold a part of them
    by_layer: Array  # how many there are in each layer of the model
    layer: Array
    index: Array  # number of the vector within its kind
    rank: Array  # from 0
    score: Array
    first: Array  # (n, first): the first tokens of its list


@dataclass(frozen=True, slots=True, eq=False)
class VectorMatches:
    """Vectors that list every word, as columns."""

    total: int
    layer: Array
    kind: Array  # index into Stored.kinds
    index: Array
    end: Array
    ranks: Array  # (n, words): the best rank of each word, from 0
    tokens: Array  # (n, words): the token that has this rank
    first: Array  # (n, first): the first tokens of its list


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """Entries of lists of vectors; the field `vector` numbers all vectors of a layer, kind after kind."""

    layer: Array
    end: Array
    vector: Array
    rank: Array

    def at(self, chosen: Array | slice) -> "_Entries":
        return _Entries(self.layer[chosen], self.end[chosen], self.vector[chosen], self.rank[chosen])


def vector_listings(
    layers: Layers, token: int, lens: int, kinds: Collection[str], part: slice, first: int = 0
) -> dict[tuple[str, str], VectorListings]:
    """Return by kind and end which lists hold the token: the chosen part of them, ordered by rank, falling |score|,
    layer and index, with the first tokens of each of these lists."""
    stored = layers.stored
    entries = _entries(layers, token, lens)
    lists = _kinds(stored)[0][entries.vector] * len(ENDS) + entries.end
    wanted = [kind in kinds for kind in stored.kinds for _ in ENDS]
    parts = rank_parts(lists, entries.rank, layers.stored.k, wanted, part)
    n_layers, n_lists = stored.shape.n_layers, len(wanted)
    by_layer = np.bincount(lists * np.intp(n_layers) + entries.layer, minlength=n_lists * n_layers).reshape(n_lists, -1)
    entries = entries.at(parts.chosen)
    score = _stored(layers, lens, "scores", entries)
    check(np.isfinite(score), entries.layer)
    index = _split(stored, entries.vector)[1]
    sections = parts.sections(-np.abs(score), entries.layer, index)
    chosen = entries.at(np.concatenate(sections))
    _check_listed(layers, lens, chosen, token)
    first_ids = np.split(_first_ids(layers, lens, chosen, first), np.cumsum([*map(len, sections)])[:-1])
    of_lists = parts.totals, by_layer, sections, first_ids
    lists_of_kinds = zip(itertools.product(stored.kinds, ENDS), *of_lists, strict=True)
    return {
        (kind, end): VectorListings(
            total, counts, entries.layer[section], index[section], entries.rank[section], score[section], first_tokens
        )
        for (kind, end), total, counts, section, first_tokens in lists_of_kinds
        if kind in kinds
    }


def numbers_by_layer(layers: Layers, token: int, lens: int, kinds: Collection[str]) -> Array:
    """Count in each layer, (n_layers,), the different numbers of the vectors of these kinds that list the token at
    either end."""
    where, most = token_slices(layers, token, lens, "inverted"), layers.stored.n_vectors
    vector, layer = where.read("inverted.vector"), where.layer[where.numbers()]
    check(vector < most, layer)
    starts = _kinds(layers.stored)[1].tolist()
    numbers = [np.empty(0, np.int64)]
    for start, end in (starts[at : at + 2] for at in map(layers.stored.kinds.index, kinds)):
        chosen = (vector >= start) & (vector < end)
        numbers.append(layer[chosen].astype(np.int64) * most + vector[chosen] - start)
    return np.bincount(np.unique(np.concatenate(numbers)) // most, minlength=layers.stored.shape.n_layers)


def vector_matches(
    layers: Layers, words: Sequence[Sequence[int]], lens: int, kinds: Collection[str], part: slice, first: int = 0
) -> VectorMatches:
    """Return a part of the vectors that list every word, in this order: sum of the best ranks, upper layers first,
    kind, index, end; and the first tokens of each list."""
    keys, ranks, tokens = _common_lists(layers, words, lens, kinds)
    which, vector = np.divmod(keys, layers.stored.n_vectors)
    end, nth = np.divmod(which, max(1, len(layers.shards)))
    layer = np.array([*layers.shards], np.int64)[nth]
    order = np.lexsort((end, vector, -layer, ranks.sum(axis=1)))[part]
    layer, vector, end, ranks, tokens = layer[order], vector[order], end[order], ranks[order], tokens[order]
    for rank, token in zip(ranks.T, tokens.T, strict=True):  # a rank and a token for each word
        _check_listed(layers, lens, _Entries(layer, end, vector, rank), token)
    kind, index = _split(layers.stored, vector)
    first_ids = _first_ids(layers, lens, _Entries(layer, end, vector, np.zeros_like(layer)), first)
    return VectorMatches(len(keys), layer, kind, index, end, ranks, tokens, first_ids)


def _common_lists(
    layers: Layers, words: Sequence[Sequence[int]], lens: int, kinds: Collection[str]
) -> tuple[Array, Array, Array]:
    """Return the numbers of the lists that hold all words, counted by end, layer and vector; and for each word its best
    rank in each list, and the token that has this rank."""
    of_kinds = np.isin(_kinds(layers.stored)[0], [layers.stored.kinds.index(kind) for kind in kinds])
    keys = np.empty(0, np.int64)
    ranks, tokens = (np.empty((0, len(words)), np.uint32) for _ in range(2))
    for column, word in enumerate(words):
        best, whose = _best_ranks(layers, word, lens)
        if not column:
            keys = np.flatnonzero(best != _UNLISTED)
            keys = keys[of_kinds[keys % len(of_kinds)]]
            ranks, tokens = (np.empty((len(keys), len(words)), np.uint32) for _ in range(2))
        held = np.flatnonzero(best[keys] != _UNLISTED)
        keys, ranks, tokens = keys[held], ranks[held], tokens[held]
        ranks[:, column], tokens[:, column] = best[keys], whose[keys]
        if not len(keys):
            break
    return keys, ranks, tokens


def _best_ranks(layers: Layers, word: Sequence[int], lens: int) -> tuple[Array, Array]:
    """Return for every list the best rank that a token of the word has in it, and that token."""
    n_layers, in_layer = len(layers.shards), layers.stored.n_vectors
    nth = np.zeros(layers.stored.shape.n_layers, np.int64)
    nth[[*layers.shards]] = np.arange(n_layers)
    best = np.full(len(ENDS) * n_layers * in_layer, _UNLISTED, np.uint32)
    whose = np.zeros(len(best), np.uint32)
    for token in word:
        entries = _entries(layers, token, lens)
        keys = (entries.end * n_layers + nth[entries.layer]) * in_layer + entries.vector
        better = np.flatnonzero(entries.rank < best[keys])
        best[keys[better]] = entries.rank[better]
        whose[keys[better]] = token
    return best, whose


def _entries(layers: Layers, token: int, lens: int) -> _Entries:
    """Return every entry of a token in the lists of one lens, in this order: end after end, layer after layer, best
    rank first."""
    where = token_slices(layers, token, lens, "inverted")
    vector, rank, number = where.read("inverted.vector"), where.read("inverted.rank"), where.numbers()
    layer = where.layer[number]
    if len(rank) and (vector.max() >= layers.stored.n_vectors or rank.max() >= layers.stored.k):
        check((vector < layers.stored.n_vectors) & (rank < layers.stored.k), layer)
    return _Entries(layer, where.end[number], vector, rank)


@cache
def _kinds(stored: Stored) -> tuple[Array, Array]:
    """Return the kind of every vector of a layer, by its number in Stored.kinds, and where each kind begins."""
    counts = [stored.shape.count(kind) for kind in stored.kinds]
    return np.repeat(np.arange(len(counts), dtype=np.uint8), counts), np.cumsum([0, *counts])


def _split(stored: Stored, vector: Array) -> tuple[Array, Array]:
    """Return the kind of each vector, and its number within the kind."""
    of_vector, starts = _kinds(stored)
    kind = of_vector[vector]
    return kind, vector - starts[kind]


def _stored(layers: Layers, lens: int, name: str, entries: _Entries) -> Array:
    """Return the values of the arrays `{kind}.{name}` of a layer's file for the vectors of these entries."""
    kind, lists = _lists(layers.stored, lens, entries)
    position = lists * layers.stored.k + entries.rank
    return read_entries(layers, [f"{kind}.{name}" for kind in layers.stored.kinds], kind, entries.layer, position)


def _first_ids(layers: Layers, lens: int, entries: _Entries, first: int) -> Array:
    """Return the first tokens of the lists to which these entries belong: (n, first)."""
    if not (first := min(first, layers.stored.k)):
        return np.empty((len(entries.layer), 0), np.uint32)
    kind, lists = _lists(layers.stored, lens, entries)
    names = [f"{kind}.ids" for kind in layers.stored.kinds]
    ids = read_entries(layers, names, kind, entries.layer, lists * layers.stored.k, first).reshape(-1, first)
    known: Array = ids < layers.stored.shape.d_vocab
    check(np.all(known, axis=1), entries.layer)
    return ids


def _lists(stored: Stored, lens: int, entries: _Entries) -> tuple[Array, Array]:
    """Return the kind of each entry, and the number of its list among those of that kind."""
    kind, index = _split(stored, entries.vector)
    return kind, (index * len(stored.lenses) + lens) * len(ENDS) + entries.end


def _check_listed(layers: Layers, lens: int, entries: _Entries, token: int | Array) -> None:
    """Raise DamagedLayer unless each entry's list does hold the token at the rank that the entry gives."""
    check(_stored(layers, lens, "ids", entries) == token, entries.layer)
