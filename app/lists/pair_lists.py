"""Read the token pairs that an index stores of a head's matrix."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field

from lexiscope.app.lists.checks import check_length, check_number, finite
from lexiscope.app.lists.difference import Change, matrix_change
from lexiscope.app.lists.kept_tokens import first_entries
from lexiscope.app.lists.vectors import Coherence
from lexiscope.app.lists.view import TokenPair, token_pairs
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.index.stored import position
from lexiscope.precompute.shape import MATRICES

Hidden: TypeAlias = Annotated[int, Field(description="Of as many of the best pairs: how many the preset leaves out")]
PAIR_NAMES = {"vo": ("reads", "writes"), "qk": ("query", "key")}  # names of the two tokens of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPairs:
    """The token pairs with the largest and the most negative scores in one matrix of a head, under a lens (dot or
    cosine) and a preset (which pairs are listed)."""

    top: list[TokenPair]
    bottom: list[TokenPair]
    coherence: Coherence
    hidden: Hidden
    change: Change | None  # only if the index is of a difference of two models

    @property
    def unchanged(self) -> bool:
        return self.change is not None and self.change["norm"] == 0


def stored_pairs(
    index: Index, matrix: str, layer: int, head: int, lens: str = "dot", preset: str = "all", k: int | None = None,
    outside: frozenset[int] = frozenset(),
) -> StoredPairs:  # fmt: skip
    """Read the k token pairs with the largest scores and the k with the most negative ones, of those stored without a
    token `outside` of what the visitor wants."""
    position("matrix", matrix, MATRICES)
    check_lens(index, lens)
    check_kinds(index, matrix)
    shard = index.shard(layer)
    check_number(index, "head", head, index.shape.n_heads)
    check_length(k)
    ids, scores, (n_top, _) = shard.heads.both_ends(matrix, head, lens, preset, None if outside else k)
    change = matrix_change(shard, matrix, head) if index.stored.difference else None
    unchanged = change is not None and change["norm"] == 0
    pairs = [] if unchanged else token_pairs(index.tokens, ids.tolist(), scores.tolist())
    coherence_top, coherence_bottom = map(finite, shard.heads.pair_coherences(matrix, head, lens, preset))
    return StoredPairs(
        top=first_entries(pairs[:n_top], outside, k),
        bottom=first_entries(pairs[n_top:], outside, k),
        coherence=(coherence_top, coherence_bottom),
        hidden=0 if preset == "all" else _n_hidden(shard, matrix, head, lens, pairs[:n_top][:k]),
        change=change,
    )


def drawn_pairs(matrix: str, pairs: list[TokenPair]) -> tuple[str, list[tuple[str, ...]]]:
    """Return the name of a matrix's list in a picture, and the words of its pairs."""
    name = f"{matrix.upper()}: {' > '.join(PAIR_NAMES[matrix])}"
    return name, [(pair["from"]["token"], pair["to"]["token"]) for pair in pairs]


def pair_ids(pairs: list[TokenPair]) -> set[tuple[int, int]]:
    return {(pair["from"]["id"], pair["to"]["id"]) for pair in pairs}


def _n_hidden(shard: Shard, matrix: str, head: int, lens: str, shown: list[TokenPair]) -> int:
    """Count how many pairs the page's choice of pairs (preset) hides: of the best pairs of all, as many as are shown,
    those that are not among the shown ones."""
    best = shard.heads.best_pairs(matrix, head, lens, len(shown)).tolist()
    return len({(a, b) for a, b in best} - pair_ids(shown))
