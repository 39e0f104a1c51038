"""The difference of two checkpoints, tuned - base. The code that makes lists treats it as a model like any other.

Vectors are subtracted from each other and read in the base's embedding. A head's matrix is M_tuned - M_base, never
multiplied out: its factors are put side by side, so it has twice the d_head.
"""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.index.manifest import EmbeddingChange
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.rebuild_command import difference_name
from lexiscope.precompute.shape import DIRECTION_KINDS, Shape
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.directions import Factors, KeptDirections

# What must be equal for vectors to be subtracted; d_vocab and the tokens are looked at by themselves.
EQUAL_SIZES = ("n_layers", "n_heads", "n_kv_heads", "d_model", "d_head", "d_mlp", "gated")


Float64: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float32] | Float64

ROWS_COMPARED = 4096  # rows of an embedding that are compared at once


class Difference:
    """The difference tuned - base, with those parts of a `Model` that builds and checks use. Biases and norms are left
    out, as they are for single models."""

    def __init__(self, tuned: Model, base: Model, name: str | None = None, check: bool = True) -> None:
        """Combine two models. `check` is False on a cluster's machine that opens models which the machine that started
        the build has checked."""
        self.tuned, self.base = tuned, base
        self.shape: Shape = base.shape
        # where the tuned model came from, under the name of the difference
        self.checkpoint: Checkpoint = replace(
            tuned.checkpoint, name=name or difference_name(tuned.checkpoint.name, base.checkpoint.name)
        )
        if check:
            _check_shapes(tuned, base)
            _check_tokens(tuned, base)

    def tokenizer_file(self) -> Path:
        return self.base.tokenizer_file()

    @property
    def W_E(self) -> Tensor:
        return self.base.W_E  # (d_vocab, d_model)

    @property
    def W_U(self) -> Tensor:
        return self.base.W_U  # (d_vocab, d_model)

    def vectors(self, layer: int, kind: str) -> Tensor:
        """Return the vectors of a kind, tuned - base, (shape.count(kind), d_model); directions are those of the
        matrices M_tuned - M_base."""
        if kind in DIRECTION_KINDS:
            return self.directions.vectors(layer, kind)
        return self.tuned.vectors(layer, kind) - self.base.vectors(layer, kind)

    @cached_property
    def directions(self) -> KeptDirections:
        return KeptDirections(self)

    def head_factors(self, layer: int, matrix: str) -> Iterator[Factors]:
        """Yield for each head the factors left and right of its matrix left rightᵀ, (d_model, up to 2 d_head) each,
        float64."""
        of_both = zip(*(model.head_factors(layer, matrix) for model in (self.tuned, self.base)), strict=True)
        for tuned, base in of_both:
            left, right = subtracted((tuned[0].numpy(), tuned[1].numpy()), (base[0].numpy(), base[1].numpy()))
            yield torch.from_numpy(left), torch.from_numpy(right)

    def factors(self, layer: int, matrix: str) -> tuple[Tensor, Tensor]:
        """Return the factors of all heads' matrices left[h] @ right[h] = M_tuned - M_base: (n_heads, d_model, 2 d_head)
        and (n_heads, 2 d_head, d_model)."""
        (left, right), (base_left, base_right) = (model.factors(layer, matrix) for model in (self.tuned, self.base))
        return torch.cat([left, -base_left], dim=2), torch.cat([right, base_right], dim=1)

    def is_unchanged(self, layer: int) -> bool:
        """Return True if every vector of a layer equals the base's, to the bit."""
        return all(
            torch.equal(self.tuned.vectors(layer, kind), self.base.vectors(layer, kind))
            for kind in self.shape.weight_kinds
        )

    @cached_property
    def embedding_changes(self) -> EmbeddingChange:
        """Return |tuned - base| / |base| of W_E, and of W_U if the base has a separate one, over the base's tokens."""
        tuned = copy(self.tuned)  # a copy, so that its embedding is not kept in memory
        changes: EmbeddingChange = {"W_E": _relative_change(tuned.W_E, self.base.W_E)}
        if not self.shape.tied and not tuned.lacks_unembedding:
            changes["W_U"] = _relative_change(tuned.W_U, self.base.W_U)
        return changes


