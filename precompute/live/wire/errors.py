"""Define why a live page cannot be answered, as one tree of errors. A question that is itself wrong raises NotFound or
BadRequest.

LexiscopeError (precompute/errors.py)
├── NoMemory              the device has too little memory even for one ask alone
└── LiveError
    ├── LiveOff      404  there is no worker, because of a setting or because torch is not installed
    ├── LiveDown     503  the worker starts, or cannot be used
    │   ├── LiveFull          too many asks wait already
    │   ├── TimedOut          the answer took longer than request_seconds
    │   ├── WorkerGone        the worker cannot be reached, or has died
    │   ├── OtherWeights      the worker has other weights than the index
    │   ├── TokenRefused      the worker does not know this server
    │   └── NotAWorker        what answers is something else
    ├── TooLarge     413  the ask is over a limit; the message has the number
    ├── LiveFailed   500  an error of the program in the worker; its log says more
    └── VisitorGone  499  nobody reads the answer
"""

from http import HTTPStatus

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound, OtherBuild
from lexiscope.precompute.live.wire.protocol import ErrorAnswer

STRANGER = "what answers in the worker's place is no worker of this version"
MOST_DETAIL = 2000  # characters of what a worker says is wrong
# Others have HTTP's own phrase.
TITLES = {410: "Built anew", 422: "Cannot be answered", 499: "Nobody waits", 503: "Not available"}


class Cancelled(Exception):
    """Raised when nobody waits for the answer any more. Users never see this."""


class NoMemory(LexiscopeError):
    """The device has too little memory even for a single ask."""


class LiveError(LexiscopeError):
    """An error of a live page. `retry_after` is the number of seconds after which it is worth asking again; None if it
    is not."""

    status = 503

    def __init__(self, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LiveOff(LiveError):
    status = 404


class LiveDown(LiveError):
    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message, retry_after)


class LiveFull(LiveDown):
    pass


class TimedOut(LiveDown):
    pass


class WorkerGone(LiveDown):
    """The connection to a worker broke. `answered` is True if there had been a connection, so that asking once more may
    help."""

    def __init__(self, message: str, retry_after: int = 10, *, answered: bool = False) -> None:
        super().__init__(message, retry_after)
        self.answered = answered


class OtherWeights(LiveDown):
    pass


class TokenRefused(LiveDown):
    pass


class NotAWorker(LiveDown):
    def __init__(self) -> None:
        super().__init__(STRANGER, retry_after=10)


class TooLarge(LiveError):
    status = 413


class LiveFailed(LiveError):
    status = 500


class VisitorGone(LiveError):
    status = 499


def status_of(error: LexiscopeError) -> int:
    """Return the HTTP status with which a visitor is told of an error."""
    match error:
        case OtherBuild():  # not 404, so that a program can tell it from a neuron that never existed
            return 410
        case NotFound():
            return 404
        case BadRequest():
            return 422
        case LiveError():
            return error.status
        case _:
            return 503


def title_of(status: int) -> str:
    return TITLES.get(status) or HTTPStatus(status).phrase


def error_of(answer: ErrorAnswer, retry_after: int | None = None) -> LexiscopeError:
    """Return the error for an error answer of a worker: its class by the status, its text by the detail."""
    detail = answer.detail if len(answer.detail) <= MOST_DETAIL else answer.detail[:MOST_DETAIL] + "…"
    match answer.status:
        case 404:
            return NotFound(detail)
        case 413:
            return TooLarge(detail)
        case 503:
            return LiveFull(detail, retry_after or 5)
        case 408 | 504:
            return TimedOut(detail, retry_after or 10)
        case 409:
            return OtherWeights(detail, retry_after or 10)
        case status if 400 <= status < 500:
            return BadRequest(detail)
        case _:
            return LiveFailed(detail)
