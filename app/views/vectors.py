"""A vector's two lists, as an index stores them and as a worker reads them in another way.
Neurons and subheads are made of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from app.views.checks import check_length, finite
from app.views.tokens import PAGE_ONLY, ScoredToken, scored_tokens
from precompute.index.index import Index
from precompute.index.shard_reader import Array, Shard
from precompute.index.tokens import TokenTable
from precompute.live.wire import ReadingAnswer

NOT_STORED: Any = Field(description="null where the index was built without it (`--kinds`, `--pairs 0`)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    top: list[ScoredToken]
    bottom: list[ScoredToken]
    norm: Annotated[float, PAGE_ONLY]
    coherence: Annotated[tuple[float | None, float | None], PAGE_ONLY]  # of top and bottom; None if undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReading:
    """A vector's list in another reading."""

    top: list[ScoredToken]
    bottom: list[ScoredToken]
    overlap: float  # Jaccard of this top with the stored one of the same length and lens
    kept: Annotated[frozenset[int], PAGE_ONLY]  # tokens of this top and bottom that the stored ones have, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The same vectors as a worker reads them: with norms folded in, or with tokens after the first MLP."""

    name: str  # norm, mlp
    vectors: Mapping[str, VectorReading]


def stored_vectors(
    index: Index, shard: Shard, vectors: Sequence[tuple[str, int]], lens: str, k: int | None
) -> tuple[list[Vector], Array]:
    """The first k of both lists of each vector (kind, row); and all ids that are stored, (V, E, K)."""
    check_length(k)
    ids, scores = shard.vectors(vectors, lens)
    lists = zip(vectors, ids[:, :, :k].tolist(), scores[:, :, :k].tolist(), strict=True)
    return [
        _vector(index.tokens, shard, kind, row, lens, of_ends, scores_of_ends)
        for (kind, row), of_ends, scores_of_ends in lists
    ], ids


def _vector(
    tokens: TokenTable, shard: Shard, kind: str, row: int, lens: str, ids: list[list[int]], scores: list[list[float]]
) -> Vector:
    coherence_top, coherence_bottom = map(finite, shard.coherences(kind, row, lens))
    return Vector(
        top=scored_tokens(tokens, ids[0], scores[0]),
        bottom=scored_tokens(tokens, ids[1], scores[1]),
        norm=shard.norm(kind, row),
        coherence=(coherence_top, coherence_bottom),
    )


def vector_reading(index: Index, kind: str, layer: int, row: int, lens: str, answer: ReadingAnswer) -> VectorReading:
    """A worker's answer, compared with the stored list."""
    stored = index.shard(layer).vector(kind, row, lens)
    top, bottom = {entry.id for entry in answer.top}, {entry.id for entry in answer.bottom}
    stored_top = set(stored.top_ids[: len(answer.top)].tolist())
    stored_bottom = set(stored.bottom_ids[: len(answer.bottom)].tolist())
    return VectorReading(
        top=scored_tokens(index.tokens, (e.id for e in answer.top), (e.score for e in answer.top)),
        bottom=scored_tokens(index.tokens, (e.id for e in answer.bottom), (e.score for e in answer.bottom)),
        overlap=len(top & stored_top) / len(top | stored_top),
        kept=frozenset((top & stored_top) | (bottom & stored_bottom)),
    )
