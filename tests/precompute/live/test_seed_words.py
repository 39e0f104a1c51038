"""Seed words: which tokens stand for them."""

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.seed_words import find_seed
from tests.support.tokenizers import TOKENIZERS, tokenizer_json

TOKENIZER = Tokenizer.from_str(tokenizer_json())


@pytest.mark.parametrize(("word", "tokens"), [
    ("horse", [" horse"]), (" horse", [" horse"]), (".", ["."]),  # there is no " ."
    ("writer", None), ("zebra", None), ("dog lion", None),
])  # fmt: skip
def test_a_leading_space_comes_first_then_none_then_pieces(word: str, tokens: list[str] | None) -> None:
    seed = find_seed(TOKENIZER, word)
    assert seed.word == word
    if tokens is not None:
        assert [TOKENIZER.decode([token]) for token in seed.tokens] == tokens
        return
    spaced, bare = (TOKENIZER.encode(text).ids for text in (" " + word, word))
    assert list(seed.tokens) == (bare if len(bare) == 1 < len(spaced) else spaced)
    assert TOKENIZER.decode(list(seed.tokens)).strip() == word


@pytest.mark.parametrize("word", ["", " ", "\n"])
def test_nothing_is_no_seed(word: str) -> None:
    with pytest.raises(NotFound, match="horse, dog, lion"):
        find_seed(TOKENIZER, word)


def test_text_that_is_none_is_no_seed() -> None:
    """As a shell passes bytes that are not UTF-8."""
    with pytest.raises(NotFound, match=r"seed 'do\\udcffg' is no text"):
        find_seed(TOKENIZER, "do\udcffg")


@pytest.mark.parametrize(
    ("word", "pieces"), [("dog", ["▁dog"]), (" dog", ["▁dog"]), ("zebra", ["▁z", "eb", "ra"]), ("dog zebra", None)]
)
def test_a_tokenizer_that_puts_spaces_itself_gets_no_second_one(word: str, pieces: list[str] | None) -> None:
    merges = [("▁", "z"), ("▁", "d"), ("o", "g"), ("▁d", "og"), ("e", "b"), ("r", "a")]
    letters = ["<unk>", "▁", *"abdegorz", *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({piece: n for n, piece in enumerate(letters)}, merges, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    found = [tokenizer.id_to_token(token) for token in find_seed(tokenizer, word).tokens]
    assert found == (pieces or ["▁dog", "▁z", "eb", "ra"])


@pytest.mark.parametrize(("word", "pieces"), [
    ("Dog", ["dog"]), ("dog lion", ["dog", "lion"]), ("##s", ["##s"]), ("[MASK]", ["[MASK]"]), ("[UNK]", ["[UNK]"]),
    ("wording", ["word", "##ing"]), ("zoos", ["z", "##o", "##o", "##s"]),
])  # fmt: skip
def test_words_and_pieces_of_wordpiece(word: str, pieces: list[str]) -> None:
    tokenizer = TOKENIZERS["bert"]().tokenizer
    assert [tokenizer.id_to_token(token) for token in find_seed(tokenizer, word).tokens] == pieces


@pytest.mark.parametrize(("name", "unknown"), [("bert", r"\[UNK\]"), ("xlm-roberta", "<unk>")])
@pytest.mark.parametrize("word", ["日本", "dog 日", "##日"])
def test_a_word_that_a_vocabulary_does_not_know_is_no_seed(word: str, name: str, unknown: str) -> None:
    with pytest.raises(NotFound, match=rf"unknown to this vocabulary \({unknown}\)"):
        find_seed(TOKENIZERS[name]().tokenizer, word)
