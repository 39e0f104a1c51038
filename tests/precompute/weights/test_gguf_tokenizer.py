"""The tokenizer written from a GGUF file, against byte-pair encoding written out in plain Python."""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode as untyped_bytes_to_unicode

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.gguf.tokenizer import write_tokenizer
from tests.support.tokenizers import TEXT, tokenizer_json

bytes_to_unicode: Any = untyped_bytes_to_unicode
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SAMPLES = [
    *TEXT.splitlines(keepends=True),
    "12345 a1b22 ١٢٣ ½", "  two  spaces\n\n\ttabs \r\n", "naïve café 日本語 🙂", "I'LL we'll don't", '<script>"></', '',
]  # fmt: skip


def cut(name: str, text: str) -> Iterator[str]:
    if name == "smollm":
        for part in regex.findall(r"\p{N}|\P{N}+", text):
            yield from regex.findall(GPT2, part)
    else:
        yield from regex.findall(LLAMA3 if name == "llama-bpe" else GPT2, text)


def merge(word: list[str], better: Callable[[str, str], float | None]) -> list[str]:
    """Join the best neighbours, leftmost first, until none can be joined."""
    while True:
        ranks = [(rank, at) for at, pair in enumerate(pairwise(word)) if (rank := better(*pair)) is not None]
        if not ranks:
            return word
        at = min(ranks)[1]
        word = [*word[:at], word[at] + word[at + 1], *word[at + 2 :]]


def byte_level_fields(pre: str) -> dict[str, Any]:
    model = json.loads(tokenizer_json())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [*tokens, "<|endoftext|>", "<user>"],
        "tokenizer.ggml.token_type": [1] * len(tokens) + [3, 4],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.bos_token_id": len(tokens),
        "tokenizer.ggml.add_bos_token": False,
    }


def written(fields: dict[str, Any], folder: Path) -> Tokenizer:
    write_tokenizer(fields, 10_000, folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe"])
def test_byte_level(tmp_path: Path, pre: str) -> None:
    fields = byte_level_fields(pre)
    tokenizer = written(fields, tmp_path)
    spelled = bytes_to_unicode()
    ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(fields["tokenizer.ggml.merges"])}
    known = set(fields["tokenizer.ggml.tokens"])

    def plain(text: str) -> list[str]:
        words = ["".join(spelled[byte] for byte in part.encode()) for part in cut(pre, text)]
        whole = pre == "llama-bpe"  # Llama 3 takes a word that is a token as it is
        return [
            token
            for word in words
            for token in ([word] if whole and word in known else merge(list(word), lambda a, b: ranks.get((a, b))))
        ]

    @given(
        st.text(max_size=40) | st.lists(st.sampled_from([*SAMPLES, " dog", "7", "'s", "  "]), max_size=6).map("".join)
    )
    def check(text: str) -> None:
        encoded = tokenizer.encode(text)
        assert encoded.tokens == plain(text)
        assert tokenizer.decode(encoded.ids) == text

    check()
    for text in SAMPLES:
        assert tokenizer.encode(text).tokens == plain(text)


def test_special_and_user_defined_tokens(tmp_path: Path) -> None:
    fields = byte_level_fields("smollm")
    tokenizer = written(fields, tmp_path)
    tokens = tokenizer.encode("a<|endoftext|> dog<user>").tokens
    assert tokens == ["a", "<|endoftext|>", "Ġdog", "<user>"]
    assert tokenizer.decode(tokenizer.encode("a<|endoftext|><user>").ids, skip_special_tokens=True) == "a<user>"
    numbers = {token: number for number, token in enumerate(fields["tokenizer.ggml.tokens"])}
    assert tokenizer.get_vocab() == numbers
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["bos_token"] == "<|endoftext|>"


@pytest.mark.parametrize("wanted", [True, False])
def test_a_text_begins_with_bos_if_the_file_says_so(tmp_path: Path, wanted: bool) -> None:
    tokenizer = written(byte_level_fields("gpt-2") | {"tokenizer.ggml.add_bos_token": wanted}, tmp_path)
    assert tokenizer.encode(" dog").tokens == (["<|endoftext|>", "Ġdog"] if wanted else ["Ġdog"])
    assert tokenizer.encode(" dog", add_special_tokens=False).tokens == ["Ġdog"]


def sentencepiece_fields(*, prefix: bool) -> dict[str, Any]:
    the, dog = ["▁t", "▁the", "▁th", "he", "er"], ["▁d", "▁do", "▁dog", "▁dogs"]
    pieces = [*"thedogs▁nlira", *the, *dog, "re", "▁a", "nd", "▁an", "▁and", "in", "ing", "▁li", "on"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(pieces)]
    scores = [0.0] * 259 + [-float(at) if len(piece) > 1 else -1e3 for at, piece in enumerate(sorted(pieces, key=len))]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": prefix,
    }


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece(tmp_path: Path, prefix: bool) -> None:
    fields = sentencepiece_fields(prefix=prefix)
    tokenizer = written(fields, tmp_path)
    scores = dict(zip(fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.scores"], strict=True))

    def plain(text: str) -> list[str]:
        text = ("▁" if prefix and text else "") + text.replace(" ", "▁")
        pieces = merge(list(text), lambda a, b: -scores[a + b] if a + b in scores else None)
        return [token for piece in pieces for token in ([piece] if piece in scores else bytes_of(piece))]

    def bytes_of(piece: str) -> list[str]:
        return [f"<0x{byte:02X}>" for byte in piece.encode()]

    @given(st.text(alphabet="the dogsandliré日\n", max_size=30))
    def check(text: str) -> None:
        encoded = tokenizer.encode(text, add_special_tokens=False)
        assert encoded.tokens == plain(text)
        assert tokenizer.decode(encoded.ids) == text

    check()
    assert tokenizer.encode("the dog").tokens[0] == "<s>"


@pytest.mark.parametrize(("change", "said"), [
    ({"tokens": [1, 2]}, "tokens for"), ({"tokens": []}, "0 tokens"),
    ({"tokens": ["a"] * 20_000}, "20000 tokens for 10000"),
    ({"merges": ["a b c"]}, "do not make a tokenizer"),
    ({"merges": 5}, "do not make a tokenizer"),
    ({"pre": "tekken"}, "'tekken'.*known: gpt-2"),
    ({"pre": ["x"]}, "do not make a tokenizer"),
    ({"model": "t5"}, "t5; gpt2 and llama"),
    ({"model": "llama"}, "lacks the scores"),
])  # fmt: skip
def test_broken_tokenizers(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    fields = byte_level_fields("gpt-2") | {f"tokenizer.ggml.{key}": value for key, value in change.items()}
    with pytest.raises(BadWeights, match=said):
        write_tokenizer(fields, 10_000, tmp_path)
