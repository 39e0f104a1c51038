"""Tokens as bytes: byte-level and metaspace vocabularies, tables, word classes; and files that are neither."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from lexiscope.precompute.errors import BadWeights, NotFound
from lexiscope.precompute.index.tokens import (
    TokenTable,
    distinct_classes,
    is_special,
    is_wordpiece,
    pack,
    surface,
    token_bytes,
    whole_words,
)
from tests.support.synthetic import D_VOCAB, raw_tokens, spell, tokenizer_json
from tests.support.tokenizers import TOKENIZERS

METASPACE: dict[str, Any] = {
    "added_tokens": [{"id": 0, "content": "<unk>"}, {"id": 1, "content": "</s>"}],
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    },
    "pre_tokenizer": None,
    "decoder": {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
        ],
    },
    "model": {
        "type": "BPE",
        "byte_fallback": True,
        "vocab": {"<unk>": 0, "</s>": 1, "<0xE2>": 2, "<0x0a>": 3, "▁dog": 4, "dog": 5, "▁▁": 6, "é": 7, "<0xE2>x": 8},
    },
}
UNIGRAM: dict[str, Any] = {
    "added_tokens": [],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
    "decoder": {"type": "Metaspace", "replacement": "▁"},
    "model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.5], ["<0xE2>", -2.0]]},
}


def write(folder: Path, document: Any) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_byte_level_vocabulary(tmp_path: Path) -> None:
    assert token_bytes(write(tmp_path, tokenizer_json()), D_VOCAB) == raw_tokens()


def test_agrees_with_the_tokenizers_library(tmp_path: Path) -> None:
    """Independent check: the library's own decoder, on tokens that are text by themselves."""
    vocabulary = {spell(raw): token for token, raw in enumerate(raw_tokens()) if raw}
    library = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.save(str(tmp_path / "tokenizer.json"))
    raws = token_bytes(tmp_path / "tokenizer.json", D_VOCAB)
    for token in vocabulary.values():
        assert library.decode([token]) == raws[token].decode("utf-8", "replace")


def test_metaspace_vocabulary_with_byte_fallback(tmp_path: Path) -> None:
    expected = [b"<unk>", b"</s>", b"\xe2", b"\n", b" dog", b"dog", b"  ", "é".encode(), b"<0xE2>x", b""]
    assert token_bytes(write(tmp_path, METASPACE), 10) == expected


