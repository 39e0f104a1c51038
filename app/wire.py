"""What the server asks of the worker and what it answers, as JSON over HTTP.
Asks and answers are those of precompute/live/wire.py; pages are for views/; both sides check what they receive."""

from precompute.live.wire import (
    ActiveNeuron,
    ChosenNeuron,
    Convention,
    CoverageRow,
    EvolutionRow,
    HeadAttention,
    HeadOff,
    HeadPattern,
    HeadReading,
    HeadRelation,
    Intervention,
    Likely,
    Message,
    NeuronSet,
    PairsReadingAnswer,
    PairsReadingAsk,
    PairUsed,
    Panel,
    PromptAnswer,
    PromptAsk,
    Reading,
    ReadingAnswer,
    ReadingAsk,
    RelationAnswer,
    RelationAsk,
    Scored,
    ScoredPair,
    SeedResult,
    SeedsAnswer,
    SeedsAsk,
    Term,
    TermUsed,
    Wire,
    WordPair,
)

__all__ = [
    "ActiveNeuron",
    "ChosenNeuron",
    "Convention",
    "CoverageRow",
    "EvolutionRow",
    "Fault",
    "HeadAttention",
    "HeadOff",
    "HeadPattern",
    "HeadReading",
    "HeadRelation",
    "Health",
    "Intervention",
    "Likely",
    "Message",
    "NeuronSet",
    "PairUsed",
    "PairsReadingAnswer",
    "PairsReadingAsk",
    "Panel",
    "Progress",
    "PromptAnswer",
    "PromptAsk",
    "Reading",
    "ReadingAnswer",
    "ReadingAsk",
    "RelationAnswer",
    "RelationAsk",
    "Scored",
    "ScoredPair",
    "SeedResult",
    "SeedsAnswer",
    "SeedsAsk",
    "Term",
    "TermUsed",
    "Wire",
    "WordPair",
]


class Fault(Wire):
    """Why there is no answer: the same shape as every error of the server."""

    status: int
    title: str
    detail: str


class Progress(Wire):
    """How far a streamed run has come: an event `progress`, before the one event `result` or `fault`."""

    stage: str
    share: float  # 0 to 1


class Health(Wire):
    model: str
    weights_sha256: str
    device: str
    queue: int  # asks that wait
    busy: bool
    busy_seconds: float  # of the batch that is computed now
