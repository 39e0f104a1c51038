"""Read the first words of a parameter, which are shown beside its name in tables of many parameters: the first tokens
of a vector's list, or the first pair of a head that people can read."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field

from lexiscope.app.lists.difference import head_changes
from lexiscope.app.lists.kept_tokens import entries_to_read, first_kept, without_pairs
from lexiscope.app.lists.readable import readable
from lexiscope.app.lists.view import Token, TokenPair, token_pairs
from lexiscope.app.lists.worth_reading import HEAD_PRESET, head_lens, without_repetition
from lexiscope.precompute.errors import IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.index.tokens import TokenTable

FIRST_WORDS = 4  # how many tokens of a vector are shown
FIRST_PAIR: Any = Field(
    description="What the head is about: its first pair of two different words, lens cosine, preset words"
)
PAIRS_LOOKED_AT = 20  # how many pairs of a head are searched for a readable one; if there is none, the first is shown

_first_pairs: WeakKeyDictionary[Index, dict[tuple[str, int], list[list[TokenPair]]]] = WeakKeyDictionary()


def to_read(left_out: frozenset[int]) -> int:
    """Return how many tokens of each list to read, so that enough remain when these are left out."""
    return entries_to_read(left_out, FIRST_WORDS)


def token_rows(tokens: TokenTable, ids: Array, left_out: frozenset[int]) -> list[list[Token]]:
    """Return the first tokens of each list (n, to_read), without those that are left out. Equal tokens are one
    object, because the file of all lists of a frequent token has very many rows."""
    texts = tokens.texts
    known: dict[int, Token] = {token: {"id": token, "token": texts[token]} for token in np.unique(ids).tolist()}
    return [[known[token] for token in row] for row in first_kept(ids.tolist(), left_out, FIRST_WORDS)]


def first_pair(
    index: Index, matrix: str, layer: int, head: int, left_out: frozenset[int] = frozenset()
) -> TokenPair | None:
    """Return the first pair of two different words in a head's most readable list of pairs, without the tokens that
    are left out. The pairs of all heads of a layer are read once.

    Return None if pairs are not stored or the layer is missing.
    """
    known = _first_pairs.setdefault(index, {})
    if (pairs := known.get((matrix, layer))) is None:
        try:
            pairs = known[matrix, layer] = _read(index, matrix, layer)
        except (IndexFault, NotFound):
            return None
    return next(without_pairs(pairs[head], left_out), None)


def _read(index: Index, matrix: str, layer: int) -> list[list[TokenPair]]:
    """Read the pairs of each head of a layer, those that people can read first."""
    ids, scores, counts = index.shard(layer).heads.first_pairs(matrix, head_lens(index), HEAD_PRESET, PAIRS_LOOKED_AT)
    words, pairs = readable(index), []
    for of_head, their_scores, count in zip(ids.tolist(), scores.tolist(), counts.tolist(), strict=True):
        listed = token_pairs(index.tokens, of_head[:count], their_scores[:count])
        pairs.append([*without_repetition(words, listed)[0], *listed])
    if index.stored.difference:  # a head that did not change has no pairs worth showing
        changes = head_changes(index.shard(layer), matrix).tolist()
        pairs = [of_head if change else [] for of_head, change in zip(pairs, changes, strict=True)]
    return pairs
