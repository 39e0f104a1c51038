"""Describe the difference of two models (tuned - base): which model was subtracted from which, how much each parameter
changed, and why a difference cannot be run on a text."""

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
    """The base of a difference of two models (tuned - base), and the tuned model that it is subtracted from."""

    tuned: Annotated[str, Field(description="The name of the tuned model: the difference is tuned − model")]
    model: Annotated[str, Field(description="The name of the base")]
    source: str  # the revision of the base and the hash of its weights, as text
    revision: str
    weights_sha256: str

    def __str__(self) -> str:
        return f"{self.tuned} − {self.model}"


class Change(TypedDict):
    """How much a vector or a head's matrix changed from the base to the tuned model."""

    norm: float  # |Δ|; of a matrix, the Frobenius norm
    base_norm: float
    change: float | None  # |Δ| / |base|; None where the base is 0


def minus_of(index: Index) -> Minus | None:
    """Return the base of a difference of two models; None if the index is of a single model."""
    return public_minus(index.manifest.minus)


def public_minus(minus: StoredMinus | None) -> Minus | None:
    """Return what visitors may know of the base of a difference of two models; file paths are left out."""
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
    """Return the relative change |Δ| / |base|: 0 if nothing changed, None if the base is 0."""
    if not norm:
        return 0.0
    return norm / base_norm if base_norm else None


def relative_changes(norms: Floats, base_norms: Floats) -> Floats:
    """Return the relative changes |Δ| / |base| of many vectors, (n,): 0 where nothing changed, NaN where the base is
    0."""
    norms, base_norms = norms.astype(np.float64), base_norms.astype(np.float64)
    quotients = np.divide(norms, base_norms, out=np.full_like(norms, np.nan), where=base_norms > 0)
    return np.where(norms == 0, 0.0, quotients)


def vector_changes(shard: Shard, kind: str) -> Floats:
    """Return how much each vector of a kind changed from the base to the tuned model, |Δ| / |base|, (n,)."""
    return relative_changes(shard.all_norms(kind), shard.all_base_norms(kind))


def head_changes(shard: Shard, matrix: str) -> Floats:
    """Return how much each head's matrix changed from the base to the tuned model, |Δ| / |base|, (n_heads,)."""
    return relative_changes(*shard.heads.all_matrix_norms(matrix))


def matrix_change(shard: Shard, matrix: str, head: int) -> Change:
    norm, base_norm = (float(norms[head]) for norms in shard.heads.all_matrix_norms(matrix))
    return {"norm": norm, "base_norm": base_norm, "change": relative(norm, base_norm)}


def layer_changes(shard: Shard, kinds: Sequence[str]) -> dict[str, float | None]:
    """Return for each kind of vectors how much all of a layer's vectors changed together, |Δ| / |base|."""

    def length(norms: Floats) -> float:
        return float(np.linalg.norm(norms.astype(np.float64)))

    return {kind: relative(length(shard.all_norms(kind)), length(shard.all_base_norms(kind))) for kind in kinds}


def is_unchanged(shard: Shard, kinds: Sequence[str]) -> bool:
    """Return True if no vector of these kinds and no head of a layer changed from the base to the tuned model."""
    of_heads = (shard.heads.all_matrix_norms(matrix)[0] for matrix in MATRICES)
    return not any(norms.any() for norms in (*map(shard.all_norms, kinds), *of_heads))


def percentage(change: float | None) -> str:
    """Write a change, |Δ| / |base|, as a percentage without the sign %, with few characters: 1.3, 0.052, 120; – if the
    base is 0."""
    if change is None:
        return "–"
    return f"{100 * change:.0f}" if change >= 0.0995 or not change else f"{100 * change:#.2g}"


def change_text(change: float | None) -> str:
    return "new" if change is None else f"{percentage(change)}%" if change else "unchanged"


def size_text(norm: float, change: float | None) -> str:
    """Return a text that says how far a vector or a matrix moved from the base to the tuned model."""
    return f"|Δ| {norm:.3g}, |Δ|/|base| {change_text(change)}" if norm else "unchanged"


def no_run(minus: Minus) -> str:
    """Return the message for a visitor who wants to run the difference of two models on a text."""
    return (
        f"a difference of two models, {minus}. It cannot run, and no norm can be folded into it: run {minus.tuned} or "
        f"{minus.model} instead"
    )


def check_can_run(index: Index) -> None:
    """Raise NotFound if the index is of the difference of two models, which cannot be run on a text."""
    if minus := minus_of(index):
        raise NotFound(f"{index.manifest.model} is {no_run(minus)}")
