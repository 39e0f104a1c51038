"""The tokens that the paper printed of a neuron beside ours: of its key, of its value, and of either, since rows of
some printed tables may be exchanged."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from app.library.fault_text import for_visitors
from app.views.paper_tokens import PrintedToken, is_ascii, printed_token, why_not_compared
from app.views.tokens import Token, tokens_of
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.live.wire.words import Spelling
from precompute.paper.lists import LookupResult, PrintedLookup, PrintedNeuron, lookups
from precompute.paper.matching import Counted, Ranks, counted, ranks_in_ours
from precompute.shape import Shape

TOKENS_FIRST = 100  # of our tokens, as the paper compares them
SHOWN = 30  # of our tokens, as many as are printed
KINDS = ("ff_key", "ff_value")

# How seed words become tokens, which the paper does not say: with a leading space, or without.
SPELLINGS: tuple[Spelling, Spelling] = ("spaced", "bare")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFound:
    token: PrintedToken
    doubtful: bool
    in_key: int | None  # its rank there, up to the leading space
    in_value: int | None


class SpeltRank(TypedDict):
    """How the seeds are written as tokens, and the rank that this gives."""

    spelling: str  # spaced, bare
    tokens: list[list[Token]]  # by seed
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCompared:
    """A printed column: key, value, or tokens that are of either."""

    column: str
    in_key: Counted | None
    in_value: Counted | None
    in_either: Annotated[
        int, Field(description="Of the sure ones: how many are in our key or our value, up to the space")
    ]
    tokens: list[TokenFound]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronCompared:
    address: str
    layer: int
    neuron: int
    section: str
    why_not: str | None
    compared: Annotated[int, Field(description="How many of our tokens there are to compare with, up to 100")]
    columns: list[ColumnCompared]
    ours_key: Annotated[list[Token], Field(description="Our first tokens")]
    ours_value: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupCompared(NeuronCompared):
    """A neuron that the paper found by seed words."""

    seeds: tuple[str, ...]
    printed_rank: int
    ranks: Annotated[
        list[SpeltRank] | None,
        Field(description="Its rank among the FF values of all layers, from the weights; null: not computed"),
    ] = None


def looked_up(shape: Shape) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Seeds, layer and neuron of the paper's lookups, as far as a model of this shape has such a neuron."""
    for lookup in lookups():
        for result in lookup.results:
            if result.layer < shape.n_layers and result.neuron < shape.d_mlp:
                yield lookup.seeds, result.layer, result.neuron


def neuron_compared(index: Index, printed: PrintedNeuron, lens: str) -> NeuronCompared:
    return NeuronCompared(
        address=f"ff/{printed.layer}/{printed.neuron}",
        section=printed.section,
        **_compared(index, printed.layer, printed.neuron, lens, {
            "key": printed.key, "value": printed.value, "unassigned": printed.unassigned}, printed.uncertain),
    )  # fmt: skip


def lookup_compared(index: Index, printed: PrintedLookup, result: LookupResult, lens: str) -> LookupCompared:
    return LookupCompared(
        address=f"ff/{result.layer}/{result.neuron}",
        section=printed.section,
        seeds=printed.seeds,
        printed_rank=result.rank,
        **_compared(index, result.layer, result.neuron, lens, {"value": result.tokens}, ()),
    )


def _compared(
    index: Index,
    layer: int,
    neuron: int,
    lens: str,
    printed: dict[str, tuple[str, ...]],
    uncertain: Collection[str],
) -> dict[str, Any]:
    kinds = [kind for kind in KINDS if kind in index.stored.kinds]
    why_not = why_not_compared(index, layer, "neuron", neuron, index.shape.d_mlp, () if kinds else KINDS)
    ours: dict[str, list[Token]] = {}
    if not why_not:
        try:
            ids, _ = index.shard(layer).vectors([(kind, neuron) for kind in kinds], lens)
            for kind, top in zip(kinds, ids[:, 0].tolist(), strict=True):
                printable = [token for token in top if is_ascii(index.tokens, token)]
                ours[kind] = tokens_of(index.tokens, printable[:TOKENS_FIRST])
        except IndexFault as fault:
            why_not = for_visitors(fault, index.folder.parent)
    return {
        "layer": layer,
        "neuron": neuron,
        "why_not": why_not,
        "compared": max(map(len, ours.values()), default=0),
        "columns": [_column(index, name, tokens, ours, uncertain) for name, tokens in printed.items() if tokens],
        "ours_key": ours.get("ff_key", [])[:SHOWN],
        "ours_value": ours.get("ff_value", [])[:SHOWN],
    }


def _column(
    index: Index, name: str, printed: Sequence[str], ours: dict[str, list[Token]], uncertain: Collection[str]
) -> ColumnCompared:
    doubtful = [at for at, text in enumerate(printed) if text in uncertain]
    entries = [(text,) for text in printed]
    texts = {kind: [(token["token"],) for token in tokens] for kind, tokens in ours.items()}
    ranks = {kind: ranks_in_ours(entries, of_kind, doubtful) for kind, of_kind in texts.items()}
    nowhere = [Ranks()] * len(printed)
    key, value = (ranks.get(kind, nowhere) for kind in KINDS)
    counts = [counted(ranks[kind], TOKENS_FIRST, doubtful) if kind in ranks else None for kind in KINDS]
    return ColumnCompared(
        column=name,
        in_key=counts[0],
        in_value=counts[1],
        in_either=sum(
            key[at].up_to_space is not None or value[at].up_to_space is not None
            for at in range(len(printed))
            if at not in doubtful
        ),
        tokens=[
            TokenFound(
                token=printed_token(index.tokens, text),
                doubtful=at in doubtful,
                in_key=key[at].up_to_space,
                in_value=value[at].up_to_space,
            )
            for at, text in enumerate(printed)
        ],
    )