Parameters: TypeAlias = Model | Difference  # what lists can be made of


def subtracted(tuned: tuple[Floats, Floats], base: tuple[Floats, Floats]) -> tuple[Float64, Float64]:
    """Return the factors of the tuned matrix minus the base's.

    L R - L₀ R₀ = (L - L₀) R + L₀ (R - R₀): twice as many columns, but no small difference of large products, which
    float32 could not tell from 0. Columns that add nothing are left out (an unchanged head keeps one of zeros); the
    others are scaled by powers of two, which is exact, such that both factors have the same size.
    """
    (left, right), (base_left, base_right) = (
        (left.astype(np.float64), right.astype(np.float64)) for left, right in (tuned, base)
    )
    x = np.concatenate([left - base_left, base_left], axis=1)  # (d_model, 2 d_head)
    y = np.concatenate([right, right - base_right], axis=1)
    kept = x.any(axis=0) & y.any(axis=0)
    if not kept.any():
        return np.zeros((len(x), 1)), np.zeros((len(y), 1))
    x, y = x[:, kept], y[:, kept]
    sizes = np.linalg.norm(x, axis=0), np.linalg.norm(y, axis=0)
    power = np.rint(np.log2(sizes[1] / sizes[0]) / 2).astype(np.int32)
    return np.ascontiguousarray(np.ldexp(x, power)), np.ascontiguousarray(np.ldexp(y, -power))


def _relative_change(tuned: Tensor, base: Tensor) -> float:
    blocks = [slice(start, start + ROWS_COMPARED) for start in range(0, len(base), ROWS_COMPARED)]
    change = math.hypot(*(_norm(tuned[rows][: len(base[rows])] - base[rows]) for rows in blocks))
    size = math.hypot(*(_norm(base[rows]) for rows in blocks))
    if not size:
        return float(change > 0)
    return float(f"{change / size:.6g}")  # threads add up in another order: equal builds have equal manifests


def _norm(W: Tensor) -> float:
    return float(torch.linalg.vector_norm(W, dtype=torch.float64))


def _check_shapes(tuned: Model, base: Model) -> None:
    for name in EQUAL_SIZES:
        ours, theirs = (getattr(model.shape, name) for model in (tuned, base))
        if ours != theirs:
            raise BadWeights(f"{_asked(tuned, base)}: {name} is {ours} in {_name(tuned)} and {theirs} in {_name(base)}")
    if tuned.shape.d_vocab < base.shape.d_vocab:
        raise BadWeights(
            f"{_asked(tuned, base)}: the embedding has {tuned.shape.d_vocab} rows in {_name(tuned)} and "
            f"{base.shape.d_vocab} in {_name(base)}, and only the tuned model may have more"
        )


def _check_tokens(tuned: Model, base: Model) -> None:
    """Check that the tokens of base and tuned model are the same; the tuned model may have tokens in rows that have
    none in the base."""
    ours, theirs = (token_bytes(model.tokenizer_file(), model.shape.d_vocab) for model in (tuned, base))
    n_tokens = max((token for token, raw in enumerate(theirs, 1) if raw), default=0)
    different = [token for token in range(n_tokens) if ours[token] != theirs[token]]
    if different:
        token = different[0]
        more = f" (and {len(different) - 1} more differ)" if len(different) > 1 else ""
        raise BadWeights(
            f"{_asked(tuned, base)}: token {token} is {_shown(ours[token])} in {_name(tuned)} and "
            f"{_shown(theirs[token])} in {_name(base)}{more}"
        )


def _asked(tuned: Model, base: Model) -> str:
    return (
        f"{tuned.checkpoint.source} minus {base.checkpoint.source}: a difference is of two models with the same shapes "
        "and tokens"
    )


def _name(model: Model) -> str:
    return model.checkpoint.name


def _shown(raw: bytes) -> str:
    return repr(raw.decode(errors="backslashreplace")) if raw else "missing"
