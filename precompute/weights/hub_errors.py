"""Find out what an exception of the Hub's client means. The message for the user is made by the module that asked the
Hub: hub.py for a model, travel/on_hub.py for a repository of an index."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
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

from lexiscope.precompute.errors import LexiscopeError, first_line
from lexiscope.precompute.weights.folders import raise_if_disk_full

_NO_ANSWER = (LocalEntryNotFoundError, XetDownloadError, FileMetadataError, httpx2.HTTPError, ConnectionError)

_NOT_TAKEN = ("LFS batch API returned errors", "Invalid metadata in README.md")  # no room is left; the card is no YAML


class ErrorKind(Enum):
    NO_ID = auto()  # what was asked for cannot be the name of a repository
    TERMS = auto()  # the repository is given only to people who accepted its terms
    NO_ACCESS = auto()  # no such repository, or none of this user's: the Hub does not tell which
    NO_REVISION = auto()
    NOT_TAKEN = auto()  # the Hub refuses what was sent
    STATUS = auto()  # the Hub answers with the status of another error
    OFFLINE = auto()  # HF_HUB_OFFLINE forbids to use the network
    NO_ANSWER = auto()


@dataclass(frozen=True)
class HubError:
    kind: ErrorKind
    detail: str  # what the client says, in one line
    status: int | None = None  # the status of the Hub's answer, if it gave one


@contextmanager
def explain_hub_errors(folder: Path, explain: Callable[[HubError], LexiscopeError]) -> Iterator[None]:
    """Within this context, replace errors of the Hub's client by the errors that `explain` returns. The client writes
    into `folder`, which is named if the disk is full. Errors of this program itself stay as they are."""
    try:
        yield
    except LexiscopeError:
        raise
    except Exception as error:
        raise_if_disk_full(error, folder)
        if known := _hub_error(error):
            raise explain(known) from error
        raise


def _hub_error(error: Exception) -> HubError | None:
    if isinstance(error, ValueError) and str(error).startswith(_NOT_TAKEN):
        return HubError(ErrorKind.NOT_TAKEN, " ".join(str(error).split())[:400])
    cause: BaseException | None = error
    while cause is not None:  # the client wraps what it met: an upload's failure, why the cache was looked at
        status = cause.response.status_code if isinstance(cause, HfHubHTTPError) else None
        if kind := _kind(cause, status):
            return HubError(kind, first_line(cause), status)
        cause = cause.__cause__
    if isinstance(error, _NO_ANSWER):
        why = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else None  # why the cache was looked at
        return HubError(
            ErrorKind.OFFLINE if constants.HF_HUB_OFFLINE else ErrorKind.NO_ANSWER, first_line(why or error)
        )
    return None


def _kind(error: BaseException, status: int | None) -> ErrorKind | None:
    """Return which kind of error an error means by itself; None if it means none."""
    match error:
        case HFValidationError():
            return ErrorKind.NO_ID
        case GatedRepoError():
            return ErrorKind.TERMS
        case RevisionNotFoundError():
            return ErrorKind.NO_REVISION
        case RepositoryNotFoundError():
            return ErrorKind.NO_ACCESS
        case HfHubHTTPError():
            return ErrorKind.NO_ACCESS if status in (401, 403) else ErrorKind.STATUS
    return None
