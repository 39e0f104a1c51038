"""Show pairs of words and the heads that map the first word of each to the second, from a worker's answer. Baselines
are shown beside each head's mean rank."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.stored_tables import FIRST_PAIR as FIRST_PAIR_COLUMNS
from lexiscope.app.formats.stored_tables import listed_neurons
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.lists.difference import check_can_run
from lexiscope.app.lists.first_words import FIRST_PAIR, first_pair
from lexiscope.app.lists.stored_transitions import LISTED_TRANSITIONS, ListedTransition, listed_transitions
from lexiscope.app.lists.view import TokenPair, ViewOfModel, of_index, visible
from lexiscope.app.pages.page import Address, ModelSite, Page
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.by_words.chance import expected_heads
from lexiscope.precompute.live.wire.answers import CHANCE, Baseline, HeadRelation, PairUsed, RelationAnswer, put_words
from lexiscope.precompute.live.wire.asks import RelationArguments, RelationAsk, WordSource
from lexiscope.precompute.live.wire.fields import Matrix

# a head is said to carry or to suppress a relation if its mean rank is at most the vocabulary's size divided by this
CLEAR = 100
BETTER = 2  # a mean rank is called better than a baseline's if it is this many times smaller

# How a head's mean rank compares with its baselines. own: better than both; copies: the first words themselves have as
# good a rank; any: the second words of other pairs do.
Verdict = Literal["own", "copies", "any"]
VERDICT: Any = Field(
    description="own: the mean rank is at most half of both `shuffled` and `identity`; copies: not of `identity`, the "
    "sources themselves come about as early; any: not of `shuffled`, other pairs' targets come about as early"
)


class RelationAt(Address):
    pattern = "relation"


class RelationHead(HeadRelation):
    verdict: Annotated[Verdict, VERDICT]
    verdict_from_bottom: Annotated[Verdict, VERDICT]
    first: Annotated[TokenPair | None, FIRST_PAIR]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationView(ViewOfModel):
    lens: str
    # vo: when it attends to the first word, a head writes the second; qk: at the first word, it looks for the second.
    matrix: Matrix
    source: WordSource
    pairs: list[PairUsed]
    # what `shuffled` is made of: other pairs' second words, or random words; None without pairs
    shuffled_with: Baseline | None
    clear_rank: int  # a head is said to carry or to suppress the pairs if its mean rank is at most this
    clear_chance: Annotated[float | None, CHANCE]  # None if there are no pairs
    heads: list[RelationHead]  # the heads, best mean rank first
    neurons: Annotated[list[ListedTransition] | None, LISTED_TRANSITIONS]
    neurons_total: int | None

    def neuron_table(self) -> Table:
        return listed_neurons(self.model, self.neurons)

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "matrix": self.matrix, "lens": self.lens, "source": self.source}

    def tables(self) -> list[Table]:
        names = [f"{pair['source']['word']} > {pair['target']['word']}" for pair in self.pairs]
        by_pair = [column for at, pair in enumerate(self.pairs) for column in _of_pair(at, pair, names[at])]
        shuffled = f"; shuffled with {SHUFFLED_WITH[self.shuffled_with]}" if self.shuffled_with else ""
        source = "" if self.source == "raw" else f", source {self.source}"
        how = f"{self.matrix}, {self.lens}{source}{_first_pieces(self.pairs)}{shuffled}"
        title = f"{self.model}, heads that carry {', '.join(names)} ({how})"
        of_neurons = [self.neuron_table()] if self.neurons else []
        return [Table(title, (*COLUMNS, *by_pair, *FIRST_PAIR_COLUMNS), self.heads), *of_neurons]


SHUFFLED_WITH = {"pairs": "other pairs' targets", "words": "random words"}
COLUMNS = (
    Column("layer", "number"),
    Column("head", "number"),
    Column("rank", "number", heading="mean rank"),
    Column("score", "number", heading="mean score"),
    Column("rank_from_bottom", "number", heading="mean rank from the bottom"),
    Column("shuffled", "number"),
    Column("identity", "number"),
    Column("chance", "number", heading="heads by chance"),
    Column("verdict"),
    Column("shuffled_from_bottom", "number", audience="programs"),
    Column("identity_from_bottom", "number", audience="programs"),
    Column("chance_from_bottom", "number", audience="programs"),
    Column("verdict_from_bottom", audience="programs"),
)


def _of_pair(at: int, pair: PairUsed, name: str) -> Iterable[Column]:
    """Yield the columns with the rank and the score of one pair's second word."""
    number = at + 1
    yield constant(f"source_{number}", defused(pair["source"]["word"]))
    yield constant(f"target_{number}", defused(pair["target"]["word"]))
    yield Column(f"rank_{number}", "number", get=lambda head: head["ranks"][at], heading=name)
    yield Column(f"score_{number}", "number", get=lambda head: head["scores"][at], audience="programs")
    yield Column(f"ranked_{number}", "token", get=lambda _: pair["ranked"], audience="programs")
    yield constant(f"pieces_{number}", len(pair["target"]["tokens"]))


