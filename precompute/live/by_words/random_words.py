"""Draw random words that are about as frequent as given tokens, to tell what a search by words reaches by chance.

Vocabularies of byte pairs and WordPiece begin with frequent tokens, so a word's rank by id among all whole words stands
for its frequency. Words whose ranks lie between the same two limits (0, 256, 1024, 4096, ...) are in one band, and a
token's random words come from its own band.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FIRST_BAND, BAND_FACTOR = 256, 4  # words of the most frequent band; each limit is so many times the one before

Ids = NDArray[np.int64]


def frequency_bands(word_tokens: Ids, tokens: Sequence[int]) -> tuple[int, ...]:
    """Return the number of each token's band; 0 is the most frequent. `word_tokens` are the ids of all whole words, in
    rising order; a token that is no word is as frequent as the words around its id."""
    ranks = np.searchsorted(word_tokens, tokens)
    return tuple(np.clip(np.searchsorted(_limits(word_tokens), ranks, side="right") - 1, 0, None).tolist())


def draw_words(word_tokens: Ids, bands: Sequence[int], n: int, seed: int = 0) -> Ids:
    """Return n draws of random words, (n, bands): one word of each band, and no word twice in a draw unless a band has
    too few. The same seed gives the same words."""
    random, limits = np.random.default_rng(seed), [*_limits(word_tokens).tolist(), len(word_tokens)]
    drawn = np.empty((n, len(bands)), np.int64)
    for band in sorted(set(bands)):
        words, columns = word_tokens[limits[band] : limits[band + 1]], np.flatnonzero(np.equal(bands, band))
        few = len(words) < len(columns)
        for row in drawn:
            row[columns] = random.choice(words, len(columns), replace=few)
    return drawn


def _limits(word_tokens: Ids) -> Ids:
    """Return the rank at which each band begins. The last band is not smaller than the first: the rarest few words
    belong to the band before."""
    limits, limit = [0], FIRST_BAND
    while limit + FIRST_BAND <= len(word_tokens):
        limits.append(limit)
        limit *= BAND_FACTOR
    return np.array(limits, np.int64)
