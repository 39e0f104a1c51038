"""Show a token: the vectors that read, write, avoid or suppress it, the heads that map it, and tokens like it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.stored_tables import FIRST_PAIR as FIRST_PAIR_COLUMNS
from lexiscope.app.formats.stored_tables import FIRST_TOKENS, HEAD, HEAD_COLUMNS, PLACE_IN_LIST, VECTOR_COLUMNS, WHERE
from lexiscope.app.formats.table import SCORE, Column, Table, constant, csv_order
from lexiscope.app.lists.checks import count_pages, finite, page_slice
from lexiscope.app.lists.difference import check_can_run
from lexiscope.app.lists.find_tokens import token_search
from lexiscope.app.lists.first_words import FIRST_PAIR, first_pair, to_read, token_rows
from lexiscope.app.lists.kept_tokens import split_nearest
from lexiscope.app.lists.pair_lists import PAIR_NAMES
from lexiscope.app.lists.vectors import NOT_STORED
from lexiscope.app.lists.view import (
    OMIT_NONE,
    InHead,
    ScoredToken,
    Token,
    TokenPair,
    ViewOfModel,
    in_head,
    of_index,
    scored_tokens,
    token_of,
    tokens_of,
    visible,
)
from lexiscope.app.pages.page import Address, AnyKind, AnyPreset, LensArguments, ModelSite, Page, PageNumber
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_token
from lexiscope.precompute.index.lookup.pairs import PairListings
from lexiscope.precompute.index.lookup.vectors import VectorListings
from lexiscope.precompute.index.not_stored import check_kinds, check_lens, kinds_not_stored
from lexiscope.precompute.live.wire.answers import BeforehandAnswer
from lexiscope.precompute.live.wire.asks import BeforehandAsk
from lexiscope.precompute.shape import ENDS, HUB_FACTOR, MATRICES, SIDES

Role = Literal["reads", "writes", "avoids", "suppresses", "positive", "negative"]
ROLES: dict[tuple[str, str], Role] = {
    ("reads", "top"): "reads",
    ("reads", "bottom"): "avoids",
    ("writes", "top"): "writes",
    ("writes", "bottom"): "suppresses",
    ("ff_up", "top"): "positive",
    ("ff_up", "bottom"): "negative",
}
VERBS: Mapping[Role, str] = {
    "reads": "read", "writes": "write", "avoids": "avoid", "suppresses": "suppress",
    "positive": "turn positive on", "negative": "turn negative on",
}  # fmt: skip
# on a page of all kinds: how many vectors of each kind and end, and how many pairs of each matrix
LISTINGS_OF_KIND, PAIRS_OF_MATRIX = 10, 20


class TokenAt(Address):
    pattern = "token/{token:number}"
    token: Annotated[int, Field(ge=0, description="A token's id", examples=[2767])]


class TokenArguments(LensArguments):
    preset: AnyPreset = "all"
    kind: Annotated[AnyKind | None, Field(description="Only this kind, and all of it, in pages")] = None
    page: PageNumber = 1
    beforehand: Annotated[
        Literal["live"] | None,
        Field(description="Also the worker's: its logit at the mean final state, and from the final norm's bias"),
    ] = None


class Listing(InHead):
    """A vector whose list holds the token of the page, and the token's rank and score there."""

    kind: str
    layer: int
    index: int  # the number of a neuron, or head * d_head + the number of a subhead or a direction
    rank: int  # the token's rank in the list; 1 is the first
    score: float
    first: list[Token]  # the first tokens of the list that holds the token


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
    by_layer: Annotated[list[int], Field(description="How many of them are in each layer of the model")]
    places: list[Listing]

    def table(self) -> Table:
        """Make the page's table of the vectors in this list."""
        return Table("", (Column("rank", tip="rank"), WHERE, FIRST_TOKENS, SCORE), self.places)


class PairListing(TypedDict):
    """A head's token pair that holds the token of the page; `other` is the token at the other side. A pair of the token
    with itself is listed once."""

    matrix: str
    layer: int
    head: int
    side: Literal["from", "to"]
    end: str
    rank: int
    score: float
    other: Token
    first: Annotated[TokenPair | None, FIRST_PAIR]


