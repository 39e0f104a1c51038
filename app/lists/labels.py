"""Show labels, which are what people wrote about parameters: beside the lists of a parameter, compared with the lists
of the index, and as text to copy."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Protocol

from pydantic import Field

from lexiscope.app import urls
from lexiscope.app.lists.vectors import Vector
from lexiscope.app.lists.view import OMIT_NONE, TokenPair
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import DIRECTIONS, NEURONS, SUBHEADS, LabelAddress, parse_label_address
from lexiscope.precompute.index.label_files import FiledLabel, Label
from lexiscope.precompute.paper.matching import Entry, ranks_in_ours
from lexiscope.precompute.shape import ENDS, MATRICES

PAIR_SIDES = ("from", "to")
# How many entries of a stored list a label is compared with, even if more are stored: as on the page of the paper.
PAIRS_COMPARED, TOKENS_COMPARED = 500, 100
HEADLINE = 50  # `in_first_50` counts entries among so many first pairs of a list


@dataclass(frozen=True, slots=True, kw_only=True)
class InOurs:
    """How much of a label's list of words or pairs is in one list of the index."""

    kind: Annotated[str, Field(description="The vector's, or the matrix")]
    # which side of the pairs, from or to, is compared with the label's tokens
    side: Annotated[str | None, OMIT_NONE] = None
    length: Annotated[int, Field(description="Of our list")]
    exactly: int
    up_to_space: Annotated[int, Field(description="Those that are in it, with or without a leading space")]
    in_first_50: Annotated[
        int | None, Field(exclude_if=lambda value: value is None, description="Of pairs: those among our first 50")
    ] = None
    turned: Annotated[int | None, Field(exclude_if=lambda value: value is None, description="Pairs the other way")] = (
        None
    )
    ranks: Annotated[list[int | None], Field(description="Of the label's entries in our list, from 1")]


def in_ours(index: Index, label: Label) -> list[InOurs]:
    """Compare a label (what somebody wrote about a parameter) with each list of that parameter; the result is empty if
    no such list is stored or readable."""
    try:
        return [*_lists(index, label)]
    except LexiscopeError:
        return []


def _lists(index: Index, label: Label) -> Iterator[InOurs]:
    if label.lens not in index.stored.lenses or label.about.layer not in index.layers:
        return
    if label.pairs is not None:
        ours = _pairs(index, label, label.about.kind)
        turned = [(second, first) for first, second in ours]
        theirs: list[Entry] = [(first, second) for first, second in label.pairs]
        found = sum(entry.up_to_space is not None for entry in ranks_in_ours(theirs, turned))
        yield _compared(label.about.kind, theirs, [*ours], turned=found)
    elif label.tokens is not None:
        tokens: list[Entry] = [(token,) for token in label.tokens]
        if label.about.parameter == "head":
            for matrix in MATRICES if label.about.kind == "head" else (label.about.kind,):
                pairs = _pairs(index, label, matrix)
                for at, side in enumerate(PAIR_SIDES):
                    yield _compared(matrix, tokens, [*dict.fromkeys((pair[at],) for pair in pairs)], side)
        else:
            for kind in _kinds(index, label.about):
                if (ours_of_kind := _tokens(index, label, kind)) is not None:
                    yield _compared(kind, tokens, ours_of_kind)


def _compared(
    kind: str, theirs: list[Entry], ours: list[Entry], side: str | None = None, turned: int | None = None
) -> InOurs:
    ranks = ranks_in_ours(theirs, ours)
    return InOurs(
        kind=kind,
        side=side,
        length=len(ours),
        exactly=sum(entry.exactly is not None for entry in ranks),
        up_to_space=sum(entry.up_to_space is not None for entry in ranks),
        turned=turned,
        in_first_50=None if turned is None else sum((entry.up_to_space or HEADLINE + 1) <= HEADLINE for entry in ranks),
        ranks=[entry.up_to_space for entry in ranks],
    )


