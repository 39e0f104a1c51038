"""What several pages need: arguments checked, lists cut into pages, ids turned into tokens.
Reading lists out of an index is for the pages themselves."""

import math
from collections.abc import Iterable, Sequence

from app.views.view_types import TokenView
from precompute.errors import BadRequest, NotFound
from precompute.index.tokens import TokenTable


def place_of(what: str, asked: str, known: Sequence[str]) -> int:
    """Where a name stands among the known ones, which is how shards number lenses, presets and kinds."""
    if asked not in known:
        raise NotFound(f"{what} {asked!r}: there are {', '.join(known)}")
    return known.index(asked)


def cut(total: int, page: int, size: int | None) -> tuple[int, slice]:
    """How many pages there are (an empty list has one), and what stands on this one; without a size, everything."""
    if size is None:
        size = max(1, total)
    if size < 1:
        raise BadRequest(f"a page of {size} entries: it has 1 or more")
    pages = max(1, -(-total // size))
    if not 1 <= page <= pages:
        raise NotFound(f"page {page}: there {'is only page 1' if pages == 1 else f'are pages 1 to {pages}'}")
    return pages, slice((page - 1) * size, min(page * size, total))


def part(page: int, size: int | None) -> slice:
    """What stands on a page, of a list that may be shorter: `cut` says so once its length is known."""
    if size is None:
        return slice(0, None)
    return slice(max(0, page - 1) * size, max(0, page) * size)


def token_views(tokens: TokenTable, ids: Iterable[int]) -> tuple[TokenView, ...]:
    texts = tokens.texts
    return tuple([{"id": token, "token": texts[token]} for token in ids])


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