class Beforehand(TypedDict):
    """What the model thinks of a token before any text: numbers of its row, each with its rank among all tokens."""

    matrix: Literal["embedding", "unembedding"]
    norm: float | None
    norm_rank: int  # 1 is the longest row
    distance: float | None  # from the mean row
    distance_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView(ViewOfModel):
    lens: str
    preset: str  # the preset of the pairs
    token: Token
    bytes: str  # the token's bytes: hexadecimal, two digits each, with spaces between them
    kind: str | None  # the one kind that is shown, all of it page by page; None: the best of every kind
    page: int
    pages: int
    before_text: Annotated[BeforehandAnswer | None, OMIT_NONE] = None  # the worker's, if asked for
    beforehand: list[Beforehand]  # of the embedding, and of the unembedding if it is another matrix
    variants: list[Token]  # the same token with and without space or ##, or in another case
    # by cosine of the centred embeddings, hubs left out; None while this is not built
    nearest: list[ScoredToken] | None
    nearest_hubs: Annotated[list[Token], Field(description="Tokens that are near to very many: left out of `nearest`")]
    roles: list[RoleList]
    # the pairs of VO, then those of QK, each with the best rank first
    pairs: Annotated[list[PairListing] | None, NOT_STORED]
    pairs_total: Annotated[int | None, NOT_STORED]
    not_stored: Annotated[
        tuple[str, ...], Field(description="Kinds and matrices that the index was built without: they may list it, too")
    ]
    missing: tuple[int, ...]  # layers that are not built or damaged; their lists may hold the token, too
    totals: Annotated[dict[str, int], Field(description="Of the pairs, by matrix")]
    hub: Annotated[float | None, Field(description="In how many times more lists than usual, if that is very many")]

    @property
    def largest_score(self) -> float:
        """Return the largest absolute score that the token has in any of the lists."""
        return max((abs(listing["score"]) for role in self.roles for listing in role.places), default=0.0)

    def by_layer(self, role: Role) -> list[int]:
        """Return by layer how many vectors of all kinds have the token in this role."""
        return [sum(counts) for counts in zip(*(of.by_layer for of in self.roles if of.role == role), strict=True)]

    def pair_table(self, matrix: str) -> Table:
        """Make the page's table of the pairs of one matrix that hold the token."""
        first, second = PAIR_NAMES[matrix]
        columns = (
            HEAD, Column("from", "token", heading=f"{first} →"), Column("to", "token", heading=second), Column("end"),
            Column("rank", "number", tip="rank"), Column("score", "number", tip="score"), FIRST_PAIR_COLUMNS[0],
        )  # fmt: skip
        return Table("", columns, [pair for pair in self.pairs or () if pair["matrix"] == matrix])

    def about(self) -> dict[str, Any]:
        token = {"token": self.token["token"], "token_id": self.token["id"]}
        return {"model": self.model, **token, "lens": self.lens, "preset": self.preset}

    def tables(self) -> list[Table]:
        name = f"{self.model}, token {self.token['id']} {visible(self.token['token'])}"
        kind = Column("kind", audience="programs")
        listing = (kind, *VECTOR_COLUMNS, Column("rank", "number"), SCORE, FIRST_TOKENS)
        other = Column("other", "token")
        mapped = (
            constant("role", "maps"), *HEAD_COLUMNS, Column("kind", get=lambda pair: pair["matrix"], heading="matrix"),
            Column("side"), other, *PLACE_IN_LIST, *FIRST_PAIR_COLUMNS,
        )  # fmt: skip
        order: tuple[Column | str, ...] = (
            "role", "end", "kind", "layer", "index", "head", "subhead", "rank", "score", "side", other,
            FIRST_TOKENS, *FIRST_PAIR_COLUMNS, "direction",
        )  # fmt: skip
        return [
            csv_order(*order),
            *(
                Table(
                    f"{name}: {role.kind} that {VERBS[role.role]} it ({self.lens})",
                    (constant("role", role.role), constant("end", role.end), *listing),
                    role.places,
                    says_nothing_of=("preset",),
                )
                for role in self.roles
                if role.places
            ),
            Table(f"{name}: heads that map it ({self.lens}, {self.preset})", mapped, self.pairs or ()),
        ]


def token(site: ModelSite, at: TokenAt, ask: TokenArguments) -> TokenView:
    """A token: which parameters read, write, avoid or suppress it, and which heads map from it or to it."""
    index, token, lens, preset, kind = site.index, at.token, ask.lens, ask.preset, ask.kind
    page, size = site.window(ask.page, site.settings.token_rows)
    hubs = site.left_out(lens)  # hubs are left out of first tokens
    raw, shape = index.tokens.raw(token), index.shape
    check_lens(index, lens)
    if kind is not None:
        check_kinds(index, kind)
    vector_part, pair_part = _shown_slices(kind, page, size)
    listings = look_up_token(
        index, token, lens, preset,
        kinds=[name for name in shape.kinds if kind in (None, name)],
        matrices=[name for name in MATRICES if kind in (None, name)],
        vector_part=vector_part,
        pair_part=pair_part,
        first=to_read(hubs),
    )  # fmt: skip
    nearest = _nearest(index, token)
    totals = [listed.total for listed in listings.vectors.values()]
    counted = sum(of.total for (name, _), of in listings.vectors.items() if name in index.stored.counted_kinds)
    longest = 0 if kind is None else max(totals, default=max(listings.pairs.totals.values(), default=0))
    return TokenView(
        **of_index(index),
        lens=lens,
        preset=preset,
        token=token_of(index.tokens, token),
        bytes=raw.hex(" "),
        kind=kind,
        page=page,
        pages=count_pages(longest, page, size),
        beforehand=_beforehand(index, token),
        before_text=site.answers[0] if site.answers else None,
        variants=tokens_of(index.tokens, token_search(index.tokens).variants(token)),
        nearest=None if nearest is None else nearest[0],
        nearest_hubs=[] if nearest is None else nearest[1],
        roles=_role_lists(index, listings.vectors, hubs),
        pairs=_pair_listings(index, listings.pairs, hubs) if index.stored.pairs else None,
        pairs_total=sum(listings.pairs.totals.values()) if index.stored.pairs else None,
        not_stored=kinds_not_stored(index),
        missing=listings.missing,
        totals=listings.pairs.totals,
        hub=_hub(index, shape.n_layers - len(listings.missing), counted) if kind is None else None,
    )


