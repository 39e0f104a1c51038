"""What is like a neuron or a subhead in the models that it is compared with: the ten best matches of each of its
vectors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from lexiscope.app.views.matched_vectors import MatchedVector, WordsOf
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index

if TYPE_CHECKING:
    from lexiscope.app.library.library import Library


class VectorMatch(MatchedVector):
    kind: str
    r: float
    lens: Annotated[str, Field(description='Of its words; "" where there are none')]


Matches: TypeAlias = Annotated[
    Mapping[str, list[VectorMatch]],
    Field(description="By the other model: the best matches of each vector, kind after kind, by |r|"),
]


def matches_of(
    library: "Library", index: Index, layer: int, vectors: Mapping[str, tuple[str, int]], lens: str, hide_hubs: bool
) -> dict[str, list[VectorMatch]]:
    """Of vectors (kind, row) of a layer by their names, in every comparison of these very weights; what is damaged is
    left out, and the comparison's own page says so."""
    found: dict[str, list[VectorMatch]] = {}
    for side, comparison in library.comparisons_of(index):
        other = comparison.b if side == "a" else comparison.a
        if not comparison.kinds:
            continue
        found[other.model] = []
        words = WordsOf.of(library, other, lens, hide_hubs)
        for kind, row in vectors.values():
            if kind not in comparison.kinds:
                continue
            try:
                matches = comparison.matches(side, kind, layer, row)
            except LexiscopeError:
                continue
            if other.model == index.manifest.model:  # of itself, what is not it
                matches = [match for match in matches if match[:2] != (layer, row)]
            alike = words.vectors(kind, matches)
            found[other.model].extend(
                {**vector, "kind": kind, "r": r, "lens": words.lens}
                for vector, (_, _, r) in zip(alike, matches, strict=True)
            )
    return found


def version_of_matches(library: "Library", index: Index) -> str:
    """Another one whenever the words of matches may be others, besides the comparisons themselves."""
    compared = library.comparisons_of(index)
    return " ".join(library.index_version((both.b if side == "a" else both.a).model) for side, both in compared)
