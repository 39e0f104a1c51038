"""Show the panel `heads`: what every head of every layer does in the run, as a map by one measure and a table of the
heads with the most of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.html.numbers import percent
from lexiscope.app.pages.prompt.panel import Panel, Record, listed, numbers
from lexiscope.precompute.live.wire.answers import HeadList, HeadSummary, Token

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

HeadMeasure = Literal["repeats", "self", "letter", "first", "entropy", "distance", "moves"]
MEASURES: Mapping[HeadMeasure, str] = {
    "repeats": "repeated words", "self": "own word", "letter": "first letter", "first": "at the first token",
    "entropy": "entropy", "distance": "distance", "moves": "moves",
}  # fmt: skip
OF_WORDS: tuple[HeadMeasure, ...] = ("repeats", "self", "letter")  # measures of each of the three lists
LISTS: Mapping[HeadList, str] = {"looks_for": "looks for", "found_by": "is found by", "sends": "sends"}


@dataclass(frozen=True, slots=True)
class MeasuredHead:
    """A head, and the measure that the map is coloured by."""

    head: HeadSummary
    value: float  # for measures of words, that of the list with the most
    text: str
    of: str  # the words of LISTS; "" for other measures
    repeated: Sequence[Token]  # words of that list


def measured(head: HeadSummary, by: HeadMeasure, side: HeadList | None = None) -> MeasuredHead:
    value: Any = head[by]
    if by not in OF_WORDS:
        return MeasuredHead(head, value, f"{value:.2f}" if by in ("entropy", "distance") else percent(value), "", ())
    of: HeadList = side or max(LISTS, key=value.__getitem__)
    text = percent(value[of]) if value[of] else "0"
    return MeasuredHead(head, value[of], text, LISTS[of], head["repeated"][of])


def measured_heads(heads: Sequence[HeadSummary], by: HeadMeasure, side: HeadList | None) -> list[MeasuredHead]:
    """Return all heads, those with the most of a measure first."""
    return sorted((measured(head, by, side) for head in heads), key=lambda each: -each.value)


def rows(view: "PromptView") -> Iterator[Record]:
    for head in view.heads or ():
        where: Record = {"panel": "heads", "layer": head["layer"], "head": head["head"]}
        yield from numbers(where, head, ("first", "entropy", "distance", "moves"))
        yield {**where, "measure": "rests", "value": int(head["rests"])}
        for measure in OF_WORDS:
            shares: Any = head[measure]
            for name in LISTS:
                yield {**where, "part": name, "measure": measure, "value": shares[name]}
        for name in LISTS:
            yield from listed({**where, "part": name}, head["repeated"][name])


def _share(measure: HeadMeasure) -> Column:
    return Column(measure, "ratio", get=lambda head: measured(head, measure).value, heading=MEASURES[measure])


COLUMNS = (
    Column("layer", "number"), Column("head", "number"), *map(_share, OF_WORDS),
    Column("repeated", "words", lambda head: measured(head, "repeats").repeated, "words"),
    Column("first", "ratio", heading=MEASURES["first"]),
    Column("entropy", "number"), Column("distance", "number"), Column("moves", "ratio"),
    Column("rests", get=lambda head: "rests" if head["rests"] else ""),
)  # fmt: skip


def tables(view: "PromptView") -> list[Table]:
    if view.heads is None:
        return []
    heads = [each.head for each in measured_heads(view.heads, view.by, view.side)]
    return [Table(f"{view.model}, heads by {MEASURES[view.by]}", COLUMNS, heads)]


HEADS = Panel(name="heads", title="Heads", working="reading every head", rows=rows, says_nothing_of=(), tables=tables)
