"""The tokenizer.json of a checkpoint folder: found, or made from GPT-2's older vocab.json and merges.txt."""

import atexit
import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from precompute.errors import BadWeights
from precompute.weights.folders import make_folder_once

_OLD_FILES = ("vocab.json", "merges.txt", "added_tokens.json", "tokenizer_config.json")


def find_tokenizer(folder: Path, cache: Path | None) -> Path:
    """The folder's tokenizer.json, or one derived from its parts and kept in `cache` (else for this process only)."""
    tokenizer = folder / "tokenizer.json"
    if tokenizer.is_file():
        _read_object(tokenizer, "model")
        return tokenizer
    if not (folder / "vocab.json").is_file() or not (folder / "merges.txt").is_file():
        raise BadWeights(
            f"{folder} has neither tokenizer.json nor vocab.json with merges.txt, so its tokens have no text. "
            "Put its tokenizer.json there; AutoTokenizer.from_pretrained(...).save_pretrained(folder) writes it."
        )
    if cache is None:
        temporary = Path(tempfile.mkdtemp(prefix="lexiscope-tokenizer-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        _write_tokenizer(folder, temporary)
        return temporary / "tokenizer.json"
    digest = hashlib.sha256()
    for name in _OLD_FILES:
        content = (folder / name).read_bytes() if (folder / name).is_file() else b""
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = cache / "tokenizers" / digest.hexdigest()[:32]
    return make_folder_once(target, lambda target: _write_tokenizer(folder, target)) / "tokenizer.json"


def _write_tokenizer(folder: Path, target: Path) -> None:
    vocabulary = _read_object(folder / "vocab.json")
    prefix_space = False
    if (folder / "tokenizer_config.json").is_file():
        prefix_space = _read_object(folder / "tokenizer_config.json").get("add_prefix_space") is True
    try:
        merges = [line for line in (folder / "merges.txt").read_text("utf-8").split("\n") if line.strip()]
        pairs = [(left, right) for left, right in (line.split(" ") for line in merges if line[:8] != "#version")]
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    except Exception as error:  # the library raises nothing more special
        raise BadWeights(f"{folder / 'merges.txt'} and vocab.json do not make a tokenizer: {error}") from error
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    if "<|endoftext|>" in vocabulary:
        tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    added = _read_object(folder / "added_tokens.json") if (folder / "added_tokens.json").is_file() else {}
    for token, number in sorted(added.items(), key=lambda item: str(item[1]).rjust(12)):
        tokenizer.add_tokens([AddedToken(token, normalized=False)])
        if tokenizer.token_to_id(token) != number:
            raise BadWeights(f"{folder / 'added_tokens.json'} gives {token!r} the number {number}, which leaves a gap.")
    tokenizer.save(str(target / "tokenizer.json"))


def _read_object(path: Path, *needed: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadWeights(f"{path} cannot be read as JSON: {error}. Get the tokenizer's files again.") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(key), dict) for key in needed):
        raise BadWeights(f"{path} is not a tokenizer's file: it lacks {needed or 'an object'}. Get it again.")
    return content