def _pairs(index: Index, label: Label, matrix: str) -> list[tuple[str, str]]:
    if matrix not in index.stored.matrices:
        return []
    texts, shard = index.tokens.texts, index.shard(label.about.layer or 0)
    pairs = shard.heads.pairs(matrix, label.about.index or 0, label.lens, label.preset, label.end).ids[:PAIRS_COMPARED]
    return [(texts[first], texts[second]) for first, second in pairs.tolist()]


def _tokens(index: Index, label: Label, kind: str) -> list[Entry] | None:
    """Return the tokens of a vector's list; None if the vector is zero and so has no list."""
    about, texts, shard = label.about, index.tokens.texts, index.shard(label.about.layer or 0)
    number = about.index or 0
    row = number if about.parameter == "neuron" else index.shape.row(kind, number, about.sub or 0)
    if shard.norm(kind, row) == 0:
        return None
    ids, _ = shard.vectors([(kind, row)], label.lens)  # (1, E, K)
    return [(texts[token],) for token in ids[0, ENDS.index(label.end), :TOKENS_COMPARED].tolist()]


def _kinds(index: Index, about: LabelAddress) -> list[str]:
    """Return the kinds of stored vectors (such as a neuron's key and value) that a label is about."""
    family = next(kinds for kinds in (NEURONS, SUBHEADS, DIRECTIONS) if about.kind in kinds)
    named = family[1:] if about.kind == family[0] else (about.kind,)
    return [kind for kind in named if kind in index.stored.kinds]


LABELS_SHOWN = 20  # most labels on the page of a parameter

LABELS: Any = Field(
    exclude_if=lambda value: value is None, description="What people said of it, the first 20; left out if nothing"
)
OF_LIST: Any = Field(exclude_if=lambda value: value is None, description="Only where the label carries a list")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLabel:
    """A label (what somebody wrote about a parameter) with the fields of its file, the name of that file and the number
    of the label there."""

    address: str
    title: str
    text: str
    source: str
    url: str
    file: str
    entry: Annotated[int, Field(description="Which of the file, from 1")]
    pairs: Annotated[list[list[str]] | None, OMIT_NONE] = None
    tokens: Annotated[list[str] | None, OMIT_NONE] = None
    end: Annotated[str | None, OF_LIST] = None
    lens: Annotated[str | None, OF_LIST] = None
    preset: Annotated[str | None, Field(exclude_if=lambda value: value is None, description="Of pairs")] = None
    in_ours: Annotated[
        list[InOurs] | None,
        Field(
            exclude_if=lambda value: value is None,
            description="Of the label's list, by the lists of ours that it is about: how much of it is there",
        ),
    ] = None

    @property
    def about(self) -> LabelAddress:
        return parse_label_address(self.address)

    @property
    def ranks(self) -> list[int | None]:
        """Return the rank of each of the label's entries in the stored list that has the most of them."""
        length = len(self.pairs or self.tokens or ())
        return max(self.in_ours or (), key=lambda of: of.up_to_space).ranks if self.in_ours else [None] * length

    @property
    def name(self) -> str:
        """Return the name, for people, of the parameter that the label is about."""
        return parameter_name(self.about)


def labels_of(index: Index, filed: Iterable[FiledLabel]) -> list[ShownLabel] | None:
    """Return the labels of one parameter as its page shows them, up to LABELS_SHOWN; None if there are none."""
    return [shown(index, label) for label in islice(filed, LABELS_SHOWN)] or None


def shown(index: Index, filed: FiledLabel) -> ShownLabel:
    label = filed.label
    has_list = label.pairs is not None or label.tokens is not None
    return ShownLabel(
        address=label.address,
        title=label.title,
        text=label.text,
        source=label.source,
        url=label.url,
        file=filed.file,
        entry=filed.entry,
        pairs=label.pairs,
        tokens=label.tokens,
        end=label.end if has_list else None,
        lens=label.lens if has_list else None,
        preset=label.preset if label.pairs is not None else None,
        in_ours=in_ours(index, label) if has_list else None,
    )


