"""Find vectors of other models that match the vectors of a model, and read their first words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from pydantic import Field

from lexiscope.app.library.comparisons import weights_of
from lexiscope.app.lists.first_tokens import stored_lens
from lexiscope.app.lists.kept_tokens import first_tokens, hubs_of
from lexiscope.app.lists.view import IN_NO_HEAD, InHead, Token, in_head, tokens_of
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotFound
from lexiscope.precompute.index.comparison import Match
from lexiscope.precompute.index.comparison_record import ComparedModel
from lexiscope.precompute.index.index import Index

if TYPE_CHECKING:
    from lexiscope.app.library.library import Library


MATCH_TOKENS = 6  # how many first tokens of a matching vector are shown


class MatchedVector(InHead):
    """A vector of another model that matches one of this model; its place in a head is known if that model has an index
    in the data folder."""

    layer: int
    index: int
    top: Annotated[
        list[Token] | None, Field(description="Its first tokens; null where its model has no index here, or no list")
    ]
    bottom: Annotated[list[Token] | None, Field(description="Those of its bottom, where r is negative; else null")]


@dataclass(frozen=True)
class WordsOf:
    """The words of one of the two models of a comparison, read from its index."""

    model: ComparedModel
    index: Index | None = None  # None if the data folder has no index of the model, or one of other weights
    lens: str = ""
    hubs: frozenset[int] = frozenset()  # hubs to skip
    error: str = ""  # why there is no index
    # the hash of the weights of the index in the data folder, if those are not the compared ones
    other_weights: str = ""

    @classmethod
    def of(
        cls, library: "Library", model: ComparedModel, lens: str | None = None, hide_hubs: bool = False
    ) -> "WordsOf":
        """Open the index of a compared model. Its lists are read under `lens` (dot or cosine) if it has them; without
        one, under the lens whose lists are the most readable."""
        try:
            index = library.index(model.model)
        except NotFound:
            return cls(model, error="there is no index of it")
        except LexiscopeError:
            return cls(model, error="its index cannot be read")
        if weights_of(index.manifest) != weights_of(model):
            error = "its index is of other weights"
            return cls(model, error=error, other_weights=index.manifest.weights_sha256)
        lens = stored_lens(index, lens) if lens else library.best_lens(index)
        return cls(model, index, lens, hubs_of(index, lens) if hide_hubs else frozenset())

    def vectors(self, kind: str, matches: Sequence[Match]) -> list[MatchedVector]:
        """Describe matching vectors with the first tokens at the top of their lists and, if the correlation r is
        negative, also at the bottom."""
        tops = self._first(kind, matches, "top")
        bottoms = self._first(kind, [match for match in matches if match[2] < 0], "bottom")
        vectors: list[MatchedVector] = []
        for layer, index, _ in matches:
            place = in_head(self.index.shape, kind, index) if self.index else IN_NO_HEAD
            vectors.append({
                "layer": layer, "index": index, **place,
                "top": tops.get((layer, index)), "bottom": bottoms.get((layer, index)),
            })  # fmt: skip
        return vectors

    def ids(self, kind: str, layer: int, indexes: list[int], end: str, n: int) -> list[list[int]]:
        """Return the first tokens at the top or the bottom of the lists of these vectors, which are in one layer;
        return nothing if that layer cannot be read."""
        if self.index is None or kind not in self.index.stored.kinds:
            return []
        try:
            return first_tokens(self.index.shard(layer), kind, np.array(indexes), self.lens, n, self.hubs, end)
        except (IndexFault, NotFound):
            return []

    def _first(self, kind: str, matches: Sequence[Match], end: str) -> dict[tuple[int, int], list[Token]]:
        """Return the first tokens of the matching vectors, by their layer and index."""
        first: dict[tuple[int, int], list[Token]] = {}
        if self.index is None:
            return first
        for layer in {layer for layer, _, _ in matches}:
            indexes = [index for at, index, _ in matches if at == layer]
            for index, ids in zip(indexes, self.ids(kind, layer, indexes, end, MATCH_TOKENS), strict=False):
                first[layer, index] = tokens_of(self.index.tokens, ids)
        return first


def agreeing_end(r: float) -> str:
    """Return the end, top or bottom, of a matching vector's list that is similar to the top of this vector's list, by
    the sign of their correlation r."""
    return "bottom" if r < 0 else "top"


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
    """Find the vectors of other models that match vectors (kind, row) of a layer, in every comparison of exactly these
    weights; the result is by the vectors' names. Damaged comparisons are left out here; their own pages name the
    error."""
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
            # In a comparison of a model with itself, leave out the vector itself.
            if other.model == index.manifest.model:
                matches = [match for match in matches if match[:2] != (layer, row)]
            alike = words.vectors(kind, matches)
            found[other.model].extend(
                {**vector, "kind": kind, "r": r, "lens": words.lens}
                for vector, (_, _, r) in zip(alike, matches, strict=True)
            )
    return found


def version_of_matches(library: "Library", index: Index) -> str:
    """Return a text that changes whenever the words of matching vectors may change, even if the comparisons stay the
    same."""
    compared = library.comparisons_of(index)
    return " ".join(library.index_version((both.b if side == "a" else both.a).model) for side, both in compared)
