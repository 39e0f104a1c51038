"""Say how long the lists on pages are, and check the numbers and lengths that visitors ask for."""

import math

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.asks import HEAD_TOKENS as HEAD_TOKENS
from lexiscope.precompute.live.wire.asks import LIKELY_TOKENS as LIKELY_TOKENS

VECTOR_ENTRIES = 25  # how many entries of a list are shown, unless the argument k says otherwise
PAIR_ENTRIES = 50


def offered(usual: int, stored: int) -> list[int]:
    """Return the lengths of lists that a page offers; the last is the length of the stored list."""
    return [*(k for k in (usual, 2 * usual) if k < stored), stored]


def reaching(rank: int, usual: int, stored: int) -> int | None:
    """Return the shortest offered length of a list that still shows this rank; None if the usual length does."""
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
    """Return the part of a list that a page shows, as a slice, even if the list is shorter; without a size, it is the
    whole list."""
    if size is None:
        return slice(0, None)
    if size < 1:
        raise BadRequest(f"a page of {size} entries: it has 1 or more")
    return slice(max(0, page - 1) * size, max(0, page) * size)


def count_pages(total: int, page: int, size: int | None) -> int:
    """Return how many pages a list has, at least one; raise NotFound if `page` is not among them."""
    pages = max(1, -(-total // size)) if size else 1
    if not 1 <= page <= pages:
        raise NotFound(f"page {page}: there {'is only page 1' if pages == 1 else f'are pages 1 to {pages}'}")
    return pages


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def list_length(index: Index, k: int | None, usual: int, stored: int) -> int:
    """Return how many entries of each list to show; raise BadRequest if fewer are stored."""
    if k is not None and k > stored > 0:
        model = index.manifest.model
        raise BadRequest(f"k = {k}: lists of {model} hold {stored} entries, so k goes from 1 to {stored}")
    return k or usual
