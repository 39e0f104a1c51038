"""A token's page: the vectors that read, write, avoid or suppress it, the heads that map it, and tokens like it.
Reading inverted lists is for places.py and paired_places.py."""

import numpy as np

from app.page_types import PairPlace, Role, RoleList, TokenPageView
from app.token_search import token_search
from app.view_types import ScoredView
from app.views.paired_places import paired_places
from app.views.parameters import token_view
from app.views.parts import cut, place_of, token_views
from app.views.places import Entries, Shards, best_first, entries, kind_of, over_layers
from precompute.errors import IndexFault
from precompute.index import Index
from precompute.shape import ENDS, LENSES, MATRICES, PRESETS, SIDES

ROLES: dict[tuple[str, str], Role] = {
    ("reads", "top"): "reads",
    ("reads", "bottom"): "avoids",
    ("writes", "top"): "writes",
    ("writes", "bottom"): "suppresses",
}
FIRST_PLACES, FIRST_PAIRS = 10, 20  # of each kind and end, and of all pairs, on a page of all kinds

Found = tuple[int, tuple[RoleList, ...], tuple[int, tuple[PairPlace, ...]]]


def token_page(
    index: Index,
    token: int,
    lens: str = "dot",
    preset: str = "all",
    kind: str | None = None,
    page: int = 1,
    size: int = 100,
) -> TokenPageView:
    raw = index.tokens.raw(token)
    lens_at, preset_at = place_of("lens", lens, LENSES), place_of("preset", preset, PRESETS)
    if kind is not None:
        place_of("kind", kind, (*index.shape.kinds, *MATRICES))

    def make(shards: Shards) -> Found:
        if kind is None:
            cut(0, page, size)
            first = slice(0, FIRST_PAIRS)
            pairs = paired_places(index.tokens, shards, token, lens_at, preset_at, MATRICES, lambda _: first)
            return 1, _roles(index, shards, token, lens_at), pairs
        pages = 1

        def window(total: int) -> slice:
            nonlocal pages
            pages, chosen = cut(total, page, size)
            return chosen

        if kind in MATRICES:
            pairs = paired_places(index.tokens, shards, token, lens_at, preset_at, (kind,), window)
            return pages, (), pairs
        pages, roles = _roles_of_kind(index, shards, token, lens_at, kind, page, size)
        return pages, roles, (0, ())

    (pages, roles, (pairs_total, pairs)), missing = over_layers(index, make)
    return TokenPageView.of(
        model=index.manifest.model,
        lens=lens,
        preset=preset,
        token=token_view(index.tokens, token),
        bytes=raw.hex(" "),
        kind=kind,
        page=page,
        pages=pages,
        variants=token_views(index.tokens, token_search(index.tokens).variants(token)),
        nearest=_nearest(index, token),
        roles=roles,
        pairs=pairs,
        pairs_total=pairs_total,
        missing=missing,
    )


def _roles(index: Index, shards: Shards, token: int, lens: int) -> tuple[RoleList, ...]:
    """The best of every kind and end."""
    lists: list[RoleList] = []
    for end in range(len(ENDS)):
        by_kind = _by_kind(index, shards, token, lens, end)
        for kind, found in by_kind.items():
            lists.append(_role(index, shards, token, lens, end, kind, found, slice(0, FIRST_PLACES)))
    order = list(ROLES.values())
    return tuple(sorted(lists, key=lambda found: order.index(found.role)))


def _roles_of_kind(
    index: Index, shards: Shards, token: int, lens: int, kind: str, page: int, size: int
) -> tuple[int, tuple[RoleList, ...]]:
    """All of one kind, both ends page by page; the shorter one is empty on the last pages."""
    found = [_by_kind(index, shards, token, lens, end)[kind] for end in range(len(ENDS))]
    pages, window = cut(max(map(len, found)), page, size)
    roles = [_role(index, shards, token, lens, end, kind, of_end, window) for end, of_end in enumerate(found)]
    return pages, tuple(roles)


def _by_kind(index: Index, shards: Shards, token: int, lens: int, end: int) -> dict[str, Entries]:
    found = entries(shards, index.shape, token, lens, end)
    kinds = kind_of(index.shape)[0][found.vector]
    return {kind: found.at(np.flatnonzero(kinds == at)) for at, kind in enumerate(index.shape.kinds)}


def _role(
    index: Index, shards: Shards, token: int, lens: int, end: int, kind: str, found: Entries, window: slice
) -> RoleList:
    return RoleList.of(
        role=ROLES[SIDES[kind], ENDS[end]],
        kind=kind,
        end=ENDS[end],
        total=len(found),
        places=tuple(best_first(shards, index.shape, found, token, lens, end, window)),
    )


def _nearest(index: Index, token: int) -> tuple[ScoredView, ...] | None:
    try:
        found = index.neighbours(token)
    except IndexFault:
        return None
    if found is None:
        return None
    ids, scores = found
    texts = index.tokens.texts
    listed = zip(ids.tolist(), scores.tolist(), strict=True)
    return tuple([{"id": near, "token": texts[near], "score": score} for near, score in listed])
