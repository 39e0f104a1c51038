"""Show pairs of words and the neurons that read the first word of each and write the second, from a worker's answer."""

from dataclasses import dataclass
from typing import Annotated, Any

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.lists.view import Token, ViewOfModel, of_index
from lexiscope.app.pages.page import Address, ModelSite, Page
from lexiscope.precompute.live.wire.answers import (
    CHANCE_OF_SCORE,
    NOT_STORED,
    Baseline,
    NeuronTransition,
    PairUsed,
    TransitionAnswer,
    put_words,
)
from lexiscope.precompute.live.wire.asks import TransitionArguments, TransitionAsk
from lexiscope.precompute.live.wire.fields import End
from lexiscope.precompute.live.wire.grammar import write_pairs

TOKENS_SHOWN = 6  # tokens of each list
BELOW_CHANCE = 5  # neurons that are shown though random words do as well; the others are folded


class TransitionAt(Address):
    pattern = "transition"


class TransitionNeuron(NeuronTransition):
    reads: Annotated[list[Token] | None, NOT_STORED]  # the first tokens of the key
    value_end: End  # the end of the value's list at which the targets are
    writes: Annotated[list[Token] | None, NOT_STORED]  # the first tokens of that end


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionView(ViewOfModel):
    lens: str
    words: str  # the pairs as they were typed
    pairs: list[PairUsed]
    shuffled_with: Baseline | None  # None without pairs
    chance: Annotated[float | None, CHANCE_OF_SCORE]
    neurons: list[TransitionNeuron]  # the best of either end, largest score first

    def of_end(self, end: End) -> tuple[Table, Table, int]:
        """Return tables of the neurons of one end, the first and the rest, and how many are above chance: the first
        table has these and a few more."""
        rows = [row for row in self.neurons if row["end"] == end]
        above = sum(row["score"] > (self.chance or 0) for row in rows)
        columns = tuple(column for column in COLUMNS if column.name not in ("end", "value_end"))
        first = above + BELOW_CHANCE
        return Table("", columns, rows[:first]), Table("", columns, rows[first:]), above

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "pairs": defused(self.words), "lens": self.lens, "chance": self.chance}

    def tables(self) -> list[Table]:
        title = f"{self.model}, neurons that read and write {self.words} ({self.lens})"
        return [Table(title, COLUMNS, self.neurons)]


def _rank(name: str) -> tuple[Column, ...]:
    """Return the columns with the mean rank of words in a vector of each neuron, for people with the end from which it
    is counted, and with z for each pair."""

    def text(row: Any) -> str:
        rank, z = row[f"{name}_rank"], row[f"{name}_z"]
        return "–" if rank is None else f"{rank:,.0f}" + (", bottom" if sum(z) < 0 else "")

    return (
        Column(
            f"{name}_rank",
            get=text,
            heading=f"rank in its {name}",
            tip="rank-in-up" if name == "up" else "rank",
            audience="people",
        ),
        Column(f"{name}_rank", audience="programs"),
        Column(f"{name}_z", get=lambda row: " ".join(map(str, row[f"{name}_z"] or ())), audience="programs"),
    )


COLUMNS = (
    Column("where", "address", get=lambda row: f"L{row['layer']}N{row['neuron']}", heading="neuron", audience="people"),
    Column("layer", audience="programs"),
    Column("neuron", audience="programs"),
    Column("end"),
    Column("score", "number", tip="transition-score", format=".2f"),
    Column("shuffled", "number", tip="transition-shuffled", format=".2f"),
    *(column for name in ("key", "up", "value") for column in _rank(name)),
    Column("reads", "tokens", page_heading="top of its key", count=TOKENS_SHOWN, css="many"),
    Column("value_end", heading="end of its value"),
    Column("writes", "tokens", page_heading="the same end of its value", count=TOKENS_SHOWN, css="many"),
)


def transition(site: ModelSite, _: TransitionAt, ask: TransitionArguments) -> TransitionView:
    """The neurons that read the first word of each pair and write the second: computed by the worker, for any words.

    z of the first word in the key, and of the second in the value, over all tokens, are standard deviations above the
    mean; the smaller counts, and the mean over the pairs is the `score`. Of a gated neuron the size of z in `up`
    counts, too, and its sign turns the value round. With `end` top a neuron adds the second word, with bottom it takes
    it away. `shuffled` is the score with other pairs' second words, `chance` what random words of like frequency reach.
    """
    answer: TransitionAnswer = site.answers[0] if site.answers else NOTHING_ASKED  # type: ignore[assignment]
    lists = FirstLists.of(site.index, ask.lens, hubs=site.left_out(ask.lens))

    def listing(row: NeuronTransition) -> TransitionNeuron:
        end: End = "bottom" if sum(row["value_z"]) < 0 else "top"
        reads = lists.tokens("ff_key", row["layer"], row["neuron"], TOKENS_SHOWN)
        writes = lists.tokens("ff_value", row["layer"], row["neuron"], TOKENS_SHOWN, end)
        return {**row, "reads": reads, "value_end": end, "writes": writes}

    return TransitionView(
        **of_index(site.index),
        lens=ask.lens,
        words=write_pairs(ask.pairs),
        pairs=put_words(answer["pairs"], site.index.tokens.texts),
        shuffled_with=answer["shuffled_with"],
        chance=answer["chance"],
        neurons=[listing(row) for row in answer["neurons"]],
    )


NOTHING_ASKED: dict[str, Any] = {"pairs": [], "neurons": [], "shuffled_with": None, "chance": None}


def asks(_: ModelSite, __: TransitionAt, ask: TransitionArguments) -> list[TransitionAsk]:
    return [TransitionAsk(**dict(ask))] if ask.pairs else []


TRANSITION = Page(
    name="transition", title="", at=TransitionAt, arguments=TransitionArguments, view=TransitionView, make=transition,
    asks=asks, is_live=True,
)  # fmt: skip
