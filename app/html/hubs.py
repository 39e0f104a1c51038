"""Find the hubs, which are tokens in very many lists, of the page that is being rendered: hubs get a mark, and lists
that are mostly hubs get a note. Macros that write tokens do not get the page, so this module keeps it while it is
rendered."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from lexiscope.app import urls
from lexiscope.app.lists.bias import biased_tokens, is_high_bias
from lexiscope.app.lists.first_tokens import stored_lens
from lexiscope.app.lists.kept_tokens import ARGUMENTS, hubs_of
from lexiscope.app.lists.view import Token
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index

MOSTLY = 0.5  # a list with a larger share of hubs gets a note

_page: ContextVar["_PageHubs | None"] = ContextVar("page", default=None)


@dataclass(frozen=True)
class _PageHubs:
    index: Index
    # the hubs under each lens, kept because a page asks again for each token
    known: dict[str, frozenset[int]] = field(default_factory=dict)
    biased: dict[str, bytes] = field(default_factory=dict)  # under each lens, the tokens that any list may hold


@contextmanager
def page_of(index: Index | None, query: dict[str, str], view: Any = None) -> Iterator[None]:
    """Keep the index of a page, and the arguments that its links pass on, while the page is rendered."""
    kept = {name: query[name] for name in ARGUMENTS if name in query}
    chooses_pairs = hasattr(view, "preset") and getattr(view, "pairs", ()) is not None
    if chooses_pairs or kept.get("preset") != "words":  # a choice of pairs is of one page
        kept.pop("preset", None)
    on_page, in_links = _page.set(_PageHubs(index) if index else None), urls.taken_along.set(kept)
    pinned = urls.pinned.set((index.manifest.model, query.get("pin", "")) if index else ("", ""))
    try:
        yield
    finally:
        _page.reset(on_page)
        urls.taken_along.reset(in_links)
        urls.pinned.reset(pinned)


def marked(lens: str) -> frozenset[int]:
    """Return the hubs (tokens in very many lists) under a lens, dot or cosine."""
    if not (page := _page.get()):
        return frozenset()
    if lens not in page.known:
        try:
            page.known[lens] = hubs_of(page.index, lens)
        except IndexFault:  # a page without marks is better than no page
            page.known[lens] = frozenset()
    return page.known[lens]


def count(entries: Sequence[Any], lens: str) -> int:
    """Count the entries of a list that are hubs (tokens in very many lists), or pairs that contain a hub."""
    hubs = marked(lens)
    if not hubs:
        return 0
    ids = (({entry["from"]["id"], entry["to"]["id"]} if "from" in entry else {entry["id"]}) for entry in entries)
    return sum(not hubs.isdisjoint(of_entry) for of_entry in ids)


def unless_hidden(tokens: Sequence[Token], lens: str) -> list[Token]:
    """Return the tokens that a page names in its text, without hubs (tokens in very many lists) if the page hides
    them."""
    hubs = marked(lens) if "hubs" in urls.taken_along.get() else frozenset()
    return [token for token in tokens if token["id"] not in hubs]


def crowded(lists: Sequence[Sequence[Any]], lens: str) -> int:
    """Count the lists that consist mostly of hubs (tokens in very many lists)."""
    return sum(are_most(entries, lens) for entries in lists)


def are_most(entries: Sequence[Any], lens: str) -> bool:
    """Return True if most entries of a list are hubs (tokens in very many lists). On a page about the difference of two
    models it is always False: there a token is in very many lists because it is what the fine-tuning was about."""
    if (page := _page.get()) and page.index.manifest.minus:
        return False
    return count(entries, lens) > MOSTLY * len(entries)


def is_bias(entries: Sequence[Any], lens: str) -> bool:
    """Return True if most of a list's first tokens are such as any list may hold: frequent, not learned, special, or
    hubs. Return False for pairs and, as for hubs, on a page about the difference of two models."""
    page = _page.get()
    if not (page and entries and "id" in entries[0]):
        return False
    if lens not in page.biased:
        try:
            # of a difference, a token is in very many lists because it is what the fine-tuning was about
            minus = page.index.manifest.minus
            page.biased[lens] = b"" if minus else biased_tokens(page.index, stored_lens(page.index, lens))
        except IndexFault:
            page.biased[lens] = b""
    return is_high_bias(page.biased[lens], [entry["id"] for entry in entries])


def better_lens(index: Index, lens: str) -> str | None:
    """Return the lens (dot or cosine) with the fewest hubs in the index, or None if the given lens has as few."""
    fewest = min(index.stored.lenses, key=lambda each: len(hubs_of(index, each)))
    return fewest if len(hubs_of(index, fewest)) < len(hubs_of(index, lens)) else None
