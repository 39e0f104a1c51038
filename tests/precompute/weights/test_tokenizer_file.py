"""The tokenizer.json of a folder, given or derived from GPT-2's older files."""

import json
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer

from precompute.errors import BadWeights
from precompute.weights.checkpoint import Checkpoint
from precompute.weights.tokenizer_file import find_tokenizer
from tests.support.models import tiny_gpt2
from tests.support.tokenizers import TEXT, TOKENIZERS, tokenizer_json

hf: Any = transformers  # most of its functions carry no types
TEXTS = [*TEXT.splitlines(), "dog", "Ünïcode 日本 \n\n  <script>", "in 12345 years", "a [MASK] and a <mask>."]
MODEL_TYPES = {"llama3": "llama", "qwen": "qwen2"}  # where the tokenizer has another name than the family


def split_up(folder: Path) -> Path:
    """Replace tokenizer.json by vocab.json and merges.txt, as older GPT-2 checkpoints have them."""
    folder.mkdir(exist_ok=True)
    model = json.loads(tokenizer_json())["model"]
    vocab = model["vocab"] | {"<|endoftext|>": len(model["vocab"])}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"]))
    (folder / "tokenizer.json").unlink(missing_ok=True)
    return folder


def test_a_given_file_is_used_as_it_is(tmp_path: Path) -> None:
    assert Checkpoint.open(tiny_gpt2(tmp_path)).tokenizer_file() == tmp_path / "tokenizer.json"


@pytest.mark.parametrize("kept", [True, False])
def test_derived_from_vocab_and_merges(tmp_path: Path, kept: bool) -> None:
    folder = split_up(tiny_gpt2(tmp_path / "model"))
    cache = tmp_path / "cache" if kept else None
    path = Checkpoint.open(folder, cache=cache).tokenizer_file()
    ours, original = Tokenizer.from_file(str(path)), Tokenizer.from_str(tokenizer_json())
    for text in (*TEXT.splitlines(), "Ünïcode 日本 \x00\n\n  <script>", "a<|endoftext|>b"):
        assert ours.encode(text).ids == original.encode(text).ids
        assert ours.decode(ours.encode(text).ids, skip_special_tokens=False) == text
    assert ours.get_vocab_size() == original.get_vocab_size()
    assert (tmp_path in path.parents) == kept
    assert not (folder / "tokenizer.json").exists()


def test_derived_bytes_are_always_the_same(tmp_path: Path) -> None:
    folder = split_up(tmp_path / "model")
    made = [find_tokenizer(folder, cache) for cache in (tmp_path / "a", tmp_path / "b", None)]
    assert len({path.read_bytes() for path in made}) == 1
    assert find_tokenizer(folder, tmp_path / "a") == made[0]


def test_added_tokens_keep_their_numbers(tmp_path: Path) -> None:
    folder = split_up(tmp_path)
    size = len(json.loads((folder / "vocab.json").read_text()))
    (folder / "added_tokens.json").write_text(json.dumps({"<sep>": size + 1, "<pad>": size}))
    (folder / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    tokenizer = Tokenizer.from_file(str(find_tokenizer(folder, None)))
    assert tokenizer.token_to_id("<pad>") == size
    assert tokenizer.encode("dog<sep>").tokens == ["Ġdog", "<sep>"]
    (folder / "added_tokens.json").write_text(json.dumps({"<pad>": size + 7}))
    with pytest.raises(BadWeights, match="leaves a gap"):
        find_tokenizer(folder, None)


@pytest.mark.parametrize(("name", "content", "said"), [
    ("vocab.json", "{", "vocab.json cannot be read"),
    ("vocab.json", "[1]", "vocab.json is not a tokenizer's file"),
    ("vocab.json", '{"a": "x"}', "do not make a tokenizer"),
    ("vocab.json", '{"a": -1}', "do not make a tokenizer"),
    ("merges.txt", "qq zz\n", "do not make a tokenizer"),
    ("merges.txt", "a\n", "do not make a tokenizer"),
    ("tokenizer.json", "{}", "lacks"),
    ("tokenizer.json", "", "tokenizer.json cannot be read"),
    ("tokenizer.json", "[" * 100_000, "tokenizer.json cannot be read"),
])  # fmt: skip
def test_broken_files(tmp_path: Path, name: str, content: str, said: str) -> None:
    (split_up(tmp_path) / name).write_text(content)
    with pytest.raises(BadWeights, match=said):
        find_tokenizer(tmp_path, None)


def test_no_tokenizer_at_all(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0e")
    with pytest.raises(BadWeights, match=r"neither tokenizer.json nor vocab.json.*save_pretrained"):
        find_tokenizer(tmp_path, None)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_familys_tokenizer_encodes_as_transformers_does(tmp_path: Path, name: str) -> None:
    TOKENIZERS[name]().save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": MODEL_TYPES.get(name, name)}))
    ours = Tokenizer.from_file(str(find_tokenizer(tmp_path, None)))
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert [ours.encode(text).ids for text in TEXTS] == [theirs(text)["input_ids"] for text in TEXTS]
