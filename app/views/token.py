"""A token's page: the vectors that read, write, avoid or suppress it, the heads that map it, and tokens like it.
Reading inverted lists is for places.py and paired_places.py."""

from collections.abc import Callable

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
    ("ff_up", "top"): "positive",
    ("ff_up", "bottom"): "negative",
}
FIRST_PLACES, FIRST_PAIRS = 10, 20  # of each kind and end, and of each matrix, on a page of all kinds
HUB = 10  # a hub is in this many times more lists than if tokens were drawn at random; so for coherence, too

Pairs = dict[str, tuple[int, tuple[PairPlace, ...]]]  # of each matrix: how many there are, and those shown


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

    def make(shards: Shards) -> tuple[int, tuple[RoleList, ...], Pairs, float | None]:
        def paired(matrix: str, window: Callable[[int], slice]) -> tuple[int, tuple[PairPlace, ...]]:
            return paired_places(index.tokens, shards, token, lens_at, preset_at, matrix, window)

        if kind is None:
            cut(0, page, size)
            roles = _roles(index, shards, token, lens_at)
            pairs = {matrix: paired(matrix, lambda _: slice(0, FIRST_PAIRS)) for matrix in MATRICES}
            return 1, roles, pairs, _hub(index, len(shards), sum(role.total for role in roles))
        pages = 1

        def window(total: int) -> slice:
            nonlocal pages
            pages, chosen = cut(total, page, size)
            return chosen

        if kind in MATRICES:
            pairs = {kind: paired(kind, window)}
            return pages, (), pairs, None
        pages, roles = _roles_of_kind(index, shards, token, lens_at, kind, page, size)
        return pages, roles, {}, None

    (pages, roles, pairs, hub), missing = over_layers(index, make)
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
        pairs=tuple(place for _, shown in pairs.values() for place in shown),
        pairs_total=sum(total for total, _ in pairs.values()),
        missing=missing,
        totals={matrix: total for matrix, (total, _) in pairs.items()},
        hub=hub,
    )


def role_of(kind: str, end: str) -> Role:
    return ROLES["ff_up" if kind == "ff_up" else SIDES[kind], end]


def _hub(index: Index, n_layers: int, total: int) -> float | None:
    """How many times more lists hold a token than would by chance, if it is a hub."""
    usual = n_layers * len(kind_of(index.shape)[0]) * len(ENDS) * index.manifest.k / index.shape.d_vocab
    return total / usual if total > HUB * usual else None


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
        role=role_of(kind, ENDS[end]),
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
