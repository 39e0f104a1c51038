"""Compute the singular directions of heads: M = Σ σ_j in_jᵀ out_j, where M is a head's matrix, W_V W_O or W_Q W_Kᵀ.

M is never multiplied out. With its factors L Rᵀ and their QR decompositions Q_L T_L and Q_R T_R, M is Q_L (T_L T_Rᵀ)
Q_Rᵀ: the singular vectors of the small matrix in brackets, times Q_L and Q_R, are those of M. All of this is float64,
on one thread, so that equal weights give equal bytes; the result is kept in float32.

The sign of a pair (in, out) is free. It is chosen such that, of all products of `out` with the vocabulary, the largest
in size is positive (of equal ones, that of the smallest id). If σ is only rounding, or M has no more singular vectors,
there is no direction: the vectors and σ are 0. Of the difference of two heads, whose rank may be twice d_head, the
d_head largest directions are kept.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from lexiscope.precompute.shape import DIRECTION_KINDS, DIRECTIONS, SIDES

if TYPE_CHECKING:
    from lexiscope.precompute.weights.difference import Parameters

Factors: TypeAlias = tuple[Tensor, Tensor]  # (d_model, d) each, float64: a head's matrix is left rightᵀ

FLOAT32_ROUNDING, FLOAT64_ROUNDING = torch.finfo(torch.float32).eps, torch.finfo(torch.float64).eps
SCORES_AT_ONCE = 1 << 21  # products of directions with tokens that are in memory at once
IN_DOUBT = 1e-4  # relative difference of two scores below which float32 cannot tell the larger one
SMALL_SCORE = 1e-30  # a score that float32 holds with few digits
EQUAL = 1e-12  # relative difference below which float64 cannot tell, either
KEPT_DIRECTIONS_BYTES = 1 << 29


@dataclass(frozen=True)
class Directions:
    """The directions (singular vectors of the matrices) of all heads of a layer, head after head, each head's by
    falling singular value σ."""

    left: Tensor  # (n_heads * d_head, d_model) float32, of length one or 0: `vo_in`, or `qk_query`
    right: Tensor  # the same: `vo_out`, or `qk_key`
    singular: Tensor  # (n_heads, d_head) float32

    @property
    def n_bytes(self) -> int:
        return self.left.nbytes + self.right.nbytes + self.singular.nbytes


class KeptDirections:
    """The directions of a model: those of each layer are computed when they are first asked for, and the latest ones
    are kept."""

    def __init__(self, model: "Parameters") -> None:
        self._model = model
        self._kept: OrderedDict[tuple[int, str], Directions] = OrderedDict()
        self._lock = Lock()

    def vectors(self, layer: int, kind: str) -> Tensor:
        """Return the directions (singular vectors of heads' matrices) as vectors of this kind, (n_heads * d_head,
        d_model)."""
        matrix = _matrix_of(kind)
        found = self.of(layer, matrix)
        return found.left if kind == DIRECTIONS[matrix][0] else found.right

    def of(self, layer: int, matrix: str) -> Directions:
        """Return the singular directions of the heads' matrices, and their singular values."""
        with self._lock:
            if (layer, matrix) not in self._kept:
                model = self._model
                W = model.W_U if SIDES[DIRECTIONS[matrix][1]] == "writes" else model.W_E
                self._kept[layer, matrix] = find_directions(model.head_factors(layer, matrix), W, model.shape.d_head)
            self._kept.move_to_end((layer, matrix))
            while len(self._kept) > 1 and sum(kept.n_bytes for kept in self._kept.values()) > KEPT_DIRECTIONS_BYTES:
                self._kept.popitem(last=False)
            return self._kept[layer, matrix]

    def lacks(self, layer: int, kind: str) -> bool:
        """Return True if asking for vectors of this kind, which may be any, would require computing directions."""
        return kind in DIRECTION_KINDS and (layer, _matrix_of(kind)) not in self._kept


def _matrix_of(kind: str) -> str:
    return next(matrix for matrix, kinds in DIRECTIONS.items() if kind in kinds)


def find_directions(heads: Iterable[Factors], W: Tensor, d_head: int) -> Directions:
    """Find the directions of all heads. W (d_vocab, d_model) is the vocabulary with which `out` is compared; results
    are on its device."""
    with torch.no_grad(), _one_thread():
        found = [_of_head(*factors, d_head) for factors in heads]
        left, right, singular = (torch.cat(parts).float() for parts in zip(*found, strict=True))
    left, right = left.to(W.device), right.to(W.device)
    with torch.no_grad():
        sign = _signs(right, W)
    return Directions(left * sign[:, None], right * sign[:, None], singular.view(-1, d_head))


def _of_head(left: Tensor, right: Tensor, d_head: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the singular vectors of left rightᵀ at its input and at its output, (d_head, d_model) each, and the
    singular values (d_head,): float64, the signs still undecided; left and right are (d_model, d)."""
    (Q_left, T_left), (Q_right, T_right) = torch.linalg.qr(left), torch.linalg.qr(right)
    U, sigma, Vh = torch.linalg.svd(T_left @ T_right.T)
    rounding = 16 * len(sigma) * FLOAT64_ROUNDING * float(T_left.norm() * T_right.norm())
    count = int((sigma[:d_head] > max(FLOAT32_ROUNDING * float(sigma[0]), rounding)).sum())
    ins, outs = torch.zeros(d_head, len(left), dtype=left.dtype), torch.zeros(d_head, len(right), dtype=left.dtype)
    ins[:count], outs[:count] = (Q_left @ U[:, :count]).T, (Q_right @ Vh[:count].T).T
    singular = torch.zeros(d_head, dtype=sigma.dtype)
    singular[:count] = sigma[:count]
    return ins, outs, singular


def _signs(V: Tensor, W: Tensor) -> Tensor:
    """Return signs (n,), 1 or -1, that make the entry of each row of V Wᵀ that is largest in size positive."""
    size = max(1, SCORES_AT_ONCE // max(1, len(V)))
    extremes = [torch.aminmax(V @ W[start : start + size].T, dim=1) for start in range(0, len(W), size)]
    largest = torch.stack([each.max for each in extremes]).amax(dim=0)
    smallest = torch.stack([each.min for each in extremes]).amin(dim=0)
    sign = torch.where(largest >= -smallest, 1.0, -1.0)
    sizes = torch.maximum(largest, -smallest)
    in_doubt = ((largest + smallest).abs() <= IN_DOUBT * sizes) | (sizes < SMALL_SCORE)
    for row in torch.nonzero(in_doubt & V.any(dim=1))[:, 0].tolist():
        scores = torch.cat([part.double() @ V[row].double() for part in torch.split(W, size)])
        first = torch.nonzero(scores.abs() >= (1 - EQUAL) * scores.abs().max())[0, 0]
        sign[row] = -1.0 if scores[first] < 0 else 1.0
    return sign


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
