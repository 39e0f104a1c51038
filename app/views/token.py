"""A token's page: the vectors that read, write, avoid or suppress it, the heads that map it, and tokens like it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from app.views.checks import count_pages, page_slice
from app.views.token_search import token_search
from app.views.tokens import PAGE_ONLY, ScoredToken, Token, View, scored_tokens, token_of, tokens_of
from app.views.vectors import NOT_STORED
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.index.lookup import look_up_token
from precompute.index.lookup.pairs import PairListings
from precompute.index.lookup.vectors import VectorListings
from precompute.index.not_stored import check_kinds, check_lens, kinds_not_stored
from precompute.index.shard_reader import position
from precompute.shape import ENDS, HUB_FACTOR, MATRICES, PRESETS, SIDES, Shape

Role = Literal["reads", "writes", "avoids", "suppresses", "positive", "negative"]
ROLES: dict[tuple[str, str], Role] = {
    ("reads", "top"): "reads",
    ("reads", "bottom"): "avoids",
    ("writes", "top"): "writes",
    ("writes", "bottom"): "suppresses",
    ("ff_up", "top"): "positive",
    ("ff_up", "bottom"): "negative",
}
FIRST_LISTINGS, FIRST_PAIRS = 10, 20  # of each kind and end, and of each matrix, on a page of all kinds


class Listing(TypedDict):
    """A vector that lists a token."""

    kind: str
    layer: int
    index: int  # of a neuron, or head * d_head + subhead
    head: int | None  # of subheads; of kinds that heads share, the first head that has it
    subhead: int | None
    rank: int  # 1 is the best
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleList:
    role: Annotated[
        Role,
        Field(
            description="`reads` and `avoids`: at the top and at the bottom of what a vector reads; `writes` and "
            "`suppresses`: of what it writes; `positive` and `negative`: of `ff_up`, whose sign the neuron's "
            "activation has"
        ),
    ]
    kind: str
    end: str
    total: int
    places: list[Listing]


class PairListing(TypedDict):
    """A head pair that holds a token; `other` is the token at the other side. A pair with itself is there once."""

    matrix: str
    layer: int
    head: int
    side: Literal["from", "to"]
    end: str
    rank: int
    score: float
    other: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView(View):
    model: str
    lens: str
    preset: str  # of the pairs
    token: Token
    bytes: str  # hexadecimal, two digits a byte, spaces between
    kind: str | None  # only this kind, all of it in pages; None: the best of every kind
    page: int
    pages: int
    variants: list[Token]  # with and without space or ##, in other cases
    nearest: list[ScoredToken] | None  # by cosine of the centred embeddings; None while not built
    roles: list[RoleList]
    pairs: Annotated[list[PairListing] | None, NOT_STORED]  # of VO, then of QK, each with the best rank first
    pairs_total: Annotated[int | None, NOT_STORED]
    not_stored: Annotated[
        tuple[str, ...], Field(description="Kinds and matrices that the index was built without: they may list it, too")
    ]
    missing: tuple[int, ...]  # layers that are not built or damaged: they may list it, too
    totals: Annotated[dict[str, int], PAGE_ONLY]  # of the pairs, by matrix
    hub: Annotated[float | None, PAGE_ONLY]  # in how many times more lists than usual, if that is very many


def token_view(
    index: Index,
    token: int,
    lens: str = "dot",
    preset: str = "all",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 100,
) -> TokenView:
    """A `size` of None: everything on one page."""
    raw = index.tokens.raw(token)
    check_lens(index, lens)
    position("preset", preset, PRESETS)
    shape = index.shape
    if kind is not None:
        check_kinds(index, kind)
    vector_part, pair_part = _parts(kind, page, size)
    listings = look_up_token(
        index, token, lens, preset,
        kinds=[name for name in shape.kinds if kind in (None, name)],
        matrices=[name for name in MATRICES if kind in (None, name)],
        vector_part=vector_part,
        pair_part=pair_part,
    )  # fmt: skip
    totals = [listed.total for listed in listings.vectors.values()]
    longest = 0 if kind is None else max(totals, default=max(listings.pairs.totals.values(), default=0))
    return TokenView(
        model=index.manifest.model,
        lens=lens,
        preset=preset,
        token=token_of(index.tokens, token),
        bytes=raw.hex(" "),
        kind=kind,
        page=page,
        pages=count_pages(longest, page, size),
        variants=tokens_of(index.tokens, token_search(index.tokens).variants(token)),
        nearest=_nearest(index, token),
        roles=_role_lists(shape, listings.vectors),
        pairs=_pair_listings(index, listings.pairs) if index.stored.pairs else None,
        pairs_total=sum(listings.pairs.totals.values()) if index.stored.pairs else None,
        not_stored=kinds_not_stored(index),
        missing=listings.missing,
        totals=listings.pairs.totals,
        hub=_hub(index, shape.n_layers - len(listings.missing), sum(totals)) if kind is None else None,
    )


def _parts(kind: str | None, page: int, size: int | None) -> tuple[slice, slice]:
    """What is shown of each kind and end, and of each matrix."""
    if kind is None and size is not None:
        return slice(0, FIRST_LISTINGS), slice(0, FIRST_PAIRS)
    return page_slice(page, size), page_slice(page, size)


def role_of(kind: str, end: str) -> Role:
    return ROLES["ff_up" if kind == "ff_up" else SIDES[kind], end]


def _hub(index: Index, n_layers: int, total: int) -> float | None:
    """How many times more lists hold a token than would by chance, if it is a hub."""
    shape = index.shape
    n_lists = n_layers * index.stored.n_vectors * len(ENDS)
    usual = n_lists * index.manifest.k / shape.d_vocab
    return total / usual if total > HUB_FACTOR * usual else None


def _role_lists(shape: Shape, found: dict[tuple[str, str], VectorListings]) -> list[RoleList]:
    lists = [
        RoleList(
            role=role_of(kind, end),
            kind=kind,
            end=end,
            total=listed.total,
            places=_listings(shape, kind, listed),
        )
        for (kind, end), listed in found.items()
    ]
    order = list(ROLES.values())
    return sorted(lists, key=lambda listed: order.index(listed.role))


def _listings(shape: Shape, kind: str, found: VectorListings) -> list[Listing]:
    columns = zip(*(column.tolist() for column in (found.layer, found.index, found.rank, found.score)), strict=True)
    listings: list[Listing] = []
    for layer, number, rank, score in columns:
        head, subhead = head_of(shape, kind, number)
        listings.append(
            {
                "kind": kind, "layer": layer, "index": number, "head": head, "subhead": subhead,
                "rank": rank + 1, "score": score,
            }
        )  # fmt: skip
    return listings


def head_of(shape: Shape, kind: str, row: int) -> tuple[int, int] | tuple[None, None]:
    """Head and subhead of a vector, if it belongs to one; of kinds that heads share, the first head that has it."""
    return (None, None) if kind.startswith("ff_") else shape.head_and_subhead(kind, row)


def _pair_listings(index: Index, found: PairListings) -> list[PairListing]:
    texts = index.tokens.texts
    columns = (found.matrix, found.layer, found.head, found.side, found.end, found.rank, found.score, found.other)
    return [
        {
            "matrix": MATRICES[matrix],
            "layer": layer,
            "head": head,
            "side": "to" if side else "from",
            "end": ENDS[end],
            "rank": rank + 1,
            "score": score,
            "other": {"id": other, "token": texts[other]},
        }
        for matrix, layer, head, side, end, rank, score, other in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _nearest(index: Index, token: int) -> list[ScoredToken] | None:
    try:
        neighbours = index.neighbours(token)
    except IndexFault:
        return None
    if neighbours is None:
        return None
    ids, scores = neighbours
    return scored_tokens(index.tokens, ids.tolist(), scores.tolist())
