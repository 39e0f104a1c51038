"""Define what the server and a worker send each other over HTTP beside asks and answers: headers, errors, progress,
state."""

from typing import Annotated

from pydantic import Field, SecretStr

from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.live.wire.fields import Wire

EVENTS = "/events"  # after the path of an ask: the same answer as server-sent events
WEIGHTS_HEADER = "x-lexiscope-weights"  # the hash of the weights that the index was made from
VISITOR_HEADER = "x-lexiscope-visitor"  # a name for the visitor who asks; the worker is fair between visitors
OTHER_WEIGHTS = 409  # the status of the answer if the worker has other weights
MOST_ANSWER_BYTES = 1 << 28  # the longest is a prompt's attention: 2,000,000 weights of some 20 digits each
MOST_RETRY_SECONDS = 3600  # the longest wait that an answer may ask for, in its header Retry-After
BEARER = "Bearer "  # before the token that server and workers share, in the header Authorization


def weights_name(weights_sha256: str, base_sha256: str | None = None) -> str:
    """Return the text in which a worker and an index must agree: the hash of the weights, for a difference also of its
    base."""
    return f"{weights_sha256}-{base_sha256}" if base_sha256 else weights_sha256


def weights_name_of(manifest: Manifest) -> str:
    return weights_name(manifest.weights_sha256, manifest.minus.weights_sha256 if manifest.minus else None)


def token_header(token: SecretStr) -> dict[str, str]:
    """Return the header by which a worker recognises its server; an empty dict if there is no token."""
    return {"authorization": BEARER + token.get_secret_value()} if token else {}


class ErrorAnswer(Wire):
    """The reason why there is no answer, in the same shape as every error of the server."""

    status: int
    title: str
    detail: str


class Progress(Wire):
    """The share of a run that is done, sent as an event `progress`, before the one event `result` or `fault`."""

    stage: Annotated[str, Field(max_length=200)]
    share: float  # 0 to 1


class Health(Wire):
    model: str
    weights_sha256: str
    device: str
    queue: int  # asks that wait
    busy: bool
    busy_seconds: float  # how long the batch that is computed now has taken; 0 if there is none
    may_ask: bool = True  # whether the request for this had the token, or none is needed

    def is_stuck(self, request_seconds: float, worker_silence: float) -> bool:
        """Return True if the worker has computed for longer than anybody waits."""
        return self.busy_seconds >= 2 * request_seconds + worker_silence
