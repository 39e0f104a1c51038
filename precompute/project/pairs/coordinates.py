"""Prepare one head's matrix under one lens for the pair search: choose coordinates for its rows and columns, sort them,
and bound all rounding errors.

With the embeddings E, A = E W_left and B = E W_right, (d_vocab, d_head) each, a score a_i · b_j is split at the mean
rows ā, b̄ into a_i · b̄ + ā · (b_j - b̄) + (a_i - ā) · (b_j - b̄). The first two terms become two numbers, a shift of
the row and a shift of the column; the vectors in the last term have norms small enough to rule most pairs out. An
invertible T balances these vectors α and β, (α T) · (β T⁻ᵀ), so that both sides have the same diagonal second moments,
largest first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.project.compiled import kernel
from lexiscope.precompute.project.embedding import Float32
from lexiscope.precompute.project.pairs.coarse import CoarseSide, coarse_columns, coarse_rows
from lexiscope.precompute.project.pairs.factor import Factor, underflow_error
from lexiscope.precompute.project.pairs.strips import LEADING, PREFIXES, STRIP, Columns, Rows
from lexiscope.precompute.project.rounding import TINY, gamma

Arrays = TypeVar("Arrays", Rows, Columns)

SHELL = 2048  # columns of a shell, whose norms are similar
FIRST_SHELLS = (512, 512)  # the first shells are smaller: norms differ most there, and the first gives the first floors
MOMENT_ROWS = 8192  # least number of rows from which second moments are computed, if the vocabulary is larger
ROUND_UP = np.float32(1 + 1e-5)  # a norm in float32 is off by less than this factor
# Directions weaker than this share of the strongest are balanced as if they had it: T stays well conditioned.
WEAKEST_SHARE = 1e-6


@dataclass(frozen=True)
class BalancedSide:
    """The rows or columns of a head's matrix in the coordinates that `balance` chooses, in the order of tokens."""

    coords: Float32  # (d_vocab, d)
    shift: Float32  # (d_vocab,)
    norm: Float32  # (d_vocab,)
    rest: Float32  # (prefixes, d_vocab) norm of the coordinates after a prefix
    error: Float32  # (d_vocab, ERROR_TERMS)


def balance(A: Factor, B: Factor) -> tuple[BalancedSide, BalancedSide]:
    """Return the shifts, coordinates and error terms of both sides, such that score(i, j) = shift_i + shift_j +
    coords_i · coords_j."""
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

    # |computed - true| <= the sum over the six terms of a row's term times a column's term.
    moving, dotting, underflow = gamma(d_head + 8), gamma(d_head + 16), underflow_error(A, B)
    a_norm, b_norm = (torch.from_numpy(suffix_norms(side.values.numpy(), (0,))[0]) for side in (A, B))
    a_middle, b_middle = float(a_mean.double().norm()), float(b_mean.double().norm())
    a_far, b_far = a_norm + a_middle, b_norm + b_middle
    a_norms, b_norms = (suffix_norms(side.numpy(), (0, *PREFIXES)) for side in (a, b))
    a_size, b_size = torch.from_numpy(a_norms[0]), torch.from_numpy(b_norms[0])
    b_moved = moving * b_far * float(to_b.norm())
    one_a, one_b = torch.ones_like(a_norm), torch.ones_like(b_norm)
    a_terms = [
        A.error,  # the error of the factor itself, times the other side
        a_norm + A.error,
        dotting * (a_shift.abs() + a_norm * b_middle) + underflow,  # the error of the shifts
        one_a,
        moving * a_far * float(to_a.norm()) + dotting * a_size,  # the errors of balancing and of the final dot product
        a_size,
    ]
    b_terms = [
        b_norm + B.error,
        B.error,
        one_b,
        dotting * (b_shift.abs() + b_far * a_middle) + underflow,
        b_size + b_moved,  # both sides are off by balancing
        b_moved,
    ]
    return _balanced_side(a, a_shift, a_norms, a_terms), _balanced_side(b, b_shift, b_norms, b_terms)


# Small matrices go through torch as well: numpy's own thread pool would get in the way of the build's.


def float_product(a: Float32, b: Float32) -> Float32:
    """Return the product of a (n, d) with b (m, d) transposed."""
    return (torch.from_numpy(a) @ torch.from_numpy(b).T).numpy()


