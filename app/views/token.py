"""A token's page: the vectors that read, write, avoid or suppress it, the heads that map it, and tokens like it.
Reading inverted lists is for places.py and paired_places.py."""

from collections.abc import Collection, Mapping

import numpy as np

from app.views.column_rows import ColumnRows
from app.views.page_types import PairPlace, Place, Role, RoleList, TokenPageView
from app.views.paired_places import paired_places
from app.views.parameters import token_view
from app.views.parts import cut, place_of, token_views
from app.views.places import best_places, kind_of, over_layers
from app.views.ranked import Window
from app.views.slices import Shards
from app.views.token_search import token_search
from app.views.view_types import ScoredView
from precompute.errors import IndexFault
from precompute.index.index import Index
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

Pairs = tuple[dict[str, int], ColumnRows[PairPlace]]  # of each matrix how many there are, and those shown
_NO_PAIRS: Pairs = ({}, ColumnRows(PairPlace, np.empty(0)))


def token_page(
    index: Index,
    token: int,
    lens: str = "dot",
    preset: str = "all",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 100,
) -> TokenPageView:
    """A `size` of None: all places on one page, which are made as they are read."""
    raw = index.tokens.raw(token)
    lens_at, preset_at = place_of("lens", lens, LENSES), place_of("preset", preset, PRESETS)
    if kind is not None:
        place_of("kind", kind, (*index.shape.kinds, *MATRICES))

    def make(shards: Shards) -> tuple[int, tuple[RoleList, ...], Pairs, float | None]:
        pages = 1

        def window(total: int) -> slice:
            nonlocal pages
            pages, chosen = cut(total, page, size)
            return chosen

        def roles(kinds: Collection[str], window: Window) -> tuple[RoleList, ...]:
            return _roles(best_places(shards, index.shape, token, lens_at, kinds, window), size is None)

        def paired(matrices: Collection[str], window: Window) -> Pairs:
            return paired_places(index.tokens, shards, index.shape, token, lens_at, preset_at, matrices, window)

        if kind is None:
            cut(0, page, size)
            every = roles(index.shape.kinds, lambda total: slice(0, total if size is None else FIRST_PLACES))
            pairs = paired(MATRICES, lambda total: slice(0, total if size is None else FIRST_PAIRS))
            return 1, every, pairs, _hub(index, len(shards), sum(role.total for role in every))
        if kind in MATRICES:
            pairs = paired((kind,), window)
            return pages, (), pairs, None
        of_kind = roles((kind,), window)
        return pages, of_kind, _NO_PAIRS, None

    (pages, roles, (totals, pairs), hub), missing = over_layers(index, make)
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
        pairs=pairs if size is None else tuple(pairs),
        pairs_total=sum(totals.values()),
        missing=missing,
        totals=totals,
        hub=hub,
    )


def role_of(kind: str, end: str) -> Role:
    return ROLES["ff_up" if kind == "ff_up" else SIDES[kind], end]


def _hub(index: Index, n_layers: int, total: int) -> float | None:
    """How many times more lists hold a token than would by chance, if it is a hub."""
    usual = n_layers * len(kind_of(index.shape)[0]) * len(ENDS) * index.manifest.k / index.shape.d_vocab
    return total / usual if total > HUB * usual else None


def _roles(found: Mapping[tuple[str, str], tuple[int, ColumnRows[Place]]], lazy: bool) -> tuple[RoleList, ...]:
    lists = [
        RoleList.of(role=role_of(kind, end), kind=kind, end=end, total=total, places=places if lazy else tuple(places))
        for (kind, end), (total, places) in found.items()
    ]
    order = list(ROLES.values())
    return tuple(sorted(lists, key=lambda listed: order.index(listed.role)))


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
