"""The printed lists in GPT-2's own vocabulary: every printed token is one of it; what seed words become."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.paper import lists


@pytest.fixture(scope="module")
def tokenizer(gpt2_tokens: Path) -> Tokenizer:
    vocab: dict[str, int] = json.loads((gpt2_tokens / "encoder.json").read_text(encoding="utf-8"))
    lines = (gpt2_tokens / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
    found = Tokenizer(models.BPE(vocab=vocab, merges=[(a, b) for a, b in map(str.split, filter(None, lines))]))
    found.pre_tokenizer, found.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return found


def test_every_printed_token_is_one(tokenizer: Tokenizer) -> None:
    decoder = decoders.ByteLevel()
    texts = {decoder.decode([piece]) for piece in tokenizer.get_vocab()}
    printed = {text for head in lists.heads() for pair in head.pairs for text in pair}
    printed |= {text for each in lists.neurons() for text in (*each.key, *each.value, *each.unassigned)}
    printed |= {text for each in lists.lookups() for result in each.results for text in result.tokens}
    printed |= {text for each in lists.differences() for text in (*each.diff, *each.minus_diff)}
    assert printed - texts == set()


@pytest.mark.parametrize(("spelling", "in_pieces"), [("spaced", []), ("bare", ["lion"])])
def test_seed_words_as_tokens(tokenizer: Tokenizer, spelling: str, in_pieces: list[str]) -> None:
    """With a space each of the paper's nine words is one token; without, lion is l and ion."""
    words = [word for lookup in lists.lookups() for word in lookup.seeds]
    spelt = {word: find_seed(tokenizer, word, spelling=spelling).tokens for word in words}  # type: ignore[arg-type]
    assert [word for word, tokens in spelt.items() if len(tokens) > 1] == in_pieces