def parameter_name(about: LabelAddress) -> str:
    """Write the name of a parameter in the one way that addresses and pages have: L8H11.5, L10N2361 or, of what a label
    is about, also L16H6 VO, L10N2361 ff_value or "the model"."""
    where = f"L{about.layer}{'N' if about.parameter == 'neuron' else 'H'}{about.index}"
    match about.parameter:
        case "":
            return "the model"
        case "subhead":
            where += f".{about.sub}"
        case "direction":
            where += f".svd{about.sub}"
    if about.kind in ("head", "ff", "sub", "svd"):
        return where
    return f"{where} {about.kind.upper() if about.parameter == 'head' else about.kind}"


def page_of(about: LabelAddress, lens: str | None = None) -> str:
    """Return the address of the page that shows a parameter with its labels."""
    if not about.kind:
        return urls.link("labels", about.model)
    numbers = [number for number in (about.layer, about.index, about.sub) if number is not None]
    if about.kind in ("vo", "qk"):
        return urls.link("pairs", about.model, *numbers, about.kind, lens=lens)
    return urls.link(about.parameter, about.model, *numbers, lens=lens)


LABEL_ENTRIES = 10  # how many entries of a list a new label starts with
TITLE_WORDS = 3
LONGEST_LABEL_TEXT = 200  # most characters of a token in a new label: few tokens are so long

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """The content of a new label of a parameter: its address below the model, and the first entries of its list."""

    path: str
    lens: str
    tokens: Sequence[str] = ()
    pairs: Sequence[Sequence[str]] = ()
    preset: str = "all"
    title: str = ""  # otherwise the first words of the list
    text: str = ""


class Labelled(Protocol):
    """The data of a page that can be copied as a label."""

    @property
    def model(self) -> str: ...

    def label_entries(self) -> list[LabelEntry]: ...


def vector_entry(path: str, lens: str, vector: Vector | None) -> LabelEntry:
    tokens = (
        [entry["token"] for entry in vector.top if len(entry["token"]) <= LONGEST_LABEL_TEXT][:LABEL_ENTRIES]
        if vector
        else []
    )
    return LabelEntry(path, lens, tokens)


def pairs_entry(path: str, lens: str, preset: str, top: Sequence[TokenPair]) -> LabelEntry:
    texts = [[pair["from"]["token"], pair["to"]["token"]] for pair in top]
    pairs = [pair for pair in texts if max(map(len, pair)) <= LONGEST_LABEL_TEXT][:LABEL_ENTRIES]
    return LabelEntry(path, lens, pairs=pairs, preset=preset)


def as_label(view: Labelled) -> str:
    """Write the text of a file of labels for a person to complete: one label or, for a head or a singular direction,
    one for each of the head's matrices. The titles are to be changed."""
    return _json([_fields(view.model, entry) for entry in view.label_entries()])


def _fields(model: str, entry: LabelEntry) -> Fields:
    """Make the fields of a new label; its title consists of the first words of its list, until a person writes a better
    one."""
    texts = [*entry.tokens, *(text for pair in entry.pairs for text in pair)]
    words = dict.fromkeys(word for text in texts if (word := text.strip()).isalpha())
    title = (entry.title or ", ".join([*words][:TITLE_WORDS]) or entry.path)[:LONGEST_LABEL_TEXT]
    address = f"{model}/{entry.path}".removesuffix("/")
    fields = {"address": address, "title": title, "text": entry.text, "source": "", "url": ""}
    if not texts:
        return fields
    of_list = {"tokens": [*entry.tokens], "pairs": [*entry.pairs]}
    usual = {"lens": "dot", "preset": "all"}
    chosen = {name: getattr(entry, name) for name in usual if getattr(entry, name) != usual[name]}
    return {**fields, **{name: entries for name, entries in of_list.items() if entries}, **chosen}


def _json(entries: list[Fields]) -> str:
    """Write the labels as JSON with a field on each line, and a list on one line."""
    objects = [
        "  {\n" + ",\n".join(f'    "{name}": {_value(value)}' for name, value in entry.items()) + "\n  }"
        for entry in entries
    ]
    return "[\n" + ",\n".join(objects) + "\n]\n"


def _value(value: Any) -> str:
    """Write a value as JSON; invisible characters become escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
