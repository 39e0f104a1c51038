"""Prepares one matrix under one lens for the pair search: balanced coordinates, their order, and a bound of all errors.

With A = E W_left and B = E W_right (d_vocab, d_head), a score a_i · b_j is split at the mean rows ā, b̄ into
a_i · b̄ + ā · (b_j - b̄) + (a_i - ā) · (b_j - b̄): the embeddings' common part goes into two shifts, and what is left
has norms small enough to rule most pairs out. An invertible T balances that rest, (α T) · (β T⁻ᵀ), so that both sides
have the same diagonal second moments, largest first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.project.compiled import kernel
from precompute.project.embedding import Embedding, Float32
from precompute.project.pairs.coarse import Coarse, coarse_columns, coarse_rows
from precompute.project.pairs.kernel import PREFIXES, SCANNED, STRIP, Columns, Rows
from precompute.project.rounding import TINY, gamma

Arrays = TypeVar("Arrays", Rows, Columns)

SHELL = 2048  # columns of like norm
FIRST_SHELLS = (512, 512)  # smaller where norms differ most; the first also gives the first floors
MOMENT_ROWS = 8192  # at least so many, if there are, say how a side is spread
ROUND_UP = np.float32(1 + 1e-5)  # a float32 norm is off by less
FLOOR = (
    1e-6  # directions weaker than this share of the strongest are balanced as if they had it: T stays well conditioned
)


@dataclass(frozen=True)
class Factor:
    """One side of a matrix under a lens: A (d_vocab, d_head) and how far each row may be from the true one."""

    values: torch.Tensor
    error: torch.Tensor  # (d_vocab,)
    scale: float = 1.0  # a power of two: values and error are this many times those of the weights

    @cached_property
    def largest(self) -> float:
        return largest(self.values)

    @classmethod
    def of(cls, product: torch.Tensor, W: Float32, embedding: Embedding, lens: str) -> "Factor":
        """From product (d_head, d_vocab), the float32 Wᵀ Eᵀ of W (d_model, d_head)."""
        d_model = W.shape[0]
        size = float(np.linalg.norm(W.astype(np.float64)))
        if lens == "dot":
            values = product.T.contiguous()
            error = gamma(d_model + 2) * embedding.norm * size
        else:
            mean = torch.from_numpy(embedding.mean @ W.astype(np.float64)).to(product)
            inverse = torch.from_numpy(embedding.inverse_norm).to(product)
            values = (product - mean[:, None]).mul_(inverse).T.contiguous()
            reach = embedding.norm + float(np.linalg.norm(embedding.mean))
            error = (gamma(d_model + 8) * reach * size + d_model * TINY) * embedding.inverse_norm
        return cls(values, torch.from_numpy(error + d_model * TINY).to(product))


def largest(values: torch.Tensor) -> float:
    """Of either sign."""
    low, high = torch.aminmax(values)
    return max(-float(low), float(high))


def least_error(A: Factor, B: Factor) -> float:
    """How far any score may be off because it is small: in the search, or when the true one becomes a float32."""
    return TINY * max(1.0, A.scale * B.scale)


@dataclass(frozen=True)
class Half:
    """One side after balancing, in token order."""

    coords: Float32  # (d_vocab, d)
    shift: Float32  # (d_vocab,)
    norm: Float32  # (d_vocab,)
    rest: Float32  # (prefixes, d_vocab)
    error: Float32  # (d_vocab, ERROR_TERMS)


def balance(A: Factor, B: Factor) -> tuple[Half, Half]:
    d_head = A.values.shape[1]
    a_mean, b_mean = A.values.mean(0), B.values.mean(0)
    T, T_inverse = _balancing(_second_moments(A.values, a_mean), _second_moments(B.values, b_mean))
    pad = max(0, PREFIXES[-1] - d_head)  # the kernel reads at least the prefixes
    to_a = torch.nn.functional.pad(T.to(A.values), (0, pad))
    to_b = torch.nn.functional.pad(T_inverse.to(A.values), (0, pad))
    a = torch.addmm(-(a_mean @ to_a), A.values, to_a)
    b = torch.addmm(-(b_mean @ to_b), B.values, to_b)
    a_shift = A.values @ b_mean
    b_shift = B.values @ a_mean - b_mean @ a_mean

    # |computed - true| <= sum of products of a row's term and a column's term; |A| is a row's norm before balancing.
    step, dot, least = gamma(d_head + 8), gamma(d_head + 16), least_error(A, B)
    a_norm, b_norm = (torch.from_numpy(suffix_norms(side.values.numpy(), (0,))[0]) for side in (A, B))
    a_middle, b_middle = float(a_mean.double().norm()), float(b_mean.double().norm())
    a_far, b_far = a_norm + a_middle, b_norm + b_middle
    a_norms, b_norms = (suffix_norms(side.numpy(), (0, *PREFIXES)) for side in (a, b))
    a_size, b_size = torch.from_numpy(a_norms[0]), torch.from_numpy(b_norms[0])
    b_moved = step * b_far * float(to_b.norm())
    one_a, one_b = torch.ones_like(a_norm), torch.ones_like(b_norm)
    a_terms = [
        A.error,  # of the factor itself, times the other side
        a_norm + A.error,
        dot * (a_shift.abs() + a_norm * b_middle) + least,  # of the shifts
        one_a,
        step * a_far * float(to_a.norm()) + dot * a_size,  # of balancing, and of the final dot product
        a_size,
    ]
    b_terms = [
        b_norm + B.error,
        B.error,
        one_b,
        dot * (b_shift.abs() + b_far * a_middle) + least,
        b_size + b_moved,  # both sides are off by balancing
        b_moved,
    ]
    return _half(a, a_shift, a_norms, a_terms), _half(b, b_shift, b_norms, b_terms)


# Small matrices go through torch as well: numpy's own thread pool would get in the way of the build's.


def _second_moments(values: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Of the rows around their mean; of a part of a large vocabulary, which tells enough to balance by."""
    part = values[:: max(1, len(values) // MOMENT_ROWS)] - mean
    return (part.T @ part).double().cpu() * (len(values) / len(part))


def _balancing(moments_a: torch.Tensor, moments_b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """T and T⁻ᵀ with Tᵀ M_a T = T⁻¹ M_b T⁻ᵀ diagonal, nearly. Any invertible T is right; a good one prunes well."""
    (root_a, unroot_a), (root_b, _) = _roots(moments_a), _roots(moments_b)
    left, sizes, _ = torch.linalg.svd(root_a.T @ root_b)
    T = (unroot_a @ left) * sizes.clamp(min=max(float(sizes[0]) * FLOOR, 1e-30)).sqrt()
    return T, torch.linalg.inv(T).T


def _roots(moments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """R with R Rᵀ the moments, nearly, and R⁻ᵀ."""
    weights, axes = torch.linalg.eigh(moments)
    lengths = weights.clamp(min=max(float(weights[-1]) * FLOOR, 1e-30)).sqrt()
    return axes * lengths, axes / lengths


def _half(coords: torch.Tensor, shift: torch.Tensor, norms: Float32, terms: list[torch.Tensor]) -> Half:
    return Half(coords.numpy(), shift.numpy(), norms[0], norms[1:], torch.stack(terms, dim=1).numpy() * ROUND_UP)


@kernel(fastmath={"reassoc", "contract"})
def suffix_norms(coords: Float32, starts: tuple[int, ...]) -> Float32:
    """(starts, n): norms of the rows' coordinates from each start on, rounded up. Starts rise, none is beyond the end.

    In float64, where no square of a float32 vanishes.
    """
    n, d = coords.shape
    out = np.empty((len(starts), n), np.float32)
    for i in range(n):
        total, stop = 0.0, d
        for level in range(len(starts) - 1, -1, -1):
            for x in range(np.uint64(starts[level]), np.uint64(stop)):
                total += np.float64(coords[i, x]) * np.float64(coords[i, x])
            out[level, i] = np.sqrt(total) * (1 + 1e-6) + TINY
            stop = starts[level]
    return out


def shells(n: int) -> NDArray[np.int64]:
    """Where the shells of n columns start, and n."""
    first = np.minimum(np.cumsum((0, *FIRST_SHELLS)), n)
    return np.unique(np.append(np.concatenate([first, np.arange(first[-1], n, SHELL)]), n)).astype(np.int64)


def arrange(half: Half, tokens: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Tokens by falling norm in shells, by rising shift within a shell; and the starts of the shells."""
    order = tokens[np.argsort(-half.norm[tokens])]
    starts = shells(len(tokens))
    for start, stop in pairwise(starts):
        part = order[start:stop]
        order[start:stop] = part[np.argsort(half.shift[part])]
    return order, starts


@dataclass(frozen=True)
class Side(Generic[Arrays]):
    """Rows or columns of a search, with coarse coordinates, made when they are first needed."""

    arrays: Arrays
    make_coarse: Callable[[], Coarse]

    @cached_property
    def coarse(self) -> Coarse:
        return self.make_coarse()


def as_rows(half: Half, tokens: NDArray[np.int32], surface: NDArray[np.int32]) -> Side[Rows]:
    order, _ = arrange(half, tokens)
    coords, norm = half.coords[order], half.norm[order]
    rest = np.ascontiguousarray(half.rest[:, order].T)
    rows = Rows(order, surface[order], coords, half.shift[order], norm, rest, half.error[order])
    return Side(rows, lambda: coarse_rows(coords, norm))


def as_columns(half: Half, tokens: NDArray[np.int32], surface: NDArray[np.int32]) -> Side[Columns]:
    order, starts = arrange(half, tokens)
    n_strips = -(-len(order) // STRIP)
    padding = n_strips * STRIP - len(order)

    def padded(rows: Float32) -> Float32:
        return np.concatenate([rows[order], np.zeros((padding, *rows.shape[1:]), np.float32)])

    def in_strips(values: Float32) -> Float32:
        return padded(values).reshape(n_strips, STRIP)

    coords = padded(half.coords)
    leading = coords[:, :SCANNED].reshape(n_strips, STRIP, -1).transpose(0, 2, 1)
    columns = Columns(
        order,
        surface[order],
        coords,
        np.ascontiguousarray(leading),
        in_strips(half.shift),
        np.stack([in_strips(level) for level in half.rest]),
        starts,
        np.maximum.reduceat(half.norm[order], starts[:-1]),
        np.maximum.reduceat(half.error[order], starts[:-1], axis=0),
    )
    return Side(columns, lambda: coarse_columns(coords, in_strips(half.norm)))
