"""Read the lists of a parameter that people name as they type it (L25N382, 8.11, L8H11.svd5), and find the tokens that
the lists of two parameters share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.kept_tokens import first_entries
from lexiscope.app.lists.labels import page_of
from lexiscope.app.lists.pair_lists import stored_pairs
from lexiscope.app.lists.vectors import SIDE_KINDS, SUBHEAD_KINDS, stored_vectors
from lexiscope.app.lists.view import ScoredToken, Token, TokenPair, token_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import LabelAddress
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.index.parameter_names import written_name
from lexiscope.precompute.shape import ENDS, MATRICES

NEURON_KINDS = {"key": "ff_key", "up": "ff_up", "value": "ff_value"}
KINDS = {"ff": NEURON_KINDS, "sub": SUBHEAD_KINDS, "svd": SIDE_KINDS}  # of vectors, by their names on a page
PAIR_LISTS = "of vectors tokens, of a head's matrices pairs"


class NamedList(TypedDict):
    name: Annotated[str, Field(description="As on the parameter's page: key, up, value, q, k, v, o, in, out, vo, ...")]
    top: Annotated[list[ScoredToken] | list[TokenPair], Field(description=PAIR_LISTS)]
    bottom: Annotated[list[ScoredToken] | list[TokenPair], Field(description=PAIR_LISTS)]


class Shared(TypedDict):
    """The tokens that stand at one end of a list of the first parameter, and at one end of a list of the second."""

    a: str
    a_end: str
    b: str
    b_end: str
    tokens: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedParameter:
    model: str
    name: Annotated[str, Field(description="Such as L25N382, L8H11, L8H11.5 or L8H11.svd5")]
    path: Annotated[str, Field(description="The path of its page")]
    lists: list[NamedList]


def lists_of(
    index: Index, place: LabelAddress, lens: str, preset: str, k: int,
    outside: frozenset[int] = frozenset(), outside_pairs: frozenset[int] = frozenset(),
) -> NamedParameter:  # fmt: skip
    """Read the first k entries at both ends of each of a parameter's lists, of those without a token `outside` of what
    the visitor wants."""
    check_lens(index, lens)
    assert place.layer is not None
    assert place.index is not None
    shard, lists = index.shard(place.layer), list[NamedList]()
    if place.kind == "head":
        for matrix in MATRICES:
            pairs = stored_pairs(index, matrix, place.layer, place.index, lens, preset, k, outside_pairs)
            lists.append({"name": matrix, "top": pairs.top, "bottom": pairs.bottom})
    else:
        kinds = {name: kind for name, kind in KINDS[place.kind].items() if kind in index.shape.kinds}
        check_kinds(index, *kinds.values())
        kinds = {name: kind for name, kind in kinds.items() if kind in index.stored.kinds}
        rows = [(kind, _row(index, place, kind)) for kind in kinds.values()]
        vectors, _ = stored_vectors(index, shard, rows, lens, None if outside else k)
        for name, vector in zip(kinds, vectors, strict=True):
            top, bottom = (first_entries(entries, outside, k) for entries in (vector.top, vector.bottom))
            lists.append({"name": name, "top": top, "bottom": bottom})
    return NamedParameter(
        model=index.manifest.model, name=written_name(place), path=page_of(place).partition("?")[0], lists=lists
    )


def _row(index: Index, place: LabelAddress, kind: str) -> int:
    return (place.index or 0) if place.kind == "ff" else index.shape.row(kind, place.index or 0, place.sub or 0)


def shared_tokens(index: Index, a: NamedParameter, b: NamedParameter, left_out: frozenset[int]) -> list[Shared]:
    """Return for every list and end of a, and every one of b, the tokens that both show, but those left out."""
    ends_of = [[(of["name"], end, of[end]) for of in side.lists for end in ENDS] for side in (a, b)]  # type: ignore
    found: list[Shared] = []
    for name, end, entries in ends_of[0]:
        for other, other_end, others in ends_of[1]:
            both = (_ids(entries) & _ids(others)) - left_out
            if both:
                in_order = [token for token in dict.fromkeys(_in_order(entries)) if token in both]
                tokens = [token_of(index.tokens, token) for token in in_order]
                found.append({"a": name, "a_end": end, "b": other, "b_end": other_end, "tokens": tokens})
    return found


def _in_order(entries: Sequence[Mapping[str, Any]]) -> list[int]:
    tokens = ([entry] if "id" in entry else [entry["from"], entry["to"]] for entry in entries)
    return [token["id"] for of_entry in tokens for token in of_entry]


def _ids(entries: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    return frozenset(_in_order(entries))