def before_text(site: ModelSite, at: TokenAt, ask: TokenArguments) -> list[BeforehandAsk]:
    """Return the request for a worker, if the token's logits before any text are asked for."""
    if ask.beforehand is None:
        return []
    site.index.tokens.raw(at.token)
    check_can_run(site.index)
    return [BeforehandAsk(token=at.token)]


def _beforehand(index: Index, token: int) -> list[Beforehand]:
    rows: list[Beforehand] = []
    matrices: tuple[Literal["embedding", "unembedding"], ...] = ("embedding", "unembedding")
    for matrix, norms, distances in zip(matrices, index.norms, index.centred_norms, strict=False):
        norm_rank, distance_rank = (1 + int((numbers > numbers[token]).sum()) for numbers in (norms, distances))
        rows.append(
            {
                "matrix": matrix, "norm": finite(float(norms[token])), "norm_rank": norm_rank,
                "distance": finite(float(distances[token])), "distance_rank": distance_rank,
            }
        )  # fmt: skip
    return rows


def _shown_slices(kind: str | None, page: int, size: int | None) -> tuple[slice, slice]:
    """Return which vectors of each kind and each end (top or bottom) of a list, and which pairs of each matrix, are
    shown."""
    if kind is None and size is not None:
        return slice(0, LISTINGS_OF_KIND), slice(0, PAIRS_OF_MATRIX)
    return page_slice(page, size), page_slice(page, size)


def role_of(kind: str, end: str) -> Role:
    return ROLES["ff_up" if kind == "ff_up" else SIDES[kind], end]


def _hub(index: Index, n_layers: int, total: int) -> float | None:
    """Return how many times more lists hold a token than would by chance; None if that is not enough to call it a
    hub."""
    counted = sum(map(index.shape.count, index.stored.counted_kinds))
    usual = n_layers * counted * len(ENDS) * index.manifest.k / index.shape.d_vocab
    return total / usual if total > HUB_FACTOR * usual else None


def _role_lists(
    index: Index, by_kind_and_end: dict[tuple[str, str], VectorListings], hubs: frozenset[int]
) -> list[RoleList]:
    lists = [
        RoleList(
            role=role_of(kind, end),
            kind=kind,
            end=end,
            total=listed.total,
            by_layer=listed.by_layer.tolist(),
            places=_listings(index, kind, listed, hubs),
        )
        for (kind, end), listed in by_kind_and_end.items()
    ]
    order = list(ROLES.values())
    return sorted(lists, key=lambda listed: order.index(listed.role))


def _listings(index: Index, kind: str, vectors: VectorListings, hubs: frozenset[int]) -> list[Listing]:
    columns = (column.tolist() for column in (vectors.layer, vectors.index, vectors.rank, vectors.score))
    first_tokens = token_rows(index.tokens, vectors.first, hubs)
    listings: list[Listing] = []
    for layer, number, rank, score, first in zip(*columns, first_tokens, strict=True):
        listings.append(
            {
                "kind": kind, "layer": layer, "index": number, **in_head(index.shape, kind, number),
                "rank": rank + 1, "score": score, "first": first,
            }
        )  # fmt: skip
    return listings


def _pair_listings(index: Index, pairs: PairListings, hubs: frozenset[int]) -> list[PairListing]:
    texts = index.tokens.texts
    columns = (pairs.matrix, pairs.layer, pairs.head, pairs.side, pairs.end, pairs.rank, pairs.score, pairs.other)
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
            "first": first_pair(index, MATRICES[matrix], layer, head, hubs),
        }
        for matrix, layer, head, side, end, rank, score, other in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _nearest(index: Index, token: int) -> tuple[list[ScoredToken], list[Token]] | None:
    """Return the nearest tokens, and those left out because they are near to very many others."""
    try:
        neighbours = index.neighbours(token)
    except IndexFault:
        return None
    if neighbours is None:
        return None
    ids, scores = neighbours
    return split_nearest(index, scored_tokens(index.tokens, ids.tolist(), scores.tolist()))


TOKEN = Page(
    name="token", title="Token #{token}", at=TokenAt, arguments=TokenArguments, view=TokenView, make=token,
    asks=before_text,
    in_python="This is token {token}: model.token({token})",
)  # fmt: skip
