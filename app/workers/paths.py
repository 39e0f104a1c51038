"""Where a worker takes which ask, and what it answers there: the same table for the server and the worker.
The shapes are in wire.py."""

from typing import TypeAlias

from app.wire import (
    PairsReadingAnswer,
    PairsReadingAsk,
    PromptAnswer,
    PromptAsk,
    ReadingAnswer,
    ReadingAsk,
    RelationAnswer,
    RelationAsk,
    SeedsAnswer,
    SeedsAsk,
)

Ask: TypeAlias = SeedsAsk | RelationAsk | PromptAsk | ReadingAsk | PairsReadingAsk
Answer: TypeAlias = SeedsAnswer | RelationAnswer | PromptAnswer | ReadingAnswer | PairsReadingAnswer

PATHS: dict[type[Ask], tuple[str, type[Answer]]] = {
    SeedsAsk: ("/seeds", SeedsAnswer),
    RelationAsk: ("/relation", RelationAnswer),
    PromptAsk: ("/prompt", PromptAnswer),
    ReadingAsk: ("/reading", ReadingAnswer),
    PairsReadingAsk: ("/pairs-reading", PairsReadingAnswer),
}
WEIGHTS = "x-lexiscope-weights"  # the hash of those that the index was made from
