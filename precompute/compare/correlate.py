"""Correlate all vectors of one kind of two models, block by block, to find how similar layers are and which vectors
match.

A block is a float32 product of rows of length at most 1, off by no more than `error`. Such products tell how similar
two layers are, and which pairs may be among the best matches of a vector; those pairs are then multiplied in float64.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock, local

import numpy as np
import torch
from torch import Tensor

from lexiscope.precompute.compare import block_kernel
from lexiscope.precompute.compare.block_kernel import Int64
from lexiscope.precompute.compare.matches import Matches, exact_r
from lexiscope.precompute.project.embedding import Float32, Float64
from lexiscope.precompute.project.rounding import TINY, gamma

CORRELATED_ROWS = 512  # rows of a product
KEPT_LAYERS_BYTES = 5 << 28  # 1.25 GB: as many layers of B as fit are kept in memory while A's layers are compared
BYTES = 12  # bytes that a coordinate takes: in float64, and in float32 for products
CROWDED = 16  # if more than one pair in so many may be a match, all of a block are multiplied in float64


@dataclass(frozen=True)
class Vectors:
    """The vectors of one kind of a model, as rows that are computed when they are asked for."""

    n_layers: int
    count: int  # how many vectors a layer has
    width: int  # numbers of a row
    rows: Callable[[int], Tensor]  # layer -> (count, width) float64; a row of zeros has r = 0 with all others

    def __len__(self) -> int:
        return self.n_layers * self.count

    def layer(self, layer: int, device: torch.device) -> "Layer":
        rows = self.rows(layer)
        has_direction = rows.any(dim=1)
        if not has_direction.all():
            rows = rows[has_direction]
        numbers = layer * self.count + has_direction.nonzero().ravel().cpu().numpy()
        return Layer(numbers, rows.cpu().numpy(), rows.to(device, torch.float32))


@dataclass(frozen=True)
class Layer:
    """The rows of one layer. Vectors without a direction are left out: their correlation r with every other vector is
    0."""

    numbers: Int64  # (n,) numbers of the vectors, counted through all layers
    exact: Float64  # (n, width)
    on_device: Tensor  # the same in float32, where products run


def correlate(
    a: Vectors,
    b: Vectors,
    matches: tuple[Matches, Matches] | None,
    device: torch.device,
    pool: Executor,
    step: Callable[[float], None],
) -> Float64:
    """Return the mean |r| of every layer of A with every layer of B, (layers of A, layers of B). If `matches` are
    given, also add to them the best matches of the vectors of A and of B.

    `step` is called with the share of the work that was done since its last call.
    """
    similarity = np.zeros((a.n_layers, b.n_layers))
    buffers, adding = Buffers(), Lock()

    def sum_block(task: tuple[Layer, Layer]) -> float:
        left, right = task
        product = buffers.product(left.on_device, right.on_device)
        return sum_of(product.abs_()) if matches is None else _add_matches(product, left, right, matches, adding)

    size = max(1, KEPT_LAYERS_BYTES // (b.count * b.width * BYTES))
    for start in range(0, b.n_layers, size):
        numbers = range(b.n_layers)[start : start + size]
        kept = [*pool.map(lambda layer: b.layer(layer, device), numbers)]
        following = pool.submit(a.layer, 0, device)
        for layer_a in range(a.n_layers):
            blocks = _blocks(following.result())
            if layer_a + 1 < a.n_layers:
                following = pool.submit(a.layer, layer_a + 1, device)  # read while this one is multiplied
            sums = pool.map(sum_block, [(left, right) for left in blocks for right in kept])
            for _ in blocks:
                for layer_b in numbers:
                    similarity[layer_a, layer_b] += next(sums)
            step(len(kept) / similarity.size)
    return similarity / (a.count * b.count)


class Buffers(local):
    """The memory of products, allocated once for each thread: new memory for every block would cost a tenth of the
    time."""

    memory: Tensor | None = None

    def product(self, A: Tensor, B: Tensor) -> Tensor:
        """Return A Bᵀ, (n, m), in memory that the thread's next product overwrites."""
        size = len(A) * len(B)
        if self.memory is None or len(self.memory) < size:
            self.memory = torch.empty(size, device=A.device)
        return torch.mm(A, B.T, out=self.memory[:size].view(len(A), len(B)))


def _blocks(layer: Layer) -> list[Layer]:
    parts = [slice(start, start + CORRELATED_ROWS) for start in range(0, len(layer.numbers), CORRELATED_ROWS)]
    return [Layer(layer.numbers[part], layer.exact[part], layer.on_device[part]) for part in parts]


def _add_matches(product: Tensor, left: Layer, right: Layer, matches: tuple[Matches, Matches], adding: Lock) -> float:
    """Return the sum of |r| in a block, and add to the matches those pairs that may be among the best."""
    of_a, of_b = matches
    width = left.exact.shape[1]
    error = np.float32(gamma(width + 16) + width * TINY)
    floors = of_a.floors(left.numbers), of_b.floors(right.numbers)
    arguments = *floors, error, of_a.most, of_b.most
    if product.device.type == "cpu":
        total, of_rows, of_columns = block_kernel.scan(product.numpy(), *arguments)
    else:
        total, of_rows, of_columns = scan_on_device(product, *arguments)
    rows_r, columns_r = (_exact_r(left.exact, right.exact, pairs) for pairs in (of_rows, of_columns))
    with adding:
        of_a.add(left.numbers[of_rows[:, 0]], right.numbers[of_rows[:, 1]], rows_r)
        of_b.add(right.numbers[of_columns[:, 1]], left.numbers[of_columns[:, 0]], columns_r)
    return total


def _exact_r(A: Float64, B: Float64, pairs: Int64) -> Float64:
    """Return the correlations r of pairs (n, 2) of rows of A and B, in float64."""
    if len(pairs) * CROWDED <= len(A) * len(B):
        return exact_r(A, B, pairs)
    product = (torch.from_numpy(A) @ torch.from_numpy(B).T).clamp_(-1, 1).numpy()
    return np.asarray(product[pairs[:, 0], pairs[:, 1]])


def sum_of(sizes: Tensor) -> float:
    return float(sizes.sum(dim=1).sum(dtype=torch.float64))


def scan_on_device(
    product: Tensor, row_floors: Float32, column_floors: Float32, error: np.float32, row_most: int, column_most: int
) -> tuple[float, Int64, Int64]:
    """Do as block_kernel.scan does, by torch alone. A few other pairs may be returned, but none that counts is missing.

    A pair is returned if its exact |r| may reach the floors; the k-th largest product of a row, less the error, is a
    floor, too.
    """
    sizes, pairs = product.abs(), []
    for dim, floors, most in ((1, row_floors, row_most), (0, column_floors, column_most)):
        floor = torch.from_numpy(floors).to(product)
        if most <= sizes.shape[dim]:
            kth = torch.topk(sizes, most, dim=dim).values.select(dim, most - 1)
            floor = torch.maximum(floor, kth - float(error))
        pairs.append((sizes + float(error) >= floor.unsqueeze(dim)).nonzero().cpu().numpy())
    return sum_of(sizes), pairs[0], pairs[1]
