"""Read an index in a dataset repository of the Hugging Face Hub, at one commit, and say what the Hub refuses. The Hub's
client downloads the files; after a kill it begins a file anew."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils.tqdm import disable_progress_bars, tqdm

from lexiscope.precompute.errors import (
    AlteredFile,
    ForeignIndex,
    LexiscopeError,
    NotPublished,
    SourceUnreachable,
    TravelError,
)
from lexiscope.precompute.index.manifest import FileEntry
from lexiscope.precompute.travel.published import Step
from lexiscope.precompute.weights.hub_errors import ErrorKind, HubError, explain_hub_errors

DATASET = "dataset"
_CLIENT_FOLDER = ".cache"  # the folder below the download folder in which the client keeps unfinished files


class IndexOnHub:
    def __init__(self, repository: str, revision: str | None) -> None:
        """Ask for the current commit of the revision, so that later pushes change nothing."""
        quiet()
        self.repository = repository
        with in_words(repository, revision, Path()):
            info = huggingface_hub.HfApi().dataset_info(repository, revision=revision, files_metadata=True)
        if not info.sha:
            raise ForeignIndex(f"The Hub does not say at which commit {repository} is: it is no repository of files")
        self.commit: str = info.sha
        self.where = f"{repository} at {self.commit[:12]}"
        self.files: Mapping[str, RepoSibling] = {file.rfilename: file for file in info.siblings or ()}

    def read(self, name: str, most_bytes: int) -> bytes | None:
        file = self.files.get(name)
        if file is None:
            return None
        if file.size is not None and file.size > most_bytes:
            raise ForeignIndex(f"{name} in {self.where} is longer than {most_bytes} bytes: it is no file of an index")
        with tempfile.TemporaryDirectory(prefix="lexiscope-") as folder:
            return self._download(name, Path(folder)).read_bytes()

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        """Download a file, after comparing the repository's size and hash of it with the manifest."""
        file = self.files.get(entry.file)
        if file is None:
            raise AlteredFile(f"{self.where} lists {entry.file} in its manifest and does not hold it")
        if file.size not in (None, entry.bytes) or (file.lfs and file.lfs.sha256 != entry.sha256):
            raise AlteredFile(f"{entry.file} in {self.where} is not the file that its manifest lists")
        shutil.rmtree(folder / _CLIENT_FOLDER, ignore_errors=True)  # the client cannot use files that a kill left there
        return self._download(entry.file, folder, _bar_that_tells(step, entry.bytes))

    def holds(self, name: str, content: bytes) -> bool:
        """Return True if the file in the repository has this content, which is decided by the hash that the repository
        gives."""
        file = self.files.get(name)
        if file is None:
            return False
        if file.lfs:
            return file.lfs.sha256 == hashlib.sha256(content).hexdigest()
        as_git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        return file.blob_id == as_git.hexdigest()

    def _download(self, name: str, folder: Path, bar: type[tqdm] | None = None) -> Path:
        with in_words(self.repository, self.commit, folder):
            path = huggingface_hub.hf_hub_download(
                self.repository, name, repo_type=DATASET, revision=self.commit, local_dir=folder, tqdm_class=bar
            )
        return Path(path)


def _bar_that_tells(step: Step, n_bytes: int) -> type[tqdm]:
    """Make a progress bar for the client that draws nothing and calls `step`, because we draw our own bar."""

    class Bar(tqdm):
        def update(self, n: float | None = 1) -> None:
            step((n or 0) / n_bytes)
            super().update(n)

        def update_transfer(self, _: float) -> None:
            """Ignore network traffic, which the client would otherwise show in a second bar."""

        def set_transfer_postfix_str(self, *_: object, **__: object) -> None:
            pass

    return Bar


def quiet() -> None:
    """Turn off the client's bars, which would be drawn over ours, unless HF_HUB_DISABLE_PROGRESS_BARS is set."""
    if constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
        disable_progress_bars()


@contextmanager
def in_words(repository: str, revision: str | None, folder: Path, writing: bool = False) -> Iterator[None]:
    """Raise errors of the Hub's client as errors of Lexiscope; `folder` is where files are written, for the message
    about a full disk."""
    with explain_hub_errors(folder, lambda error: _explain(error, repository, revision, writing)):
        yield


def _explain(error: HubError, repository: str, revision: str | None, writing: bool) -> LexiscopeError:
    match error.kind:
        case ErrorKind.NO_ID:
            return NotPublished(f"{repository!r} is no repository of the Hub: give owner/name")
        case ErrorKind.TERMS:
            return NotPublished(
                f"The Hub gives out {repository} only to people who accepted its terms: accept them on its page, "
                "run `hf auth login`, and try again"
            )
        case ErrorKind.NO_REVISION:
            return NotPublished(
                f"{repository} has no revision {revision}: give a branch, tag or commit that its page lists"
            )
        case ErrorKind.NO_ACCESS if writing:
            return NotPublished(
                f"The Hub does not let you write to {repository}: run `hf auth login` with a token that may write, or "
                "set HF_TOKEN, and check that the owner in owner/name is you or your organisation"
            )
        case ErrorKind.NO_ACCESS:
            return NotPublished(
                f"There is no public dataset repository {repository} on the Hub, and no folder of this name here. "
                "Check the spelling (owner/name); for a private one run `hf auth login` first"
            )
        case ErrorKind.NOT_TAKEN:
            return TravelError(f"The Hub does not take this for {repository}: {error.detail}")
        case ErrorKind.STATUS if writing and error.status in (409, 412):
            return TravelError(f"{repository} was changed by somebody else meanwhile: run the same command again")
        case ErrorKind.STATUS:
            return SourceUnreachable(
                f"The Hub answers with status {error.status} when it is asked for {repository}: try again later, the "
                "same command goes on"
            )
        case ErrorKind.OFFLINE:
            return SourceUnreachable(
                f"{repository} is on the Hub, and HF_HUB_OFFLINE is set: unset it, or give a folder"
            )
        case ErrorKind.NO_ANSWER:
            return SourceUnreachable(
                f"The Hub cannot be reached for {repository} ({error.detail}): check the network, then run this again"
            )
