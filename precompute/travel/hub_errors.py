"""What the Hub's client can raise, in words that a person can act on. A token is the client's own affair: no message
of ours holds one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
    XetDownloadError,
)

from precompute.errors import LexiscopeError, NotPublished, SourceUnreachable, TravelError
from precompute.weights.folders import raise_if_disk_full

_NO_ANSWER = (LocalEntryNotFoundError, XetDownloadError, FileMetadataError, httpx2.HTTPError, ConnectionError)

_NOT_TAKEN = ("LFS batch API returned errors", "Invalid metadata in README.md")  # no room left; a card that is no YAML


@contextmanager
def in_words(repository: str, revision: str | None, folder: Path, writing: bool = False) -> Iterator[None]:
    """`folder` is where files are written, for who has no room left there."""
    try:
        yield
    except LexiscopeError:
        raise
    except Exception as error:
        raise_if_disk_full(error, folder)
        if known := _known(error, repository, revision, writing):
            raise known from error
        raise


def _known(error: Exception, repository: str, revision: str | None, writing: bool) -> LexiscopeError | None:
    if isinstance(error, ValueError) and str(error).startswith(_NOT_TAKEN):
        return TravelError(f"The Hub does not take this for {repository}: {' '.join(str(error).split())[:400]}")
    cause: BaseException | None = error
    while cause is not None:  # the client wraps what it met: an upload's failure, why the cache was looked at
        match cause:
            case HFValidationError():
                return NotPublished(f"{repository!r} is no repository of the Hub: give owner/name")
            case GatedRepoError():
                return NotPublished(
                    f"The Hub gives out {repository} only to people who accepted its terms: accept them on its page, "
                    "run `hf auth login`, and try again"
                )
            case RevisionNotFoundError():
                return NotPublished(
                    f"{repository} has no revision {revision}: give a branch, tag or commit that its page lists"
                )
            case RepositoryNotFoundError() | HfHubHTTPError(response=httpx2.Response(status_code=401 | 403)):
                return _refused(repository, writing)
            case HfHubHTTPError(response=httpx2.Response(status_code=409 | 412)) if writing:
                return TravelError(f"{repository} was changed by somebody else meanwhile: run the same command again")
            case HfHubHTTPError():
                return SourceUnreachable(
                    f"The Hub answers with status {cause.response.status_code} when it is asked for {repository}: try "
                    "again later, the same command goes on"
                )
        cause = cause.__cause__
    if isinstance(error, _NO_ANSWER):
        return _no_answer(error, repository)
    return None


def _refused(repository: str, writing: bool) -> NotPublished:
    if writing:
        return NotPublished(
            f"The Hub does not let you write to {repository}: run `hf auth login` with a token that may write, or set "
            "HF_TOKEN, and check that the owner in owner/name is you or your organisation"
        )
    return NotPublished(
        f"There is no public dataset repository {repository} on the Hub, and no folder of this name here. Check the "
        "spelling (owner/name); for a private one run `hf auth login` first"
    )


def _no_answer(error: Exception, repository: str) -> SourceUnreachable:
    if constants.HF_HUB_OFFLINE:
        return SourceUnreachable(f"{repository} is on the Hub, and HF_HUB_OFFLINE is set: unset it, or give a folder")
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SourceUnreachable(
        f"The Hub cannot be reached for {repository} ({why}): check the network, then run this again"
    )
