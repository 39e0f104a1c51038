"""Read the lists of a parameter that people name as they type it (L25N382, 8.11, L8H11.svd5), and find the tokens that
the lists of two parameters share."""

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.kept_tokens import ids_of, keep_vectors
from lexiscope.app.lists.labels import page_of, parameter_name
from lexiscope.app.lists.pair_lists import stored_pairs
from lexiscope.app.lists.vectors import NEURON_KINDS, SIDE_KINDS, SUBHEAD_KINDS, stored_rows, stored_vectors
from lexiscope.app.lists.view import ScoredToken, Token, TokenPair, tokens_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import LabelAddress
from lexiscope.precompute.index.not_stored import check_lens
from lexiscope.precompute.shape import ENDS, MATRICES

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
    layer, number = place.layer or 0, place.index or 0
    check_lens(index, lens)
    shard = index.shard(layer)
    read: dict[str, Any]
    if place.kind == "head":
        read = {name: stored_pairs(index, name, layer, number, lens, preset, k, outside_pairs) for name in MATRICES}
    else:
        rows = stored_rows(index, KINDS[place.kind], number, place.sub or 0)
        vectors, _ = stored_vectors(index, shard, [*rows.values()], lens, None if outside else k)
        read = dict(zip(rows, keep_vectors(vectors, outside, k), strict=True))
    return NamedParameter(
        model=index.manifest.model,
        name=parameter_name(place),
        path=page_of(place).partition("?")[0],
        lists=[{"name": name, "top": of.top, "bottom": of.bottom} for name, of in read.items()],
    )


def shared_tokens(index: Index, a: NamedParameter, b: NamedParameter, left_out: frozenset[int]) -> list[Shared]:
    """Return for every list and end of a, and every one of b, the tokens that both show, but those left out."""
    shared: list[Shared] = []
    for (name, end, tokens), (other, other_end, others) in product(_ends(a), _ends(b)):
        if both := [token for token in tokens if token in others and token not in left_out]:
            of_both = tokens_of(index.tokens, both)
            shared.append({"a": name, "a_end": end, "b": other, "b_end": other_end, "tokens": of_both})
    return shared


def _ends(side: NamedParameter) -> list[tuple[str, str, dict[int, None]]]:
    """Return the name, the end and the tokens, each once, of every list of a parameter."""
    lists: list[Any] = [*side.lists]
    return [
        (of["name"], end, dict.fromkeys(token for entry in of[end] for token in ids_of(entry)))
        for of in lists
        for end in ENDS
    ]
