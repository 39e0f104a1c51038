"""Random words have the frequency of the tokens they stand for, and are the same each time."""

import numpy as np
import pytest

from lexiscope.precompute.live.by_words.random_words import draw_words, frequency_bands

WORDS = np.arange(5, 40_000, 2)  # 19,998 words; even ids are no words
EDGES = [0, 256, 1024, 4096, 16384, len(WORDS)]


@pytest.mark.parametrize(
    ("token", "band"),
    [
        (0, 0), (5, 0), (int(WORDS[255]), 0), (int(WORDS[256]), 1), (int(WORDS[256]) - 1, 1), (int(WORDS[1023]), 1),
        (int(WORDS[5000]), 3), (int(WORDS[-1]), 4), (10**6, 4),
    ],
)  # fmt: skip
def test_a_token_has_the_band_of_the_words_around_its_id(token: int, band: int) -> None:
    assert frequency_bands(WORDS, [token]) == (band,)


def test_drawn_words_are_of_the_bands_that_were_asked_for() -> None:
    bands = (3, 0, 3, 4, 1, 2)
    ranks = np.searchsorted(WORDS, drawn := draw_words(WORDS, bands, 200))
    assert drawn.shape == (200, 6)
    assert np.isin(drawn, WORDS).all()
    for column, band in enumerate(bands):
        assert (ranks[:, column] >= EDGES[band]).all()
        assert (ranks[:, column] < EDGES[band + 1]).all()
        assert len(np.unique(drawn[:, column])) > 50  # they are random


def test_a_draw_holds_no_word_twice_and_is_the_same_each_time() -> None:
    drawn = draw_words(WORDS, (0,) * 200, 5, seed=3)
    assert all(len(set(row)) == 200 for row in drawn.tolist())
    assert np.array_equal(drawn, draw_words(WORDS, (0,) * 200, 5, seed=3))
    assert not np.array_equal(drawn, draw_words(WORDS, (0,) * 200, 5, seed=4))


@pytest.mark.parametrize("n_words", [1, 3, 256, 511, 512, 1279, 1280])
def test_every_band_of_a_small_vocabulary_has_words(n_words: int) -> None:
    words = np.arange(10, 10 + n_words)
    bands = frequency_bands(words, [0, *words.tolist(), 10**6])
    assert list(bands) == sorted(bands)
    assert all(bands.count(band) >= min(n_words, 256) for band in set(bands))
    drawn = draw_words(words, bands[-4:], 20)
    assert np.isin(drawn, words).all()  # words are repeated where there are too few
