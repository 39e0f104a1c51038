"""What server and worker say to each other over HTTP: which path takes which ask, and the shapes of what else is said.
Asks and answers themselves are in precompute/live/wire/."""

from typing import Annotated, TypeAlias

from pydantic import Field, SecretStr

from precompute.index.manifest import Manifest
from precompute.live.wire.prompt import PromptAnswer, PromptAsk
from precompute.live.wire.readings import PairsReadingAnswer, PairsReadingAsk, ReadingAnswer, ReadingAsk
from precompute.live.wire.shared import Wire
from precompute.live.wire.states import StatesAnswer, StatesAsk, StatesReadingAnswer, StatesReadingAsk
from precompute.live.wire.words import (
    RelationAnswer,
    RelationAsk,
    SeedsAnswer,
    SeedsAsk,
    ThroughHeadsAnswer,
    ThroughHeadsAsk,
)

Ask: TypeAlias = (
    SeedsAsk | RelationAsk | ThroughHeadsAsk | PromptAsk | ReadingAsk | PairsReadingAsk | StatesAsk | StatesReadingAsk
)
Answer: TypeAlias = (
    SeedsAnswer
    | RelationAnswer
    | ThroughHeadsAnswer
    | PromptAnswer
    | ReadingAnswer
    | PairsReadingAnswer
    | StatesAnswer
    | StatesReadingAnswer
)

ENDPOINTS: dict[type[Ask], tuple[str, type[Answer]]] = {
    SeedsAsk: ("/seeds", SeedsAnswer),
    RelationAsk: ("/relation", RelationAnswer),
    ThroughHeadsAsk: ("/heads", ThroughHeadsAnswer),
    PromptAsk: ("/prompt", PromptAnswer),
    ReadingAsk: ("/reading", ReadingAnswer),
    PairsReadingAsk: ("/pairs-reading", PairsReadingAnswer),
    StatesAsk: ("/states", StatesAnswer),
    StatesReadingAsk: ("/states-reading", StatesReadingAnswer),
}
EVENTS = "/events"  # after the path of a prompt or of pairs: the same as server-sent events
WEIGHTS_HEADER = "x-lexiscope-weights"  # the hash of the weights that the index was made from
VISITOR_HEADER = "x-lexiscope-visitor"  # a name for who asks (visitors.py); the worker is fair between them
OTHER_WEIGHTS = 409  # the status where the worker has others
BEARER = "Bearer "  # before the token that server and workers share, in the header Authorization


def weights_name(weights_sha256: str, base_sha256: str | None = None) -> str:
    """What a worker and an index must agree on: the hash of the weights, of a difference that of its base, too."""
    return f"{weights_sha256}-{base_sha256}" if base_sha256 else weights_sha256


def weights_name_of(manifest: Manifest) -> str:
    return weights_name(manifest.weights_sha256, manifest.minus.weights_sha256 if manifest.minus else None)


def token_header(token: SecretStr) -> dict[str, str]:
    """By which a worker knows its server; none where there is no token."""
    return {"authorization": BEARER + token.get_secret_value()} if token else {}


class Fault(Wire):
    """Why there is no answer: the same shape as every error of the server."""

    status: int
    title: str
    detail: str


class Progress(Wire):
    """How far a run has come: an event `progress`, before the one event `result` or `fault`."""

    stage: Annotated[str, Field(max_length=200)]
    share: float  # 0 to 1


class Health(Wire):
    model: str
    weights_sha256: str
    device: str
    queue: int  # asks that wait
    busy: bool
    busy_seconds: float  # of the batch that is computed now
    may_ask: bool = True  # whether whoever asked this knows the token, or none is needed
