"""Patterns and messages of a run: a worker's lists with their ids turned into tokens."""

from dataclasses import dataclass

from typing_extensions import TypedDict

from lexiscope.app.views.seeds import from_worker
from lexiscope.app.views.tokens import ScoredToken
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire import answers as panels
from lexiscope.precompute.live.wire.answers import Scored


class Look(TypedDict):
    """The other end of attention, and how much of it."""

    position: int
    weight: float


class Message(Look):
    """What a position sends to one that attends to it."""

    tokens: list[ScoredToken]


class HeadPattern(TypedDict):
    """A head at the chosen position."""

    head: int
    pattern: list[ScoredToken]  # what the position looks for
    found_by: list[ScoredToken]  # whose queries would find it
    found_from: Look | None  # the other position that looks at it most; None if no other sees it
    message: list[ScoredToken]  # its own
    messages: list[Message]  # from the positions it attends to most


class TokenPattern(TypedDict):
    """A position at the chosen head."""

    position: int
    pattern: list[ScoredToken]
    looks_at: Look  # most
    found_by: list[ScoredToken]
    found_from: Look | None
    message: list[ScoredToken]


@dataclass(frozen=True)
class PatternLists:
    """Turns a worker's lists into those of a page: k tokens each, beside hubs that will be left out, if the worker gave
    so many."""

    index: Index
    k: int
    hubs: frozenset[int]

    def head(self, head: panels.HeadPattern) -> HeadPattern:
        return {
            "head": head.head,
            "pattern": self._tokens(head.pattern),
            "found_by": self._tokens(head.found_by),
            "found_from": _look(head.found_from) if head.found_from else None,
            "message": self._tokens(head.message),
            "messages": [
                {"position": message.position, "weight": message.weight, "tokens": self._tokens(message.tokens)}
                for message in head.messages
            ],
        }

    def token(self, token: panels.TokenPattern) -> TokenPattern:
        return {
            "position": token.position,
            "pattern": self._tokens(token.pattern),
            "looks_at": _look(token.looks_at),
            "found_by": self._tokens(token.found_by),
            "found_from": _look(token.found_from) if token.found_from else None,
            "message": self._tokens(token.message),
        }

    def _tokens(self, entries: tuple[Scored, ...]) -> list[ScoredToken]:
        kept = [rank for rank, entry in enumerate(entries, 1) if entry.id not in self.hubs]
        return from_worker(self.index, entries[: kept[self.k - 1] if len(kept) >= self.k else len(entries)])


def _look(look: panels.Look) -> Look:
    return {"position": look.position, "weight": look.weight}
