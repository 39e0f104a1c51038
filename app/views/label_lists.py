"""How much of the list that a label carries is in ours: exactly, and up to the leading space, which print may have
lost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lexiscope.app.views.tokens import OMIT_NONE
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import DIRECTIONS, NEURONS, SUBHEADS, LabelAddress
from lexiscope.precompute.index.label_files import Label
from lexiscope.precompute.paper.matching import Entry, ranks_in_ours
from lexiscope.precompute.shape import ENDS, MATRICES

COLUMNS = ("from", "to")
FIRST_PAIRS, FIRST_TOKENS = 500, 100  # of ours that are looked at, however many are stored: as on the page of the paper
HEADLINE = 50  # pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class InOurs:
    """One of our lists, and what of the label's is in it."""

    kind: Annotated[str, Field(description="The vector's, or the matrix")]
    side: Annotated[str | None, OMIT_NONE] = None  # of tokens among pairs: from or to
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
    """In each list that the label's address stands for; none where they are not stored, or cannot be read."""
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
                for at, side in enumerate(COLUMNS):
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
    pairs = shard.heads.pairs(matrix, label.about.index or 0, label.lens, label.preset, label.end).ids[:FIRST_PAIRS]
    return [(texts[first], texts[second]) for first, second in pairs.tolist()]


def _tokens(index: Index, label: Label, kind: str) -> list[Entry] | None:
    """None where the vector is zero, and lists nothing."""
    about, texts, shard = label.about, index.tokens.texts, index.shard(label.about.layer or 0)
    number = about.index or 0
    row = number if about.parameter == "neuron" else index.shape.row(kind, number, about.sub or 0)
    if shard.norm(kind, row) == 0:
        return None
    ids, _ = shard.vectors([(kind, row)], label.lens)  # (1, E, K)
    return [(texts[token],) for token in ids[0, ENDS.index(label.end), :FIRST_TOKENS].tolist()]


def _kinds(index: Index, about: LabelAddress) -> list[str]:
    """The stored vectors that an address stands for."""
    family = next(kinds for kinds in (NEURONS, SUBHEADS, DIRECTIONS) if about.kind in kinds)
    named = family[1:] if about.kind == family[0] else (about.kind,)
    return [kind for kind in named if kind in index.stored.kinds]
