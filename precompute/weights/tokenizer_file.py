"""Find the tokenizer.json of a checkpoint folder, or let `transformers` make one from older files."""

import atexit
import hashlib
import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.folders import make_folder_once

VOCABULARIES = (("vocab.json", "merges.txt"), ("vocab.txt",))  # one of these sets makes a tokenizer
_SETTINGS = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
FILES = ("tokenizer.json", *(name for files in VOCABULARIES for name in files), *_SETTINGS[1:])


def has_tokenizer(folder: Path) -> bool:
    return any(all((folder / name).is_file() for name in files) for files in (("tokenizer.json",), *VOCABULARIES))


def find_tokenizer(folder: Path, cache: Path | None) -> Path:
    """Return the path of the folder's tokenizer.json, or of one that is made from older files and kept in `cache`
    (without a cache, for this process only)."""
    tokenizer = folder / "tokenizer.json"
    if tokenizer.is_file():
        _read_object(tokenizer, "model")
        return tokenizer
    if not has_tokenizer(folder):
        raise BadWeights(
            f"{folder} has neither tokenizer.json nor vocab.json with merges.txt nor vocab.txt, so its tokens have no "
            "text. Put its tokenizer.json there; AutoTokenizer.from_pretrained(...).save_pretrained(folder) writes it."
        )
    if cache is None:
        temporary = Path(tempfile.mkdtemp(prefix="lexiscope-tokenizer-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        _write_tokenizer(folder, temporary)
        return temporary / "tokenizer.json"
    digest = hashlib.sha256(f"transformers {version('transformers')}\n".encode())
    for name in (*FILES, "config.json"):
        content = (folder / name).read_bytes() if (folder / name).is_file() else b""
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = cache / "tokenizers" / digest.hexdigest()[:32]
    return make_folder_once(target, lambda target: _write_tokenizer(folder, target)) / "tokenizer.json"


def _write_tokenizer(folder: Path, target: Path) -> None:
    """Write tokenizer.json into `target` by means of the tokenizer class that the checkpoint's settings name: always a
    class of transformers, so that no code of the checkpoint runs."""
    settings = {name: _read_object(folder / name) for name in _SETTINGS if (folder / name).is_file()}
    files = [name for names in VOCABULARIES for name in names if (folder / name).is_file()]
    if "vocab.json" in files:
        _read_object(folder / "vocab.json")
    from transformers import AutoTokenizer  # takes seconds, and most checkpoints need none of it

    auto: Any = AutoTokenizer
    try:
        made = auto.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False, use_fast=True)
        tokenizer = made.backend_tokenizer
        tokenizer.save(str(target / "tokenizer.json"))
    except Exception as error:  # the library passes on whatever its parts raise
        named = settings.get("tokenizer_config.json", {}).get("tokenizer_class", "its family's kind")
        reason = " ".join(str(error).split())[:200]
        raise BadWeights(
            f"In {folder}, {' and '.join(files)} do not make a tokenizer ({named}): {reason}. "
            "Put its tokenizer.json there; AutoTokenizer.from_pretrained(...).save_pretrained(folder) writes it."
        ) from error
    for token, number in settings.get("added_tokens.json", {}).items():
        if tokenizer.token_to_id(token) != number:
            raise BadWeights(f"{folder / 'added_tokens.json'} gives {token!r} the number {number}, which leaves a gap.")


def _read_object(path: Path, *needed: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadWeights(f"{path} cannot be read as JSON: {error}. Get the tokenizer's files again.") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(key), dict) for key in needed):
        raise BadWeights(f"{path} is not a tokenizer's file: it lacks {needed or 'an object'}. Get it again.")
    return content
