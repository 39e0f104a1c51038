"""How much of a list a page shows: the usual length, the others on offer, and the one that reaches a rank."""

from lexiscope.precompute.live.wire.asks import HEAD_TOKENS as HEAD_TOKENS
from lexiscope.precompute.live.wire.asks import LIKELY_TOKENS as LIKELY_TOKENS

VECTOR_ENTRIES = 25  # of a list, unless k says otherwise
PAIR_ENTRIES = 50


def offered(usual: int, stored: int) -> list[int]:
    """Lengths to choose from, the last of them all there is."""
    return [*(k for k in (usual, 2 * usual) if k < stored), stored]


def reaching(rank: int, usual: int, stored: int) -> int | None:
    """The k of the shortest list on offer that holds this rank; None where that is the usual one."""
    if rank <= usual:
        return None
    return next((k for k in offered(usual, stored) if k >= rank), stored)
