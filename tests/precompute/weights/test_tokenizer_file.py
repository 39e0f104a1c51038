"""The tokenizer.json of a folder, given or derived from the older files of GPT-2, OPT, RoBERTa, Qwen or BERT."""

import json
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.tokenizer_file import find_tokenizer
from tests.support.models import tiny_gpt2
from tests.support.tokenizers import TEXT, TOKENIZERS, tokenizer_json

hf: Any = transformers  # most of its functions carry no types
TEXTS = [*TEXT.splitlines(), "dog", "Ünïcode 日本 \n\n  <script>", "in 12345 years", "a [MASK] and a <mask>."]
MODEL_TYPES = {"llama3": "llama", "qwen": "qwen2"}  # where the tokenizer has another name than the family


def split_up(folder: Path, name: str = "gpt2", settings: bool = False) -> Path:
    """Replace tokenizer.json by vocab.json and merges.txt, or by vocab.txt, as older checkpoints have them."""
    small = TOKENIZERS[name]()
    folder.mkdir(exist_ok=True)
    if not (folder / "config.json").exists():
        (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPES.get(name, name)}))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(small.config))
    vocab = small.tokenizer.get_vocab(with_added_tokens=True)
    merges = json.loads(small.json)["model"].get("merges")
    if merges is None:
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in sorted(vocab, key=vocab.__getitem__)))
    else:
        (folder / "vocab.json").write_text(json.dumps(vocab))
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
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
    ("merges.txt", "qq zz\n", "do not make a tokenizer"),
    ("tokenizer.json", "{}", "lacks"),
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


@pytest.mark.parametrize("name", ["gpt2", "gpt_neo", "qwen", "opt", "roberta", "bert", "distilbert"])
def test_derived_from_the_older_files_of_a_family(tmp_path: Path, name: str) -> None:
    """As its own tokenizer.json does it, special tokens and all."""
    derived = Tokenizer.from_file(str(find_tokenizer(split_up(tmp_path, name, settings=True), None)))
    original = TOKENIZERS[name]().tokenizer
    texts = TEXTS[:-1] if name == "roberta" else TEXTS  # transformers lets <mask> take no space before it
    assert [derived.encode(text).ids for text in texts] == [original.encode(text).ids for text in texts]
    assert derived.get_vocab(with_added_tokens=True) == original.get_vocab(with_added_tokens=True)


def test_special_tokens_as_opts_files_spell_them(tmp_path: Path) -> None:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "__type": "AddedToken"}
    names = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}
    special = {name: flags | {"content": token} for name, token in names.items()}
    folder = split_up(tmp_path, "opt")
    (folder / "tokenizer_config.json").write_text(json.dumps(special | {"add_bos_token": True}))
    tokenizer = Tokenizer.from_file(str(find_tokenizer(folder, None)))
    assert tokenizer.encode("The dog").tokens == ["</s>", "The", "Ġdog"]


@pytest.mark.parametrize(("named", "known"), [("BertTokenizer", True), ("OwnTokenizer", False)])
def test_code_of_a_checkpoint_never_runs(tmp_path: Path, named: str, known: bool) -> None:
    folder = split_up(tmp_path, "bert")
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass OwnTokenizer: pass\n")
    own = {"tokenizer_class": named, "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", "own.OwnTokenizer"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(own))
    with nullcontext() if known else pytest.raises(BadWeights, match=r"vocab.txt .*\(OwnTokenizer\)"):
        tokenizer = Tokenizer.from_file(str(find_tokenizer(folder, None)))
        assert tokenizer.encode("The dog").tokens == ["[CLS]", "the", "dog", "[SEP]"]
    assert not ran.exists()


def test_the_network_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("gpt2", "bert", "opt"):
        find_tokenizer(split_up(tmp_path / name, name), None)
