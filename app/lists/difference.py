"""Describe differences of two models: what was subtracted from what, how much each part changed, and why none of it can
run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.manifest import Minus as StoredMinus
from lexiscope.precompute.index.origin import public_source
from lexiscope.precompute.index.tensor_file import Floats
from lexiscope.precompute.shape import MATRICES

LAYER_CHANGE: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference: by kind, |Δ| / |base| of all its vectors together; null where the base is 0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minus:
    """The base of a difference, and the model that it is subtracted from."""

    tuned: Annotated[str, Field(description="The name of the tuned model: the difference is tuned − model")]
    model: Annotated[str, Field(description="The name of the base")]
    source: str  # the base, as its revision and the hash of its weights
    revision: str
    weights_sha256: str

    def __str__(self) -> str:
        return f"{self.tuned} − {self.model}"


class Change(TypedDict):
    """A record of how much a vector or a head's matrix changed."""

    norm: float  # |Δ|; of a matrix, the Frobenius norm
    base_norm: float
    change: float | None  # |Δ| / |base|; None where the base is 0


def minus_of(index: Index) -> Minus | None:
    """Return the base of a difference; None if the index is of a model."""
    return public_minus(index.manifest.minus)


def public_minus(minus: StoredMinus | None) -> Minus | None:
    """Return what visitors may know of the base of a difference."""
    if minus is None:
        return None
    return Minus(
        tuned=minus.tuned,
        model=minus.model,
        source=public_source(minus.source, minus.revision),
        revision=minus.revision,
        weights_sha256=minus.weights_sha256,
    )


def relative(norm: float, base_norm: float) -> float | None:
    """Return |Δ| / |base|: 0 if nothing changed, None if the base is 0."""
    if not norm:
        return 0.0
    return norm / base_norm if base_norm else None


def relative_changes(norms: Floats, base_norms: Floats) -> Floats:
    """Return |Δ| / |base| of many vectors, (n,): 0 where nothing changed, NaN where the base is 0."""
    norms, base_norms = norms.astype(np.float64), base_norms.astype(np.float64)
    quotients = np.divide(norms, base_norms, out=np.full_like(norms, np.nan), where=base_norms > 0)
    return np.where(norms == 0, 0.0, quotients)


def vector_changes(shard: Shard, kind: str) -> Floats:
    """Return the relative change of each vector of a kind, (n,)."""
    return relative_changes(shard.all_norms(kind), shard.all_base_norms(kind))


def head_changes(shard: Shard, matrix: str) -> Floats:
    """Return the relative change of each head's matrix, (n_heads,)."""
    return relative_changes(*shard.heads.all_matrix_norms(matrix))


def matrix_change(shard: Shard, matrix: str, head: int) -> Change:
    norm, base_norm = (float(norms[head]) for norms in shard.heads.all_matrix_norms(matrix))
    return {"norm": norm, "base_norm": base_norm, "change": relative(norm, base_norm)}


def layer_changes(shard: Shard, kinds: Sequence[str]) -> dict[str, float | None]:
    """Return by kind the relative change of all its vectors together."""

    def length(norms: Floats) -> float:
        return float(np.linalg.norm(norms.astype(np.float64)))

    return {kind: relative(length(shard.all_norms(kind)), length(shard.all_base_norms(kind))) for kind in kinds}


def is_unchanged(shard: Shard, kinds: Sequence[str]) -> bool:
    """Return True if nothing of a layer changed: no vector of these kinds, no head."""
    of_heads = (shard.heads.all_matrix_norms(matrix)[0] for matrix in MATRICES)
    return not any(norms.any() for norms in (*map(shard.all_norms, kinds), *of_heads))


def percentage(change: float | None) -> str:
    """Write a change, |Δ| / |base|, in per cent without the sign, in little room: 1.3, 0.052, 120; – if there is no
    base."""
    if change is None:
        return "–"
    return f"{100 * change:.0f}" if change >= 0.0995 or not change else f"{100 * change:#.2g}"


def change_text(change: float | None) -> str:
    return "new" if change is None else f"{percentage(change)}%" if change else "unchanged"


def size_text(norm: float, change: float | None) -> str:
    """Say for people how far a vector or a matrix moved."""
    return f"|Δ| {norm:.3g}, |Δ|/|base| {change_text(change)}" if norm else "unchanged"


def no_run(minus: Minus) -> str:
    """Return the message for a visitor who wants to run a difference."""
    return (
        f"a difference of two models, {minus}. It cannot run, and no norm can be folded into it: run {minus.tuned} or "
        f"{minus.model} instead"
    )


def check_can_run(index: Index) -> None:
    """Raise NotFound if the index is of a difference."""
    if minus := minus_of(index):
        raise NotFound(f"{index.manifest.model} is {no_run(minus)}")
