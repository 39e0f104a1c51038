"""Download checkpoints from the Hugging Face Hub, at one commit, into the Hub's own cache: safetensors, JSON and merges
only. The small files are fetched first, so that a model that cannot be used is refused before its weights are
fetched."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.utils.tqdm import disable_progress_bars

from lexiscope.precompute.errors import BadWeights, NoSafetensors, Offline, SourceNotFound, WeightsError
from lexiscope.precompute.weights.checkpoint import INDEX_FILE, SINGLE_FILE, no_safetensors, read_json, weight_files
from lexiscope.precompute.weights.hub_errors import ErrorKind, HubError, explain_hub_errors
from lexiscope.precompute.weights.tokenizer_file import FILES as TOKENIZER_FILES
from lexiscope.precompute.weights.tokenizer_file import has_tokenizer

_SMALL_FILES = ["config.json", INDEX_FILE, *TOKENIZER_FILES]


def download(repo_id: str, revision: str | None, accept: Callable[[dict[str, Any]], object]) -> tuple[Path, str]:
    """Return the snapshot folder and its commit hash; `accept(config)` may refuse the model before the weights are
    fetched."""
    folder = _cached(repo_id, revision) or _fetch(repo_id, revision, _SMALL_FILES)
    commit = folder.name
    if not (folder / "config.json").is_file():
        _no_config(repo_id, commit)
    accept(read_json(folder / "config.json"))
    # An index beside a single file is left over: the single file wins, as it does when the folder is opened.
    if not (folder / INDEX_FILE).is_file() or SINGLE_FILE in _listing(repo_id, commit):
        wanted = [SINGLE_FILE]
    else:
        wanted = weight_files(folder)
    if not all((folder / name).is_file() for name in wanted):
        _fetch(repo_id, commit, wanted)
    if wanted == [SINGLE_FILE] and not (folder / SINGLE_FILE).is_file():
        raise NoSafetensors(no_safetensors(f"The Hub model {repo_id}", _listing(repo_id, commit)))
    return folder, commit


def _cached(repo_id: str, revision: str | None) -> Path | None:
    """Return the cached snapshot of a commit hash, which cannot change, if its small files are here: then the Hub need
    not be asked."""
    if not _is_commit(revision):
        return None
    folder = _snapshot(repo_id, str(revision))
    return folder if (folder / "config.json").is_file() and has_tokenizer(folder) else None


def _is_commit(revision: str | None) -> bool:
    return revision is not None and re.fullmatch("[0-9a-f]{40}", revision) is not None


def _snapshot(repo_id: str, commit: str) -> Path:
    return Path(constants.HF_HUB_CACHE, f"models--{repo_id.replace('/', '--')}", "snapshots", commit)


def _fetch(repo_id: str, revision: str | None, files: list[str]) -> Path:
    if not sys.stderr.isatty() and constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
        disable_progress_bars()
    with explain_hub_errors(Path(constants.HF_HUB_CACHE), lambda error: _explain(error, repo_id, revision)):
        # For a commit hash the download would retry for half a minute before it says that there is no network.
        if _is_commit(revision):
            huggingface_hub.HfApi().model_info(repo_id, revision=revision)
        return Path(huggingface_hub.snapshot_download(repo_id, revision=revision, allow_patterns=files))


def _explain(error: HubError, repo_id: str, revision: str | None) -> WeightsError:
    what = f"{repo_id} at revision {revision}" if revision else repo_id
    match error.kind:
        case ErrorKind.NO_ID:
            return SourceNotFound(
                f"{repo_id!r} is neither a folder or file here nor a possible Hub id ({error.detail}). "
                "Give owner/name as on the Hub, a folder in its format, a .gguf file, or demo."
            )
        case ErrorKind.TERMS:
            return SourceNotFound(
                f"The Hub gives out {what} only to people who accepted its licence. "
                "Accept it on the model's page, run `hf auth login`, and try again."
            )
        case ErrorKind.NO_ACCESS:
            return SourceNotFound(
                f"There is no folder and no public Hub model {repo_id}. Check the spelling (owner/name); "
                "for a private model run `hf auth login` first."
            )
        case ErrorKind.NO_REVISION:
            return SourceNotFound(
                f"The Hub model {repo_id} has no revision {revision}. Give a branch, tag or commit that its page lists."
            )
        case ErrorKind.OFFLINE:
            why, remedy = "HF_HUB_OFFLINE is set", "Unset it once to download"
        case ErrorKind.STATUS:
            why, remedy = f"it answers with status {error.status}", "Try again later"
        case ErrorKind.NO_ANSWER | ErrorKind.NOT_TAKEN:  # nothing is sent to the Hub here
            why, remedy = error.detail, "Check the network"
    return Offline(
        f"{what} is not (completely) in the local Hub cache and the Hub cannot be used: {why}. "
        f"{remedy}, or give a local folder, a .gguf file, or demo."
    )


def _no_config(repo_id: str, commit: str) -> NoReturn:
    ggufs = [name for name in _listing(repo_id, commit) if name.endswith(".gguf")]
    if ggufs:
        raise NoSafetensors(f"The Hub model {repo_id} holds GGUF files. Download one ({ggufs[0]}) and give its path.")
    raise BadWeights(f"The Hub model {repo_id} has no config.json, so it is not a checkpoint of a language model.")


def _listing(repo_id: str, commit: str) -> list[str]:
    """Return the names of a commit's files, as the download has recorded them; empty if another tool filled the
    cache."""
    try:
        return [file.path for file in huggingface_hub.get_cached_repo_tree(repo_id, revision=commit)]
    except huggingface_hub.errors.CachedRepoTreeNotFoundError:
        folder = _snapshot(repo_id, commit)
        return [path.name for path in folder.iterdir()] if folder.is_dir() else []
