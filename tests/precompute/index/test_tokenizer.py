"""Tokenizers as their files describe them."""

from lexiscope.precompute.index.tokenizer import parse_tokenizer
from tests.support.tokenizers import TOKENIZERS


def test_texts_are_neither_cut_nor_padded() -> None:
    """Files of sentence encoders, MiniLM's for one, say to cut every text at 128 tokens and to pad it to as many."""
    tokenizer = TOKENIZERS["bert"]().tokenizer
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=8)
    assert len(tokenizer.encode("dog").ids) == 8
    found = parse_tokenizer(tokenizer.to_str().encode())
    assert found.encode("dog").tokens == ["[CLS]", "dog", "[SEP]"]
    assert len(found.encode("dog " * 100).ids) == 102
