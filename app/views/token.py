"""A token's page: the vectors that read, write, avoid or suppress it, the heads that map it, and tokens like it."""

from collections.abc import Mapping

from app.views.listings import listing_rows, pair_listing_rows
from app.views.page_types import Role, RoleList, TokenPageView
from app.views.parameters import token_view
from app.views.parts import cut, part, place_of, token_views
from app.views.token_search import token_search
from app.views.view_types import ScoredView
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.index.layout import n_vectors
from precompute.index.lookup import look_up_token
from precompute.index.lookup.lookup import EVERYTHING, TokenLookup
from precompute.index.lookup.vectors import VectorListings
from precompute.shape import ENDS, MATRICES, SIDES, Shape

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
    kinds: tuple[str, ...] = index.shape.kinds
    matrices: tuple[str, ...] = MATRICES
    if kind is not None:
        place_of("kind", kind, (*kinds, *MATRICES))
        kinds, matrices = ((), (kind,)) if kind in MATRICES else ((kind,), ())
    if kind is None:
        cut(0, page, size)
        vector_part, pair_part = slice(0, FIRST_PLACES), slice(0, FIRST_PAIRS)
    else:
        vector_part = pair_part = part(page, size)
    if size is None:
        vector_part = pair_part = EVERYTHING
    found = look_up_token(index, token, lens, preset, kinds, matrices, vector_part, pair_part)
    totals = found.pairs.totals
    pages = 1
    if kind is not None:
        pages, _ = cut(max([*totals.values(), *(of_kind.total for of_kind in found.vectors.values())]), page, size)
    roles = _roles(index.shape, found.vectors, size is None)
    pairs = pair_listing_rows(index.tokens, found.pairs)
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
        missing=found.missing,
        totals=totals,
        hub=_hub(index, found) if kind is None else None,
    )


def role_of(kind: str, end: str) -> Role:
    return ROLES["ff_up" if kind == "ff_up" else SIDES[kind], end]


def _hub(index: Index, found: TokenLookup) -> float | None:
    """How many times more lists hold a token than would by chance, if it is a hub."""
    n_layers = index.shape.n_layers - len(found.missing)
    usual = n_layers * n_vectors(index.shape) * len(ENDS) * index.manifest.k / index.shape.d_vocab
    total = sum(listings.total for listings in found.vectors.values())
    return total / usual if total > HUB * usual else None


def _roles(shape: Shape, found: Mapping[tuple[str, str], VectorListings], lazy: bool) -> tuple[RoleList, ...]:
    lists = []
    for (kind, end), listings in found.items():
        rows = listing_rows(shape, kind, listings)
        places = rows if lazy else tuple(rows)
        lists.append(RoleList.of(role=role_of(kind, end), kind=kind, end=end, total=listings.total, places=places))
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
