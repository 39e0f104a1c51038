"""How long lists on pages are, and checks of the numbers and lengths that visitors ask for."""

import math

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.index import Index
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


def check_number(index: Index, what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise NotFound(f"{what} {number}: {index.manifest.model} has {what}s 0 to {count - 1} in each layer")


def check_length(k: int | None) -> None:
    if k is not None and k < 1:
        raise NotFound(f"k = {k}: a list is cut to 1 entry or more")


def page_slice(page: int, size: int | None) -> slice:
    """What stands on a page of a list, whether or not there is so much; without a size, everything."""
    if size is None:
        return slice(0, None)
    if size < 1:
        raise BadRequest(f"a page of {size} entries: it has 1 or more")
    return slice(max(0, page - 1) * size, max(0, page) * size)


def count_pages(total: int, page: int, size: int | None) -> int:
    """How many pages there are, of which this must be one; an empty list has one."""
    pages = max(1, -(-total // size)) if size else 1
    if not 1 <= page <= pages:
        raise NotFound(f"page {page}: there {'is only page 1' if pages == 1 else f'are pages 1 to {pages}'}")
    return pages


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def list_length(index: Index, k: int | None, usual: int, stored: int) -> int:
    """How many entries of each list are shown; BadRequest where so many are not stored."""
    if k is not None and k > stored > 0:
        model = index.manifest.model
        raise BadRequest(f"k = {k}: lists of {model} hold {stored} entries, so k goes from 1 to {stored}")
    return k or usual
