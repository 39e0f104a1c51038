"""What a comparison with the paper's lists comes to, in plain sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.views.paper_finetuning import WordsCompared
from app.views.paper_heads import PAIRS_FIRST, Direction, Fit, HeadCompared
from app.views.paper_neurons import TOKENS_FIRST, ColumnCompared, LookupCompared, NeuronCompared
from precompute.index.index import Index

# By the authors' code, a printed pair is what a head reads and what it writes, or a query and a key.
MEANING = {
    ("vo", "as printed"): "as the authors’ code has it: first what a head reads (attends to), then what it writes",
    ("vo", "turned"): "against the authors’ code, in which what a head reads comes first, then what it writes",
    ("qk", "as printed"): "as the authors’ code has it: first the query, then the key",
    ("qk", "turned"): "against the authors’ code, in which the query comes first, then the key",
}
CLEARLY = 2  # times as many, for one direction to be the paper's


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """Which way round the paper prints the pairs of a matrix, by all heads that can be compared."""

    matrix: str
    as_printed: Annotated[int, Field(description="Printed pairs among our first 50, up to the space")]
    turned: Annotated[int, Field(description="The same with their tokens exchanged")]
    of: int
    fits: Fit
    means: str


def orientations(heads: Sequence[HeadCompared]) -> list[Orientation]:
    found = []
    for matrix in ("vo", "qk"):
        compared = [head for head in heads if head.matrix == matrix and not head.why_not]
        if compared:
            found.append(_orientation(matrix, compared))
    return found


def _orientation(matrix: str, heads: Sequence[HeadCompared]) -> Orientation:
    directions: tuple[Direction, Direction] = ("as printed", "turned")
    as_printed, turned = (
        sum(head.count(PAIRS_FIRST[0], direction=each).up_to_space for head in heads) for each in directions
    )
    if not as_printed and not turned:
        fits: Fit = "neither"
        means = "no printed pair is in ours either way"
    elif max(as_printed, turned) < CLEARLY * min(as_printed, turned):
        fits, means = "both", "both ways fit about as well, so what is shared may be so by chance"
    else:
        fits = "as printed" if as_printed > turned else "turned"
        means = MEANING[matrix, fits]
    of = sum(head.count(PAIRS_FIRST[0]).of for head in heads)
    return Orientation(matrix=matrix, as_printed=as_printed, turned=turned, of=of, fits=fits, means=means)


def summary(heads: Sequence[HeadCompared], neurons: Sequence[NeuronCompared], words: Sequence[WordsCompared]) -> str:
    """One sentence; "" where nothing is printed of the model."""
    printed: list[HeadCompared | NeuronCompared | WordsCompared] = [*heads, *neurons, *words]
    why_not = [each.why_not for each in printed]
    if why_not and all(why_not):
        return f"None of the {len(printed)} printed lists can be compared with ours, the first because {why_not[0]}."
    counts = [head.count(PAIRS_FIRST[0]) for head in heads if not head.why_not]
    tokens = [_own(column) for neuron in neurons if not neuron.why_not for column in neuron.columns]
    said = [
        _counted(sum(count.up_to_space for count in counts), sum(count.of for count in counts), "pairs of heads",
               f"among our first {PAIRS_FIRST[0]}"),
        _counted(sum(found for found, _ in tokens), sum(of for _, of in tokens), "tokens of neurons",
                 f"among our first {TOKENS_FIRST}"),
        _counted(sum(group.found for group in words), sum(len(group.words) for group in words if not group.why_not),
                 "words of fine-tuned vectors", "in the lists of the vectors that changed most"),
    ]  # fmt: skip
    together = ", and ".join(each for each in said if each)
    chance = f", where chance would give {sum(group.by_chance for group in words):.0f}" if words else ""
    return f"{together[0].upper()}{together[1:]}, up to the leading space{chance}." if together else ""


def details(
    index: Index,
    heads: Sequence[HeadCompared],
    neurons: Sequence[NeuronCompared],
    lookups: Sequence[LookupCompared],
    words: Sequence[WordsCompared],
) -> list[str]:
    sentences = [_of_heads(heads), _of_neurons(neurons), _of_lookups(lookups), _of_words(words)]
    printed: list[HeadCompared | NeuronCompared | WordsCompared] = [*heads, *neurons, *lookups, *words]
    missing = sum(each.why_not is not None for each in printed)
    if missing and len(index.layers) < index.shape.n_layers:
        sentences.append(
            f"{missing} of {len(printed)} printed lists are not compared; {len(index.layers)} of "
            f"{index.shape.n_layers} layers are built. `{index.manifest.rebuild_command}` builds the others."
        )
    elif missing:
        sentences.append(f"{missing} of {len(printed)} printed lists are not compared: this model has no such lists.")
    return [sentence for sentence in sentences if sentence]


def _counted(count: int, of: int, what: str, where: str) -> str:
    if not of:
        return ""
    return f"{count or 'none'} of the {of} printed {what} {'is' if count < 2 else 'are'} {where}"


def _own(column: ColumnCompared) -> tuple[int, int]:
    """How many of a printed column are in our list of the same vector, and of how many; of tokens whose column is lost,
    in either."""
    of = sum(not token.doubtful for token in column.tokens)
    if column.column == "unassigned":
        return column.in_either, of
    same = column.in_key if column.column == "key" else column.in_value
    return same.up_to_space if same else 0, of


def _of_heads(heads: Sequence[HeadCompared]) -> str:
    compared = [head for head in heads if not head.why_not]
    if not compared:
        return ""
    first, more = ([head.count(each) for head in compared] for each in PAIRS_FIRST)
    of = sum(count.of for count in first)
    in_first, in_more = (sum(count.up_to_space for count in counts) for counts in (first, more))
    exactly, exactly_of = sum(count.exactly for count in first), sum(count.exactly_of for count in first)
    doubtful, doubtful_of = sum(count.doubtful for count in first), sum(count.doubtful_of for count in first)
    which = _which(len(compared), len(heads), "head")
    text = (
        f"Of the {of} pairs printed of {which}, {_share(in_first, of)} among our first {PAIRS_FIRST[0]} up to the "
        f"leading space, {in_more} among our first {_longest(compared)}"
    )
    if exactly_of:
        text += f"; exactly, {exactly} of the {exactly_of} whose spaces are known"
    if doubtful_of:
        text += f"; of {doubtful_of} more from garbled print, {doubtful}"
    return text + "."


def _of_neurons(neurons: Sequence[NeuronCompared]) -> str:
    compared = [neuron for neuron in neurons if not neuron.why_not]
    if not compared:
        return ""
    columns = [column for neuron in compared for column in neuron.columns if column.column != "unassigned"]
    lost = [column for neuron in compared for column in neuron.columns if column.column == "unassigned"]
    own, of = (sum(numbers) for numbers in zip(*map(_own, columns), strict=True))
    others = (column.in_value if column.column == "key" else column.in_key for column in columns)
    exchanged = sum(other.up_to_space for other in others if other)
    text = (
        f"Of the {of} tokens printed of {_which(len(compared), len(neurons), 'neuron')}, {_share(own, of)} among our "
        f"first {TOKENS_FIRST} of the same vector, {exchanged} among those of the other vector of the neuron"
    )
    either, either_of = sum(column.in_either for column in lost), sum(len(column.tokens) for column in lost)
    return f"{text}; of {either_of} whose column is lost, {either} are in either." if lost else f"{text}."


def _of_lookups(lookups: Sequence[LookupCompared]) -> str:
    known = [each for each in lookups if each.ranks]
    if not known:
        return ""
    said = [
        f"{' or '.join(dict.fromkeys(str(spelt['rank']) for spelt in each.ranks or ()))} (printed: {each.printed_rank})"
        for each in known
    ]
    return f"By the seed words, the neurons that were looked up rank {', '.join(said)}."


def _of_words(words: Sequence[WordsCompared]) -> str:
    compared = [group for group in words if not group.why_not]
    if not compared:
        return ""
    found, of = sum(group.found for group in compared), sum(len(group.words) for group in compared)
    chance = sum(group.by_chance for group in compared)
    return (
        f"Of the {of} words printed of {_which(len(compared), len(words), 'group')} of fine-tuned vectors, "
        f"{_share(found, of)} in the lists of the vectors that changed most here; chance would give {chance:.0f}."
    )


def _which(compared: int, of: int, what: str) -> str:
    return f"{of} {what}s" if compared == of > 1 else f"this {what}" if of == 1 else f"{compared} of {of} {what}s"


def _share(count: int, of: int) -> str:
    return "none is" if not count else f"{count} ({count / of:.0%}) {'is' if count == 1 else 'are'}"


def _longest(heads: Sequence[HeadCompared]) -> str:
    """How many of our pairs are compared: fewer where the index stores fewer."""
    fewest, most = (f(head.compared for head in heads) for f in (min, max))
    stored = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{PAIRS_FIRST[-1]}" if fewest >= PAIRS_FIRST[-1] else f"{stored} (no more are to be compared with)"
