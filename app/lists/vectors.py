"""Read the two lists of a vector (top and bottom), from the index or, if they are computed in another way, from a
worker's answer. Neurons, subheads (channels of heads) and singular directions consist of several vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from lexiscope.app.lists.checks import check_length, finite
from lexiscope.app.lists.difference import relative
from lexiscope.app.lists.kept_tokens import first_kept
from lexiscope.app.lists.view import HUBS_HIDDEN, OF_DIFFERENCE, PAGE_ONLY, ScoredToken, scored_tokens
from lexiscope.app.lists.worth import CHANCE, ThroughNorm, through_norm
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import Chance, Moments
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.not_stored import check_kinds
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.live.wire.answers import NOT_STORED as NOT_STORED
from lexiscope.precompute.live.wire.answers import ReadingAnswer, put_words
from lexiscope.precompute.shape import DIRECTION_KINDS

Coherence: TypeAlias = Annotated[
    tuple[float | None, float | None], Field(description="Of top and of bottom; null where it is undefined")
]
CHANGE: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference: norm / base_norm, |Δ| / |base|; left out where the base is 0",
)
UNCHANGED: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference, where nothing changed: there is nothing to list then",
)
SINGULAR: Any = Field(description="The singular value σ of this direction")
SHARE: Any = Field(
    description="σ² over the sum of the squares of all of the matrix, which is its squared Frobenius norm; null where "
    "that is 0"
)
MOMENTS: Any = Field(
    description="Over all tokens: mean, sd, skew and excess kurtosis of the scores, and z of the first token at either "
    "end, (score - mean) / sd; null where the index has no part `stats`, which `lexiscope precompute` adds"
)
THROUGH_NORM: Any = Field(
    exclude_if=lambda value: value is None, description="Only of a vector that writes and whose list means little"
)
COSINE_DIGITS = 4
# Kinds of vectors by their names on the page of a neuron, of a subhead, and of a direction.
NEURON_KINDS = {"key": "ff_key", "up": "ff_up", "value": "ff_value"}
SUBHEAD_KINDS = {"q": "w_q", "k": "w_k", "v": "w_v", "o": "w_o"}
SIDE_KINDS = {"in": "vo_in", "out": "vo_out", "query": "qk_query", "key": "qk_key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A vector and its two lists. A singular direction of norm 0 does not exist: its lists are empty."""

    top: list[ScoredToken]
    bottom: list[ScoredToken]
    norm: float
    coherence: Coherence
    base_norm: Annotated[float | None, OF_DIFFERENCE] = None
    change: Annotated[float | None, CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None
    # the numbers of hidden hubs at the top and at the bottom
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None
    moments: Annotated[Moments | None, MOMENTS] = None
    chance: Annotated[Chance | None, CHANCE] = None
    through_norm: Annotated[ThroughNorm | None, THROUGH_NORM] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReading:
    """A vector's list computed in another way than the stored one, which is called a reading."""

    top: list[ScoredToken]
    bottom: list[ScoredToken]
    overlap: float  # Jaccard similarity of this top list and the stored one of the same length and lens
    kept: Annotated[frozenset[int], PAGE_ONLY] = frozenset()  # tokens that are also in the stored list
    # the numbers of hidden hubs at the top and at the bottom
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Lists of the same vectors that a worker has computed in another way."""

    name: str  # how the lists were computed: norm, first, ...
    vectors: Mapping[str, VectorReading]


def stored_rows(index: Index, kinds: Mapping[str, str], number: int, sub: int = 0) -> dict[str, tuple[str, int]]:
    """Return the kind and the row of each stored vector of a neuron or, with `sub`, of a part of a head, by its name;
    raise NotStored if there is none."""
    of_model = {name: kind for name, kind in kinds.items() if kind in index.shape.kinds}
    check_kinds(index, *of_model.values())
    stored = {name: kind for name, kind in of_model.items() if kind in index.stored.kinds}
    return {
        name: (kind, number if kind.startswith("ff_") else index.shape.row(kind, number, sub))
        for name, kind in stored.items()
    }


def stored_vectors(
    index: Index, shard: Shard, vectors: Sequence[tuple[str, int]], lens: str, k: int | None
) -> tuple[list[Vector], Array]:
    """Read the first k entries of both lists of each vector (kind, row). Return the vectors, and all stored token ids
    (vectors, both ends of the list, entries)."""
    check_length(k)
    ids, scores = shard.vectors(vectors, lens)
    lists = zip(vectors, ids[:, :, :k].tolist(), scores[:, :, :k], strict=True)
    return [
        _vector(index, shard, kind, row, lens, of_ends, scores_of_ends)
        for (kind, row), of_ends, scores_of_ends in lists
    ], ids


def cosines_of(scores: Array, norm: float, lens: str) -> list[list[float]]:
    """Return the cosines of a vector with tokens, of its scores (both ends of the list, entries) under the lens cosine,
    where tokens have length one; nothing under another lens or for a vector without a direction."""
    if lens != "cosine" or not norm:
        return [[] for _ in scores]
    cosines: list[list[float]] = np.round(np.asarray(scores, np.float64) / norm, COSINE_DIGITS).tolist()
    return cosines


def _vector(index: Index, shard: Shard, kind: str, row: int, lens: str, ids: list[list[int]], scores: Array) -> Vector:
    norm, is_direction = shard.norm(kind, row), kind in DIRECTION_KINDS
    base_norm = shard.base_norm(kind, row) if index.stored.difference and not is_direction else None
    change = None if base_norm is None else relative(norm, base_norm)
    if norm == 0 and is_direction:  # a head may have fewer directions than channels
        return Vector(top=[], bottom=[], norm=norm, coherence=(None, None))
    if norm == 0 and base_norm is not None:
        return Vector(
            top=[], bottom=[], norm=norm, coherence=(None, None), base_norm=base_norm, change=change, unchanged=True
        )
    coherence_top, coherence_bottom = map(finite, shard.coherences(kind, row, lens))
    moments, chance = index.moments(shard.layer, kind, row, lens), index.chance(kind, lens)
    top, bottom = map(scored_tokens, (index.tokens,) * 2, ids, scores.tolist(), cosines_of(scores, norm, lens))
    return Vector(
        top=top,
        bottom=bottom,
        norm=norm,
        coherence=(coherence_top, coherence_bottom),
        base_norm=base_norm,
        change=change,
        moments=moments,
        chance=chance,
        through_norm=through_norm(index, shard, kind, row, moments, chance),
    )


def vector_reading(
    index: Index, kind: str, layer: int, row: int, lens: str, answer: ReadingAnswer,
    outside: frozenset[int] = frozenset(),
) -> VectorReading:  # fmt: skip
    """Make a reading, a list computed in another way than the stored one, from a worker's answer, and mark its tokens
    that are also in the stored list. Neither has the tokens `outside` of what the visitor wants."""
    stored = index.shard(layer).vector(kind, row, lens)
    put_words(answer, index.tokens.texts)
    top, bottom = ({token["id"] for token in tokens} for tokens in (answer["top"], answer["bottom"]))
    stored_top, stored_bottom = (
        set(first_kept([ids], outside, len(tokens))[0])
        for ids, tokens in zip(stored.ids.tolist(), (answer["top"], answer["bottom"]), strict=True)
    )
    return VectorReading(
        top=answer["top"],
        bottom=answer["bottom"],
        overlap=len(top & stored_top) / len(top | stored_top) if top else 1.0,
        kept=frozenset((top & stored_top) | (bottom & stored_bottom)),
    )


def shares(index: Index, shard: Shard, matrix: str, head: int) -> list[float | None]:
    """Return how large a share of a head's matrix each singular direction has. A difference of two models may have more
    directions than are stored; its shares are of the whole matrix."""
    squares = [value * value for value in shard.heads.all_singular(matrix)[head].tolist()]
    whole = sum(squares)
    if index.stored.difference:
        whole = max(whole, float(shard.heads.all_matrix_norms(matrix)[0][head]) ** 2)
    return [square / whole if whole else None for square in squares]