@pytest.mark.parametrize("model", [{"type": "WordPiece"}, {}, {"type": "WordPiece", "continuing_subword_prefix": "##"}])
def test_wordpiece_vocabulary(tmp_path: Path, model: dict[str, Any]) -> None:
    """As people know it; the decoder says what it is where an old file leaves out the type."""
    pieces = ["[PAD]", "[unused1]", "dog", "##ing", "#", "###", "é", "##é", "Ġ▁"]
    document = {"model": model | {"vocab": {piece: n for n, piece in enumerate(pieces)}}, "added_tokens": []}
    document["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    assert token_bytes(write(tmp_path, document), 10) == [*(piece.encode() for piece in pieces), b""]


def test_wordpiece_with_another_mark(tmp_path: Path) -> None:
    model = {"type": "WordPiece", "continuing_subword_prefix": "@@", "vocab": {"dog": 0, "@@ing": 1, "##": 2}}
    assert token_bytes(write(tmp_path, {"model": model}), 3) == [b"dog", b"##ing", b"##"]


SPELLINGS: dict[str, dict[str, bytes]] = {  # of each kind of vocabulary, a few tokens by their spelling in the file
    "gpt2": {"Ġdog": b" dog", "Ċ": b"\n", "Ã": b"\xc3", "<|endoftext|>": b"<|endoftext|>"},
    "gpt_neox": {"Ġdog": b" dog", "<|padding|>": b"<|padding|>", "   ": b"   "},
    "llama3": {"Ġdog": b" dog", "<|eot_id|>": b"<|eot_id|>"},
    "qwen": {"Ġdog": b" dog", "<|im_end|>": b"<|im_end|>"},
    "roberta": {"Ġdog": b" dog", "<s>": b"<s>", "<mask>": b"<mask>"},
    "opt": {"Ġdog": b" dog", "</s>": b"</s>"},
    "llama": {"▁dog": b" dog", "<0x0A>": b"\n", "</s>": b"</s>"},
    "phi3": {"▁dog": b" dog", "<0xFF>": b"\xff", "<|end|>": b"<|end|>"},
    "gemma": {"▁dog": b" dog", "<0xE2>": b"\xe2", "<unused1>": b"<unused1>", "<bos>": b"<bos>"},
    "bert": {"dog": b"dog", "##s": b"##s", "[MASK]": b"[MASK]", "[unused1]": b"[unused1]"},
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_vocabularies_of_the_families(tmp_path: Path, name: str) -> None:
    small = TOKENIZERS[name]()
    raws = token_bytes(write(tmp_path, small.json), small.size + 2)
    ids = small.tokenizer.get_vocab(with_added_tokens=True)
    assert {piece: raws[ids[piece]] for piece in SPELLINGS[name]} == SPELLINGS[name]
    assert raws[-2:] == [b"", b""]
    assert is_wordpiece(raws) == (name == "bert")
    words = {raw for raw, is_word in zip(raws, whole_words(raws), strict=True) if is_word}
    lead = b"" if name == "bert" else b" "
    assert {lead + b"dog", lead + b"horse", lead + b"lion"} <= words
    assert all(raw.removeprefix(lead).isalpha() and len(raw) > 2 for raw in words)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_texts_tokens_spell_the_text(tmp_path: Path, name: str) -> None:
    """Independent check: what the library makes of a text, put together again."""
    small, text = TOKENIZERS[name](), "the dog saw a lion; the reader ran: 12"
    raws = token_bytes(write(tmp_path, small.json), small.size)
    ids = small.tokenizer.encode(text, add_special_tokens=False).ids
    spelt = b"".join(raws[token] for token in ids).decode()
    if name == "bert":
        spelt = "".join(raws[token].decode().removeprefix("##") for token in ids)
        assert spelt == text.replace(" ", "")
    else:
        assert spelt.strip() == text


def test_unigram_vocabulary_without_byte_fallback(tmp_path: Path) -> None:
    assert token_bytes(write(tmp_path, UNIGRAM), 3) == [b"<unk>", b" a", b"<0xE2>"]


@pytest.mark.parametrize("place", ["decoder", "pre_tokenizer"])
def test_byte_level_is_found_wherever_it_is_declared(tmp_path: Path, place: str) -> None:
    document = tokenizer_json() | {"decoder": None, "pre_tokenizer": None}
    document[place] = {"type": "Sequence", "parts": [{"type": "Split"}, {"type": "ByteLevel"}]}
    assert token_bytes(write(tmp_path, document), D_VOCAB) == raw_tokens()


def test_text_outside_the_byte_alphabet_is_itself(tmp_path: Path) -> None:
    document = tokenizer_json()
    document["model"]["vocab"] = {"日本": 0, "a b": 1, "Ġa": 2}
    document["added_tokens"] = [{"id": 3, "content": "Ġ x"}]
    assert token_bytes(write(tmp_path, document), 4) == ["日本".encode(), b"a b", b" a", "Ġ x".encode()]


def test_added_tokens_without_a_row_are_left_out(tmp_path: Path) -> None:
    document = METASPACE | {"added_tokens": [{"id": 9, "content": "[PAD]"}]}
    assert len(token_bytes(write(tmp_path, document), 9)) == 9


def test_added_tokens_of_a_metaspace_vocabulary_have_spaces(tmp_path: Path) -> None:
    """As in Gemma's, whose runs of spaces are added tokens."""
    document = METASPACE | {"added_tokens": [{"id": 9, "content": "▁▁▁"}, {"id": 8, "content": "<0xE2>"}]}
    assert token_bytes(write(tmp_path, document), 10)[8:] == [b"<0xE2>", b"   "]


def changed(**model: Any) -> dict[str, Any]:
    return METASPACE | {"model": METASPACE["model"] | model}


@pytest.mark.parametrize(("document", "said"), [
    ("{", "not JSON"), ("[" * 100_000, "nested too deeply"), ('{"model": NaN}', "NaN"),
    ('{"model": {}, "model": {}}', "twice"),
    ([], "no vocabulary"), ({}, "no vocabulary"),
    ({"model": {"vocab": 3}}, "no vocabulary"),
    (changed(vocab={"a": -1}), "no id"), (changed(vocab={"a": True}), "no id"), (changed(vocab={"a": "1"}), "no id"),
    (changed(vocab={"a": 1, "b": 1}), "same id 1"),
    (changed(vocab={"a": 12}), "only 10 rows"),
    (changed(vocab={"\ud800": 1}), "surrogates"),
    (changed(vocab=[[], []]), "no vocabulary"),
    (METASPACE | {"added_tokens": {"a": 1}}, "added_tokens"),
    (METASPACE | {"added_tokens": [{"id": 1}]}, "no id"),
    ({"model": {"type": "WordLevel", "vocab": {"a": 0}}, "decoder": None}, "'WordLevel'.* neither byte-level"),
])  # fmt: skip
def test_a_tokenizer_that_cannot_be_used_says_why(tmp_path: Path, document: Any, said: str) -> None:
    with pytest.raises(BadWeights, match=said) as caught:
        token_bytes(write(tmp_path, document), 10)
    assert "tokenizer.json" in str(caught.value)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadWeights, match=r"gone\.json: No such file"):
        token_bytes(tmp_path / "gone.json", 10)


@given(st.lists(st.binary(max_size=6), max_size=20))
def test_a_table_gives_back_its_tokens(raws: list[bytes]) -> None:
    table = TokenTable(*pack(raws))
    assert len(table) == len(raws)
    assert list(table) == raws
    for token, raw in enumerate(raws):
        table.text(token).encode("utf-8")  # never a surrogate
        if raw.isascii():
            assert table.text(token) == raw.decode()


@pytest.mark.parametrize(("raw", "text"), [
    (b" dog", " dog"), (b"\xe2\x80", r"\xe2\x80"), (b"a\xff b", r"a\xff b"), ("é日".encode(), "é日"),
    (b"\x00\x1b", "\x00\x1b"), (b"\xed\xa0\x80", r"\xed\xa0\x80"), (b"", ""),
])  # fmt: skip
def test_text_of_a_token(raw: bytes, text: str) -> None:
    assert TokenTable.of([b"x", raw]).text(1) == text


@pytest.mark.parametrize("token", [-1, 2, 1 << 40])
def test_a_token_that_does_not_exist(token: int) -> None:
    with pytest.raises(NotFound, match="tokens 0 to 1"):
        TokenTable.of([b"a", b"b"]).raw(token)


@pytest.mark.parametrize("offsets", [[], [0], [0, 3, 2, 4], [1, 2, 4], [0, 2, 5], [0, 2, 3]])
def test_a_table_refuses_offsets_that_do_not_rise(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        TokenTable(np.array(offsets, np.uint32), np.zeros(4, np.uint8))


def test_classes_are_equal_exactly_where_surfaces_are() -> None:
    raws = raw_tokens()
    classes = distinct_classes(raws)
    assert classes.dtype == np.int32
    assert len({*zip(classes.tolist(), map(surface, raws), strict=True)}) == len({*classes.tolist()})
    by_raw = dict(zip(raws, classes.tolist(), strict=True))
    assert by_raw[b" dog"] == by_raw[b"dog"] == by_raw[b" Dog"] != by_raw[b" dogs"]


@pytest.mark.parametrize(("raw", "expected"), [
    (b" dog", True), (b" DOG", True), (b"dog", False), (b" it", False), (b"  dog", False), (b" dog ", False),
    (b" dog\n", False), (b" dog's", False), (" café".encode(), False), (b" gpt2", False), (b"\tdog", False),
    (b"", False),
])  # fmt: skip
def test_whole_words(raw: bytes, expected: bool) -> None:
    assert whole_words([raw]).tolist() == [expected]


@pytest.mark.parametrize(("raw", "expected"), [
    (b"dog", True), (b"DOG", True), (b"it", False), (b"##dog", False), (b"##s", False), (b"dog's", False),
    ("café".encode(), False), (b"[CLS]", False), (b"[unused12]", False), (b"[MASK]", False), (b"#", False),
    (b"", False),
])  # fmt: skip
def test_whole_words_of_a_wordpiece_vocabulary(raw: bytes, expected: bool) -> None:
    assert whole_words([b"##ing", raw]).tolist() == [False, expected]


def test_a_piece_and_a_word_of_a_wordpiece_vocabulary_have_one_surface() -> None:
    raws = [b"ing", b"##ing", b"##ING", b"##", b"###", b"#", b"[CLS]"]
    assert distinct_classes(raws).tolist() == [0, 0, 0, 1, 2, 2, 3]
    spaced = [*raws, b" dog"]  # one word with a space: not WordPiece, so ## is text
    assert len({*distinct_classes(spaced)[:7].tolist()}) == 6
    assert not whole_words(spaced)[:7].any()


@pytest.mark.parametrize(("text", "special"), [
    ("<|endoftext|>", True), ("[CLS]", True), ("[unused17]", True), ("<unk>", True), ("</s>", True),
    ("<file_sep>", True), ("<p>", False), ("</div>", False), ("[0]", False), ("<|", False), (" <unk>", False),
    ("dog", False), ("", False), ("<||>", False), ("[unused]", False),
])  # fmt: skip
def test_special_tokens_are_known_by_their_form(text: str, special: bool) -> None:
    assert is_special(text) is special