def _second_moments(values: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Return the second moments (d_head, d_head) of the rows around their mean. Of a large vocabulary only a sample is
    used, because balancing needs no exact moments."""
    sample = values[:: max(1, len(values) // MOMENT_ROWS)] - mean
    return (sample.T @ sample).double().cpu() * (len(values) / len(sample))


def _balancing(moments_a: torch.Tensor, moments_b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return T and T⁻ᵀ such that Tᵀ M_a T = T⁻¹ M_b T⁻ᵀ is nearly diagonal, where M_a and M_b are second moments. The
    search is right with any invertible T, but a good one rules out more pairs."""
    (root_a, unroot_a), (root_b, _) = _roots(moments_a), _roots(moments_b)
    left, sizes, _ = torch.linalg.svd(root_a.T @ root_b)
    T = (unroot_a @ left) * sizes.clamp(min=max(float(sizes[0]) * WEAKEST_SHARE, 1e-30)).sqrt()
    return T, torch.linalg.inv(T).T


def _roots(moments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return R and R⁻ᵀ, where R Rᵀ is nearly the matrix of moments."""
    weights, axes = torch.linalg.eigh(moments)
    lengths = weights.clamp(min=max(float(weights[-1]) * WEAKEST_SHARE, 1e-30)).sqrt()
    return axes * lengths, axes / lengths


def _balanced_side(
    coords: torch.Tensor, shift: torch.Tensor, norms: Float32, terms: list[torch.Tensor]
) -> BalancedSide:
    return BalancedSide(
        coords.numpy(), shift.numpy(), norms[0], norms[1:], torch.stack(terms, dim=1).numpy() * ROUND_UP
    )


@kernel(fastmath={"reassoc", "contract"})
def suffix_norms(coords: Float32, starts: tuple[int, ...]) -> Float32:
    """Return (starts, n): for each start and each row, the norm of the row's coordinates from that start on, rounded
    up. Starts rise, and none is beyond the end.

    The norms are computed in float64, in which no square of a float32 becomes zero.
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
    """Return where the shells (groups of columns with similar norms) of n columns start, and n as the last entry."""
    first = np.minimum(np.cumsum((0, *FIRST_SHELLS)), n)
    return np.unique(np.append(np.concatenate([first, np.arange(first[-1], n, SHELL)]), n)).astype(np.int64)


def arrange(side: BalancedSide, tokens: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Sort tokens by falling norm, cut them into shells of similar norms, and sort each shell by rising shift. Return
    the sorted tokens, and where the shells start."""
    order = tokens[np.argsort(-side.norm[tokens])]
    starts = shells(len(tokens))
    for start, stop in pairwise(starts):
        shell = order[start:stop]
        order[start:stop] = shell[np.argsort(side.shift[shell])]
    return order, starts


@dataclass(frozen=True)
class SearchSide(Generic[Arrays]):
    """The rows or the columns of a search. Their coordinates in bytes are computed when they are first needed."""

    arrays: Arrays
    make_coarse: Callable[[], CoarseSide]

    @cached_property
    def coarse(self) -> CoarseSide:
        return self.make_coarse()


def as_rows(side: BalancedSide, tokens: NDArray[np.int32], surface: NDArray[np.int32]) -> SearchSide[Rows]:
    """Return these tokens as rows of a search. Two tokens with the same number in `surface` (d_vocab,), such as " dog"
    and "Dog", do not count as a pair."""
    order, _ = arrange(side, tokens)
    coords, norm = side.coords[order], side.norm[order]
    rest = np.ascontiguousarray(side.rest[:, order].T)
    rows = Rows(order, surface[order], coords, side.shift[order], norm, rest, side.error[order])
    return SearchSide(rows, lambda: coarse_rows(coords, norm))


def as_columns(side: BalancedSide, tokens: NDArray[np.int32], surface: NDArray[np.int32]) -> SearchSide[Columns]:
    """Return these tokens as columns of a search, sorted into shells of similar norms and grouped into strips of
    neighbouring columns."""
    order, starts = arrange(side, tokens)
    n_strips = -(-len(order) // STRIP)
    padding = n_strips * STRIP - len(order)

    def padded(rows: Float32) -> Float32:
        return np.concatenate([rows[order], np.zeros((padding, *rows.shape[1:]), np.float32)])

    def in_strips(values: Float32) -> Float32:
        return padded(values).reshape(n_strips, STRIP)

    coords = padded(side.coords)
    leading = coords[:, :LEADING].reshape(n_strips, STRIP, -1).transpose(0, 2, 1)  # (strips, LEADING, STRIP)
    columns = Columns(
        order,
        surface[order],
        coords,
        np.ascontiguousarray(leading),
        in_strips(side.shift),
        np.stack([in_strips(level) for level in side.rest]),
        starts,
        np.maximum.reduceat(side.norm[order], starts[:-1]),
        np.maximum.reduceat(side.error[order], starts[:-1], axis=0),
    )
    return SearchSide(columns, lambda: coarse_columns(coords, in_strips(side.norm)))
