"""The pairs that the paper printed of a head beside ours: how many are among our first ones, in either direction."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from app.library.fault_text import for_visitors
from app.views.paper_tokens import PrintedToken, is_ascii, printed_token, section_title, why_not_compared
from app.views.tokens import RANK, Token, TokenPair, token_pairs
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.paper.lists import PrintedHead
from precompute.paper.matching import Counted, Ranks, counted, ranks_in_ours

PAIRS_FIRST = (50, 500)  # of our pairs
PRINTED_PAIRS = 50  # of each head
PRESETS = ("all", "distinct")
Direction: TypeAlias = Literal["as printed", "turned"]
DIRECTIONS: tuple[Direction, Direction] = ("as printed", "turned")
Fit: TypeAlias = Literal["as printed", "turned", "both", "neither"]
How: TypeAlias = Literal["exactly", "up to the space"]

FITS: Any = Field(description="The direction in which more printed pairs are in our list, up to the space")
OURS: Any = Field(description="Our first pairs of the preset that is compared, tokens in ASCII only, as in print")
PRESET: Any = Field(
    description="Whose pairs are compared: `distinct` where print left out pairs of the same token up to case and space"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCount(Counted):
    preset: str
    direction: Direction
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedPair:
    printed: tuple[PrintedToken, PrintedToken]
    doubtful: bool  # from garbled print
    space_unknown: tuple[bool, bool]
    rank: int | None  # in our list
    how: How | None


OurPair = TypedDict(
    "OurPair",
    {"from": Token, "to": Token, "score": float, "rank": Annotated[NotRequired[int], RANK], "printed": How | None},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCompared:
    address: str
    matrix: str
    layer: int
    head: int
    section: str
    title: str
    note: str
    preset: Annotated[str, PRESET]
    doubtful: int
    space_unknown: int  # pairs
    why_not: str | None
    compared: Annotated[int, Field(description="How many of our pairs there are to compare with, up to 500")]
    counts: list[PairCount]
    fits: Annotated[Fit | None, FITS]
    pairs: list[PrintedPair]
    ours: Annotated[list[OurPair], OURS]

    def count(self, first: int, preset: str | None = None, direction: Direction = "as printed") -> PairCount:
        """As printed, of the preset that is compared, unless another is asked for."""
        wanted = first, preset or self.preset, direction
        return next(each for each in self.counts if (each.first, each.preset, each.direction) == wanted)


def head_compared(index: Index, printed: PrintedHead, lens: str) -> HeadCompared:
    unknown = frozenset(pair for pair, _ in printed.space_uncertain)
    lists: dict[str, list[TokenPair]] = {}
    why_not = why_not_compared(index, printed.layer, "head", printed.head, index.shape.n_heads, (printed.matrix,))
    if not why_not:
        try:
            lists = {preset: _ours(index, printed, lens, preset) for preset in PRESETS}
        except IndexFault as fault:
            why_not = for_visitors(fault, index.folder.parent)
    ranks = {
        (preset, direction): ranks_in_ours(_turned(printed.pairs, direction), _texts(ours), printed.low_confidence)
        for preset, ours in lists.items()
        for direction in DIRECTIONS
    }
    counts = [
        PairCount(
            preset=preset,
            direction=direction,
            first=first,
            **asdict(counted(listed, first, printed.low_confidence, unknown)),
        )
        for (preset, direction), listed in ranks.items()
        for first in PAIRS_FIRST
    ]
    preset = "distinct" if printed.without_same_token else "all"
    shown = ranks.get((preset, "as printed"), [Ranks()] * len(printed.pairs))
    ours = lists.get(preset, [])
    return HeadCompared(
        address=f"{printed.matrix}/{printed.layer}/{printed.head}",
        matrix=printed.matrix,
        layer=printed.layer,
        head=printed.head,
        section=printed.section,
        title=section_title(printed.section),
        note=printed.note,
        preset=preset,
        doubtful=len(printed.low_confidence),
        space_unknown=len(unknown),
        why_not=why_not,
        compared=len(ours),
        counts=counts,
        fits=_fits(*(ranks[preset, each] for each in DIRECTIONS)) if ranks else None,
        pairs=[_printed_pair(index, printed, at, entry) for at, entry in enumerate(shown)],
        ours=_marked(ours[:PRINTED_PAIRS], shown),
    )


def _ours(index: Index, printed: PrintedHead, lens: str, preset: str) -> list[TokenPair]:
    """Our pairs as they are compared: those of ASCII tokens, because print has no others."""
    pairs = index.shard(printed.layer).heads.pairs(printed.matrix, printed.head, lens, preset, "top")
    ours = token_pairs(index.tokens, pairs.ids.tolist(), pairs.scores.tolist())
    kept = [pair for pair in ours if is_ascii(index.tokens, pair["from"]["id"], pair["to"]["id"])]
    return kept[: PAIRS_FIRST[-1]]


def _texts(ours: Sequence[TokenPair]) -> list[tuple[str, ...]]:
    return [(pair["from"]["token"], pair["to"]["token"]) for pair in ours]


def _turned(pairs: Sequence[tuple[str, str]], direction: Direction) -> list[tuple[str, ...]]:
    return [pair[::-1] if direction == "turned" else pair for pair in pairs]


def _fits(*ranks: Sequence[Ranks]) -> Fit:
    """By the ranks of the pairs as they are printed, and turned."""
    as_printed, turned = (sum(entry.up_to_space is not None for entry in listed) for listed in ranks)
    if as_printed == turned:
        return "both" if turned else "neither"
    return "as printed" if as_printed > turned else "turned"


def _how(ranks: Ranks) -> tuple[int | None, How | None]:
    if ranks.exactly is not None:
        return ranks.exactly, "exactly"
    return ranks.up_to_space, "up to the space" if ranks.up_to_space is not None else None


def _printed_pair(index: Index, printed: PrintedHead, at: int, ranks: Ranks) -> PrintedPair:
    first, second = printed.pairs[at]
    rank, how = _how(ranks)
    return PrintedPair(
        printed=(printed_token(index.tokens, first), printed_token(index.tokens, second)),
        doubtful=at in printed.low_confidence,
        space_unknown=((at, 0) in printed.space_uncertain, (at, 1) in printed.space_uncertain),
        rank=rank,
        how=how,
    )


def _marked(ours: Sequence[TokenPair], ranks: Sequence[Ranks]) -> list[OurPair]:
    """Each of ours with how it is printed, if it is."""
    exactly = {entry.exactly for entry in ranks}
    up_to_space = {entry.up_to_space for entry in ranks}
    return [
        {**pair, "printed": "exactly" if rank in exactly else "up to the space" if rank in up_to_space else None}
        for rank, pair in enumerate(ours, 1)
    ]
