"""Decide which tokens a newcomer can read: whole words of three letters or more that the model has learned."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from lexiscope.app.lists.find_tokens import TokenSearch, token_search
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.index.tokens import TokenTable, whole_words

UNLEARNED = 0.5  # A token counts as learned if its centred embedding has at least this many times the median length.
# A token in fewer lists than this many times the median was not learned; one in more lists says little.
RARE, EVERYWHERE = 0.1, 20
STEM = 5  # words with the same first letters, so many, count as one, as forms of one word do
# Tokens of a list with at least this coherence were not learned, so that the model cannot tell them apart.
INDISTINCT = 0.75
DIFFERENT = 3  # how many different words the first tokens of a list must have: fewer are forms of one word
SHORTEST = 3  # fewest letters of a word, in scripts that need as many

_cache: "WeakKeyDictionary[Index, Readable]" = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Readable:
    tokens: TokenTable
    search: TokenSearch
    learned: Array  # (d_vocab,) bool
    whole: Array  # (d_vocab,) bool: words that do not continue other words, and all words in other scripts
    known: dict[int, bool] = field(default_factory=dict)  # results so far: whether a token is a word

    def stem(self, token: int) -> str | None:
        """Return the first letters of a word; None if the token is no word, is a part of one, or has not been
        learned."""
        text = self.tokens.texts[token].strip()
        word = self.tokens.surface(text)
        letters = word.replace("'", "").replace("’", "").replace("-", "")
        is_code = text[1:] != word[1:] and not text.isupper()  # a name of program code, such as nameOfThing
        is_short = len(letters) < SHORTEST and letters.isascii()
        if not letters.isalpha() or is_short or is_code or not self.learned[token] or self.search.is_piece(token):
            return None
        return letters[:STEM]

    def stems(self, tokens: Iterable[int]) -> list[str]:
        """Return the first letters (stem) of each token that is a word."""
        return [stem for stem in map(self.stem, tokens) if stem]

    def are_lists_of_words(self, tokens: Array) -> Array:
        """Return for each list, given the first tokens of lists (n, first), whether two thirds of them are words and
        half are whole words: (n,) bool."""
        different, places = np.unique(tokens, return_inverse=True)
        for token in different.tolist():
            if token not in self.known:
                self.known[token] = self.stem(token) is not None
        words = np.array([self.known[token] for token in different.tolist()], bool)[places].reshape(tokens.shape)
        first = tokens.shape[1]
        enough: Array = (3 * words.sum(axis=1) >= 2 * first) & (2 * self.whole[tokens].sum(axis=1) >= first)
        return enough


class FreshWords:
    """Remember the words of the lists chosen so far, so that the next list has others."""

    def __init__(self, words: Readable) -> None:
        self.words = words
        self._seen: set[str] = set()

    def take(self, stems: Sequence[str]) -> bool:
        """Remember these stems (first letters of words) and return True, if at least half of them are new."""
        different = set(stems)
        if 2 * len(different & self._seen) > len(different):
            return False
        self._seen |= different
        return True

    def take_if_readable(self, tokens: Sequence[int]) -> bool:
        """Remember the words of a list's first tokens and return True, if two thirds of the tokens are words, half are
        whole words, and enough of them are new and different."""
        stems = self.words.stems(tokens)
        enough = 3 * len(stems) >= 2 * len(tokens) and 2 * self.words.whole[[*tokens]].sum() >= len(tokens)
        return bool(enough) and len(set(stems)) >= DIFFERENT and self.take(stems)

    def take_if_all_words(self, tokens: Sequence[int]) -> bool:
        """Remember the words of these tokens and return True, if all of the tokens are words."""
        return len(self.words.stems(tokens)) == len(tokens) and self.take_if_readable(tokens)


def readable(index: Index) -> Readable:
    """Return which words of an index people can read; the result is kept as long as the index."""
    if (words := _cache.get(index)) is None:
        whole = whole_words([*index.tokens]) | ~np.array([text.isascii() for text in index.tokens.texts])
        words = _cache[index] = Readable(index.tokens, token_search(index.tokens), _learned(index), whole)
    return words


def _learned(index: Index) -> Array:
    """Return whether each token was learned, (d_vocab,): judged by the length of its embedding, by that of its
    unembedding if that is another matrix, and by how many lists of vectors hold the token."""
    learned = np.ones(index.shape.d_vocab, bool)
    for norms in index.centred_norms:
        learned &= norms >= UNLEARNED * np.median(norms)
    if index.stored.difference:  # in a difference, the words that the fine-tuning was about are in very many lists
        return learned
    lists = np.zeros(index.shape.d_vocab, np.int64)
    for layer in index.layers:
        with suppress(IndexFault):
            lists += index.shard(layer).lists_of_tokens(index.stored.lens, "top")
    usual = np.median(lists)
    learned &= (lists >= RARE * usual) & (lists <= EVERYWHERE * usual)
    return learned
