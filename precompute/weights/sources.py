"""Find the model that a user names, and turn it into a checkpoint: demo, minilm, a folder, a .gguf file, or a Hub
id."""

import hashlib
import os
from pathlib import Path

from lexiscope.precompute.errors import NoSafetensors, SourceNotFound, WeightsError
from lexiscope.precompute.index.origin import PUBLISHED
from lexiscope.precompute.weights import architectures, hub
from lexiscope.precompute.weights.checkpoint import SINGLE_FILE, Checkpoint
from lexiscope.precompute.weights.folders import make_folder_once
from lexiscope.precompute.weights.gguf import convert
from lexiscope.precompute.weights.published import open_published

ALIASES = {
    "gpt2": "openai-community/gpt2",
    "gpt2-medium": "openai-community/gpt2-medium",
    "gpt2-large": "openai-community/gpt2-large",
    "gpt2-xl": "openai-community/gpt2-xl",
    "distilgpt2": "distilbert/distilgpt2",
}


def resolve(name: str, *, revision: str | None = None, cache: Path) -> Checkpoint:
    """Return the checkpoint of the model that `name` means. Converted files are kept in `cache`, Hub downloads in the
    Hub's cache."""
    path = Path(os.path.expanduser(name))
    is_gguf = name.lower().endswith(".gguf")
    is_folder = _is_checkpoint_folder(name, path)
    if revision is not None and (name in PUBLISHED or is_gguf or is_folder):
        raise SourceNotFound(f"{name} has no revisions, so {revision!r} cannot be used: only Hub models have them.")
    if name in PUBLISHED:
        return open_published(name, cache)
    if is_folder:
        return Checkpoint.open(path.resolve(), cache=cache)
    if is_gguf:
        return _open_gguf(path, cache)
    if not name or _looks_like_path(name) or os.path.isfile(path):
        raise _refusal(name, path)
    repo_id = ALIASES.get(name, name)
    folder, commit = hub.download(repo_id, revision, lambda config: architectures.model_class(config, repo_id))
    return Checkpoint.open(folder, name=repo_id.split("/")[-1], source=repo_id, revision=commit, cache=cache)


def _is_checkpoint_folder(name: str, path: Path) -> bool:
    """Return True if the name means a folder here. A bare name may be a Hub id although a folder of that name (such as
    an index) is here."""
    return bool(name) and os.path.isdir(path) and (_looks_like_path(name) or (path / "config.json").is_file())


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name


def _refusal(name: str, path: Path) -> WeightsError:
    if not name or not os.path.isfile(path):
        return SourceNotFound(
            f"There is no folder or file {name!r}. Give a folder in the Hub's format, a .gguf file, a Hub id "
            f"(owner/name), {', '.join(PUBLISHED)}, or one of {', '.join(ALIASES)}."
        )
    if path.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl"):
        return NoSafetensors(f"{name} is a pickle, which can run code and is never loaded. Give a safetensors folder.")
    hint = f"Give its folder, {path.parent}, with config.json" if path.suffix == ".safetensors" else "Give a folder"
    return SourceNotFound(f"{name} is a file, but not GGUF. {hint} and {SINGLE_FILE}.")


def _open_gguf(path: Path, cache: Path) -> Checkpoint:
    if not os.path.isfile(path):
        raise SourceNotFound(f"There is no GGUF file {path}. Check the path.")
    path = path.resolve()
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    target = cache / "converted" / f"{content[:32]}-v{convert.VERSION}"
    folder = make_folder_once(target, lambda folder: convert.convert(path, folder))
    return Checkpoint.open(folder, name=path.stem, source=str(path), cache=cache)
