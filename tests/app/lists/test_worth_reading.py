"""What is worth reading first: of lists with known words, those that people can read, the best of them first."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.app.lists.readable import INDISTINCT, STEM, readable
from lexiscope.app.lists.worth_reading import CARD_PAIRS, CARD_TOKENS, CARDS, CLEAREST, HEAD_LENS, HEAD_PRESET, richest
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.tokens import pack
from lexiscope.precompute.shape import LENSES, PRESETS
from tests.support.synthetic import GPT2, add_layer, make_manifest, rewrite_shard, stored_arrays
from tests.support.views import model_view

LETTERS = [f" {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
WORDS = [" " + "".join(letters) for letters in itertools.product("bdfgk", "ae", "lmnr", "io")]  # 80 of 4 letters
FORMS = [" tempera", "Temperature", " temperatures", "temperatur", " TEMPERED", " temperate"]
PIECES = [
    " merchand", " merchandise", " burden", " burdens", " quick", " quickly", " caffein", "caffeinated", "Caffein",
]  # fmt: skip
ODD = ["nameOfThing", "<script>", "日本", " 12", " it", "don't", "."]
DULL = [" dull" + word.strip() for word in WORDS[:8]]  # with an embedding that training has not moved
TEXTS = [*LETTERS, *WORDS, *FORMS, *PIECES, *ODD, *DULL]
SHAPE = replace(GPT2, n_layers=2, d_mlp=20, n_heads=8, d_vocab=len(TEXTS))
LIST, PAIR_LIST = 10, 60


def ids(*texts: str) -> list[int]:
    return [TEXTS.index(text) for text in texts]


def words(start: int, count: int) -> list[int]:
    return ids(*WORDS[start : start + count])


def opened(folder: Path, **changed: Any) -> Index:
    """Two layers; the arrays of layer 1 are random but for those given, at top."""
    folder.mkdir()
    manifest = make_manifest(SHAPE, folder.name, LIST, PAIR_LIST, kinds=None)
    offsets, data = pack([text.encode() for text in TEXTS])
    norms = np.array([0.4 if text in DULL else 1 for text in TEXTS], np.float32)
    vocabulary: dict[str, Any] = {
        "token.offsets": offsets, "token.bytes": data, "embedding.norm": norms, "embedding.centred_norm": norms,
    }  # fmt: skip
    (folder / "tokenizer.json").write_bytes(b"{}")
    manifest = write_piece(folder, manifest, Piece("vocabulary"), vocabulary)
    manifest = add_layer(folder, manifest, 1)
    arrays = {name: array.copy() for name, array in stored_arrays(manifest.stored, seed=1).items()}
    spread_evenly(arrays["inverted.offsets"])
    arrays["ff_value.coherence"][...] = np.nan
    arrays["ff.similarity"][...] = -1
    for matrix in ("vo", "qk"):
        arrays[f"{matrix}.coherence"][...] = np.nan
        arrays[f"{matrix}.readability"][...] = np.nan
    for name, change in changed.items():
        change(arrays[name.replace("__", ".")])
    rewrite_shard(folder, manifest, 1, arrays)
    return Index.open(folder)


def spread_evenly(offsets: Any) -> None:
    """Every token is listed equally often."""
    n_tokens = offsets.shape[-1] - 1
    for end in offsets.reshape(-1, n_tokens + 1):
        end[1:-1] = end[0] + np.arange(1, n_tokens) * ((end[-1] - end[0]) // n_tokens)


def at(neuron: int, value: Any) -> Any:
    def change(array: Any) -> None:
        array[(neuron, slice(None), 0, *([slice(len(value))] if isinstance(value, list) else ()))] = value

    return change


def all_of(*changes: Any) -> Any:
    return lambda array: [change(array) for change in changes]


@pytest.mark.parametrize(("text", "stem"), [
    (WORDS[0], WORDS[0].strip()), ("Temperature", "tempe"), (" TEMPERED", "tempe"), ("don't", "dont"), ("日本", "日本"),
    (" a", None), (" it", None), ("nameOfThing", None), ("<script>", None), (" 12", None), (".", None),
    (DULL[0], None), (" merchand", None), (" merchandise", "merch"), (" burden", "burde"), (" quick", "quick"),
    (" caffein", "caffe"), (" tempera", None),
])  # fmt: skip
def test_which_tokens_are_words(tmp_path: Path, text: str, stem: str | None) -> None:
    """A part of words has no variants, and goes on, but not as a word does."""
    assert readable(opened(tmp_path / "tiny")).stem(TEXTS.index(text)) == stem
    assert stem is None or len(stem) <= STEM


def test_tokens_that_are_listed_nowhere_or_everywhere(tmp_path: Path) -> None:
    def crowd(offsets: Any) -> None:
        counts = np.full(len(TEXTS), offsets[0, 0, -1] // (2 * len(TEXTS)))
        counts[ids(WORDS[0])], counts[ids(WORDS[1])] = 0, 21 * counts[0]
        offsets[0, 0, 1:-1] = np.cumsum(counts)[:-1]

    found = readable(opened(tmp_path / "tiny", inverted__offsets=crowd))
    assert [found.stem(token) for token in words(0, 3)] == [None, None, WORDS[2].strip()]


NEURONS = {  # tokens, and whether they are worth reading
    0: (words(0, 6), True),
    1: (ids(*LETTERS[:6]), False),
    2: ([*words(6, 4), *ids(*LETTERS[:2])], True),  # two thirds are words
    3: ([*words(10, 3), *ids(*LETTERS[:3])], False),
    4: (ids(*FORMS), False),
    5: (ids(*DULL[:6]), False),
    6: ([*words(2, 4), *words(20, 2)], False),  # most of them are on the first card
    7: ([*words(0, 3), *words(22, 3)], True),  # half of them
}


@pytest.mark.parametrize("name", ["coherence", "similarity"])
def test_neurons(tmp_path: Path, name: str) -> None:
    lists = all_of(*(at(neuron, tokens) for neuron, (tokens, _) in NEURONS.items()))
    numbers = {neuron: INDISTINCT - 0.01 * (neuron + 1) for neuron in NEURONS}

    def by_similarity(array: Any) -> None:
        for neuron, number in numbers.items():
            array[neuron] = number

    rank = {"ff_value__coherence": all_of(*(at(neuron, number) for neuron, number in numbers.items()))}
    if name == "similarity":
        rank = {"ff_value__coherence": lambda array: array.fill(0.1), "ff__similarity": by_similarity}
    index = opened(tmp_path / "tiny", ff_value__ids=lists, **rank)
    for lens in LENSES:
        view = model_view(index, lens)
        cards = view.neurons if name == "coherence" else view.agreeing
        assert cards
        expected = [neuron for neuron, (_, good) in NEURONS.items() if good]
        assert [card["neuron"] for card in cards if card["neuron"] in NEURONS] == expected
        assert [[t["id"] for t in card["tokens"]] for card in cards][:3] == [NEURONS[n][0] for n in expected]
        assert all(len(card["tokens"]) == CARD_TOKENS for card in cards)
        assert cards[0]["number"] == pytest.approx(numbers[0])
        assert len(cards) <= CARDS


def test_keys_that_agree_with_either_end_of_the_value(tmp_path: Path) -> None:
    """The larger of both counts, and the card shows that end; of a coherence of that end."""

    def lists(array: Any) -> None:
        for neuron, end in ((0, 0), (1, 1), (2, 1), (3, 1)):
            array[neuron, :, end, :6] = words(6 * neuron, 6)

    def numbers(array: Any) -> None:
        array[0], array[1], array[2], array[3] = (0.5, 0.4), (0.1, 0.6), (0.3, 0.31), (0, 0.9)

    def coherences(array: Any) -> None:
        array[:3] = 0.5
        array[3] = 0.5, INDISTINCT + 0.1  # tokens that the model cannot tell apart, at the bottom

    changes = {"ff_value__ids": lists, "ff__similarity": numbers, "ff_value__coherence": coherences}
    cards = model_view(opened(tmp_path / "tiny", **changes)).agreeing or ()
    assert [(card["neuron"], card["end"]) for card in cards] == [(1, "bottom"), (0, "top"), (2, "bottom")]
    assert [card["number"] for card in cards] == pytest.approx([0.6, 0.5, 0.31])
    assert [[token["id"] for token in card["tokens"]] for card in cards] == [words(6 * n, 6) for n in (1, 0, 2)]


def pairs_of(head: int, pairs: list[tuple[int, int]]) -> Any:
    def change(array: Any) -> None:
        array[head, :, :, 0] = (pairs * PAIR_LIST)[:PAIR_LIST]

    return change


def full(*heads: int) -> Any:
    """The top lists of these heads have all the pairs there is room for."""

    def change(array: Any) -> None:
        array[list(heads), :, :, 0] = PAIR_LIST

    return change


def falling(n: int) -> Any:
    """(E, n): scores from 1 and from -1 on."""
    return np.linspace(1, 0.5, n) * np.array([[1], [-1]])


def test_heads(tmp_path: Path) -> None:
    first, second = words(0, 40), words(40, 40)
    good = list(zip(first[:15], second[:15], strict=True))
    heads = {
        0: list(itertools.product(first[:1], second)),  # one word at one side
        1: good,
        2: list(zip(first[15:40], second[15:40], strict=True)),  # with more words
        3: list(zip(ids(*LETTERS), second, strict=False)),
        4: good,  # again
        5: [(token, token) for token in first],  # words with themselves
        6: list(zip(first[25:40], second[:15], strict=True)),  # undefined
    }

    def readability(array: Any) -> None:
        for head in heads:
            array[head, LENSES.index(HEAD_LENS), PRESETS.index(HEAD_PRESET), 0] = 0.7 - 0.1 * head
        array[6] = np.nan

    index = opened(
        tmp_path / "tiny",
        vo__ids=all_of(*(pairs_of(head, pairs) for head, pairs in heads.items())),
        vo__count=full(*heads),
        vo__scores=lambda array: np.copyto(array, falling(array.shape[-1])),
        vo__readability=readability,
    )
    for lens, preset in itertools.product(LENSES, PRESETS):
        cards = model_view(index, lens, preset).heads
        assert cards
        assert [card["head"] for card in cards] == [1, 2]
        assert {(card["lens"], card["preset"], card["matrix"]) for card in cards} == {(HEAD_LENS, HEAD_PRESET, "vo")}
        shown = [(pair["from"]["id"], pair["to"]["id"]) for pair in cards[0]["pairs"]]
        assert shown == good[:CARD_PAIRS]
    cards = model_view(index).heads or ()
    assert richest(index, cards) == cards[1]
    assert richest(index, [cards[0]] * CLEAREST + [cards[1]]) == cards[0]
    assert richest(index, ()) is None


@pytest.mark.parametrize(("readability", "n_cards"), [(0.41, 1), (0.39, 0)])
def test_heads_that_nobody_could_name_have_no_card(tmp_path: Path, readability: float, n_cards: int) -> None:
    pairs = list(zip(words(0, 40), words(40, 40), strict=True))
    index = opened(
        tmp_path / "tiny",
        qk__ids=pairs_of(2, pairs),
        qk__count=full(2),
        qk__scores=lambda array: np.copyto(array, falling(array.shape[-1])),
        qk__readability=lambda array: array[2].fill(readability),
    )
    assert len(model_view(index).heads or ()) == n_cards