def _first_pieces(pairs: Iterable[PairUsed]) -> str:
    """Return a note that names the second words of several pieces: their rank is that of the first piece, not of the
    whole word."""
    several = [
        (pair["target"], visible(pair["ranked"]["token"])) for pair in pairs if len(pair["target"]["tokens"]) > 1
    ]
    pieces = [f"of {word['word']}, {len(word['tokens'])} pieces, the first: {first}" for word, first in several]
    return f"; ranked is {'; '.join(pieces)}" if pieces else ""


def relation(site: ModelSite, _: RelationAt, ask: RelationArguments) -> RelationView:
    """The heads that map the first word of each pair to the second: computed by the worker, for any words.

    A head's rank is that of the second word among all tokens, for the first word through W_V W_O (with `matrix=qk`, W_Q
    W_Kᵀ); the mean over the pairs counts. Heads that suppress the second word have a small `rank_from_bottom`.
    `shuffled` is the mean rank of other pairs' second words, `identity` that of the first words themselves, `chance`
    how many heads would reach such a rank if ranks were drawn at random; `verdict` says how the head compares with
    these baselines.
    """
    index, shape = site.index, site.index.shape
    answer: RelationAnswer | None = site.answers[0] if site.answers else None
    pairs = put_words(answer["pairs"], index.tokens.texts) if answer else []
    clear = max(1, shape.d_vocab // CLEAR)
    neurons, total = listed_transitions(index, ask.pairs, ask.lens)
    return RelationView(
        **of_index(index),
        lens=ask.lens,
        matrix=ask.matrix,
        source=ask.source,
        pairs=pairs,
        shuffled_with=answer["shuffled_with"] if answer else None,
        clear_rank=clear,
        clear_chance=expected_heads([clear] * len(pairs), shape.d_vocab, shape.n_layers * shape.n_heads)
        if answer
        else None,
        heads=[_head(index, ask.matrix, head) for head in answer["heads"]] if answer else [],
        neurons=neurons,
        neurons_total=total,
    )


def _head(index: Index, matrix: Matrix, head: HeadRelation) -> RelationHead:
    return {
        **head,
        "verdict": _verdict(head["rank"], head["shuffled"], head["identity"]),
        "verdict_from_bottom": _verdict(
            head["rank_from_bottom"], head["shuffled_from_bottom"], head["identity_from_bottom"]
        ),
        "first": first_pair(index, matrix, head["layer"], head["head"]) if index.stored.pairs else None,
    }


def _verdict(rank: float, shuffled: float, identity: float) -> Verdict:
    return "any" if BETTER * rank > shuffled else "copies" if BETTER * rank > identity else "own"


def asks(site: ModelSite, _: RelationAt, ask: RelationArguments) -> list[RelationAsk]:
    if ask.source != "raw":
        check_can_run(site.index)
    return [RelationAsk(**dict(ask))] if ask.pairs else []


RELATION = Page(
    name="relation", title="", at=RelationAt, arguments=RelationArguments, view=RelationView, make=relation, asks=asks,
    is_live=True,
)  # fmt: skip
