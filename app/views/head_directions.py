"""The singular directions of a head on its page: a table of each matrix, by falling singular value, which of them read
best, and whether they read better than the head's subheads."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.views.direction import SHARE, SIDE_KINDS, SINGULAR, shares
from app.views.direction_coherence import BEST, direction_coherence, subhead_coherence
from app.views.hubs import LOOKED_AT, first_kept
from app.views.similarity import End, OfMatrices
from app.views.tokens import Token, tokens_of
from precompute.index.index import Index
from precompute.index.shard_reader import Shard
from precompute.shape import DIRECTIONS, ENDS

NAMED, TOKENS = 5, 4  # directions that read best, tokens of each of a direction's vectors
# By how much one must read better: turned at random, the axes of subheads give figures that spread by .003 to .009.
ALIKE = 0.025
# What random vectors give, too: the mean of the ten best is .083 ± .005 on MiniLM, .119 ± .016 on SmolLM2 (cosine).
NOISE = 0.12

END: Any = Field(description="The end at which both sides read best together; the tokens are of that end")
COHERENCE: Any = Field(
    description="The mean of its two sides' at that end, where one whose first tokens are no words counts as 0; null "
    "where a side is not stored"
)
SIDES_TOKENS: Any = Field(
    description="The first of each side, `in` and `out` or `query` and `key`; null where the index was built without it"
)
READS: Any = Field(description=f"The mean coherence of the {BEST} that read best; null where there are none")


class DirectionRow(TypedDict):
    direction: int
    singular: Annotated[float, SINGULAR]
    share: Annotated[float | None, SHARE]
    end: Annotated[End, END]
    coherence: Annotated[float | None, COHERENCE]
    tokens: Annotated[dict[str, list[Token] | None], SIDES_TOKENS]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixDirections:
    """Of one of a head's matrices."""

    best: Annotated[
        list[int],
        Field(description=f"The {NAMED} that read best, best first, of those above {NOISE}, as of noise"),
    ]
    reads: Annotated[float | None, READS]
    subheads_read: Annotated[float | None, Field(description="The same of the head's subheads")]
    rows: list[DirectionRow]

    @property
    def better(self) -> str:
        """Which of them read better, for people: directions, subheads, or neither; noise: random vectors would do."""
        if self.reads is None or self.subheads_read is None:
            return ""
        if max(self.reads, self.subheads_read) < NOISE:
            return "noise"
        if abs(self.reads - self.subheads_read) < ALIKE:
            return "neither"
        return "directions" if self.reads > self.subheads_read else "subheads"


def head_directions(
    index: Index, layer: int, head: int, lens: str, hubs: frozenset[int]
) -> OfMatrices[MatrixDirections] | None:
    """None where the index stores no directions. Hubs that are given are skipped among first tokens."""
    matrices, shard = index.stored.directions, index.shard(layer)
    if not matrices:
        return None
    vo, qk = (
        _of_matrix(index, shard, matrix, head, lens, hubs) if matrix in matrices else None for matrix in DIRECTIONS
    )
    return {"vo": vo, "qk": qk}


def _of_matrix(index: Index, shard: Shard, matrix: str, head: int, lens: str, hubs: frozenset[int]) -> MatrixDirections:
    d_head = index.shape.d_head
    coherence = direction_coherence(index, shard, matrix, head, lens)
    of_subheads = subhead_coherence(index, shard, matrix, head, lens)
    ends = coherence.ends if coherence else np.zeros(d_head, np.intp)
    numbers: list[float | None] = coherence.numbers.tolist() if coherence else [None] * d_head
    first = {
        side: _first_tokens(index, shard, kind, head, lens, ends, hubs)
        for side, kind in SIDE_KINDS.items()
        if kind in DIRECTIONS[matrix]
    }
    values, of_whole = shard.heads.all_singular(matrix)[head].tolist(), shares(index, shard, matrix, head)
    return MatrixDirections(
        best=[at for at in coherence.best if coherence.numbers[at] > NOISE][:NAMED] if coherence else [],
        reads=coherence.reads if coherence else None,
        subheads_read=of_subheads.reads if of_subheads else None,
        rows=[
            {
                "direction": at,
                "singular": values[at],
                "share": of_whole[at],
                "end": "bottom" if ends[at] else "top",
                "coherence": numbers[at],
                "tokens": {side: of_side[at] for side, of_side in first.items()},
            }
            for at in range(d_head)
        ],
    )


def _first_tokens(
    index: Index, shard: Shard, kind: str, head: int, lens: str, ends: Any, hubs: frozenset[int]
) -> list[list[Token] | None]:
    """Of every direction of a head, at its own end; nothing where there is no direction."""
    d_head = index.shape.d_head
    if kind not in index.stored.kinds:
        return [None] * d_head
    rows = index.shape.row(kind, head, 0) + np.arange(d_head)
    looked_at = LOOKED_AT if hubs else TOKENS
    at_ends = [shard.first_ids(kind, rows, lens, looked_at, end).tolist() for end in ENDS]
    norms = shard.all_norms(kind)[rows]
    kept = first_kept((at_ends[end][at] for at, end in enumerate(ends)), hubs, TOKENS)
    return [tokens_of(index.tokens, ids) if norm else [] for ids, norm in zip(kept, norms, strict=True)]
