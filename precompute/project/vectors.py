"""Make the top-k token lists of vectors: a float32 product on the device, then exact selection. Nothing here depends on
the model.

Lists are (n, lenses, ends, k) in the order of shape.LENSES and shape.ENDS.
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.project import vector_kernel
from lexiscope.precompute.project.embedding import Embedding, Float32, Float64
from lexiscope.precompute.project.rounding import LARGEST_SCORE, TINY, gamma

MOST_VECTORS, LEAST_VECTORS = 256, 32  # vectors per product
BLOCK_SCORES = 1 << 24  # scores of a product, 64 MB: with a large vocabulary a block has fewer vectors
MARGIN = 32  # candidates beyond k that a device's own top-k gives

Ids = NDArray[np.uint32]
See = Callable[[slice, torch.Tensor, torch.Tensor], None]  # rows (n,), vectors (n, d_model), product (n, d_vocab)


@dataclass(frozen=True)
class Lists:
    ids: Ids  # (n, 2, 2, k)
    scores: Float32  # (n, 2, 2, k)


@dataclass(frozen=True)
class PendingLists:
    """Lists that the threads of a pool are still computing."""

    lists: Lists
    blocks: list[Future[float]]  # seconds per vector

    def result(self) -> Lists:
        for block in self.blocks:
            block.result()  # raises the error of a block, if it had one
        return self.lists


class Projector:
    """Project vectors onto one vocabulary matrix. An object holds what all vectors share."""

    def __init__(self, embedding: Embedding, k: int) -> None:
        self.embedding = embedding
        d_vocab, d_model = embedding.rows.shape
        self.k = min(k, d_vocab)
        # A score of the product is off by at most the vector's error times the slack of token and lens. The small
        # constant in each covers underflow. 16 roundings more than the product has cover the comparisons themselves.
        self._underflow = (d_model * TINY) ** 0.5
        self._gamma = gamma(d_model + 16)
        mean_norm = float(np.linalg.norm(embedding.mean))
        if embedding.norm.max(initial=0) > LARGEST_SCORE:
            raise BadWeights("an embedding so large that scores overflow float32: no list can be made from it")
        dot_slack = embedding.norm + self._underflow
        cosine_slack = (embedding.norm + mean_norm + self._underflow) * embedding.inverse_norm
        self.slack = np.stack([dot_slack, cosine_slack]).astype(np.float32)  # (2, d_vocab)
        padding = -d_vocab % vector_kernel.GROUP
        padded = np.pad(self.slack, ((0, 0), (0, padding)))
        self.group_slack = padded.reshape(2, -1, vector_kernel.GROUP).max(axis=2)  # (2, groups)
        self.inverse_norm = embedding.inverse_norm

    @property
    def block_size(self) -> int:
        """Return the number of vectors that are multiplied at once."""
        return max(LEAST_VECTORS, min(MOST_VECTORS, BLOCK_SCORES // len(self.embedding.rows)))

    def lists(self, V: torch.Tensor, pool: Executor) -> Lists:
        """Return the lists of the vectors V (n, d_model)."""
        return self.start(len(V), V.__getitem__, pool).result()

    def start(
        self, n: int, read: Callable[[slice], torch.Tensor], pool: Executor, see: See | None = None
    ) -> PendingLists:
        """Start to make the lists of n vectors. They are multiplied in blocks, so `read` is asked for the vectors of
        one block at a time. `see` is called with the vectors and the product of each block, too."""
        lists = Lists(np.empty((n, 2, 2, self.k), np.uint32), np.empty((n, 2, 2, self.k), np.float32))
        size = self.block_size

        def project_block(start: int) -> float:
            begin = time.perf_counter()
            rows = slice(start, min(start + size, n))
            W_E = self.embedding.on_device
            vectors = read(rows).to(W_E.device)
            product = vectors @ W_E.T
            self.select(vectors, product, lists.ids[rows], lists.scores[rows])
            if see:
                see(rows, vectors, product)
            return (time.perf_counter() - begin) / len(vectors)

        return PendingLists(lists, [pool.submit(project_block, start) for start in range(0, n, size)])

    def select(self, V: torch.Tensor, product: torch.Tensor, ids: Ids, scores: Float32) -> None:
        """Write the lists of V (n, d_model), whose product with the vocabulary is (n, d_vocab), into `ids` and
        `scores`, (n, lenses, ends, k) each."""
        vectors = np.ascontiguousarray(V.cpu().numpy())
        if product.device.type == "cpu":
            errors, mean_dots = self.vector_errors(vectors), self.mean_dots(vectors)
            self._select_on_cpu(product.numpy(), vectors, errors, mean_dots, ids, scores)
        else:
            self.select_on_device(product, vectors, ids, scores)

    def _select_on_cpu(
        self, product: Float32, vectors: Float32, errors: Float32, mean_dots: Float64, ids: Ids, scores: Float32
    ) -> None:
        rows, inverse = self.embedding.rows, self.inverse_norm
        vector_kernel.select(
            product, vectors, errors, mean_dots, rows, inverse, self.slack, self.group_slack, ids, scores
        )

    def select_on_device(self, product: torch.Tensor, vectors: Float32, ids: Ids, scores: Float32) -> None:
        """Take as candidates the device's own top-k for a slightly larger k; where they cannot be proved to hold the
        lists, the CPU makes the lists instead."""
        errors, mean_dots = self.vector_errors(vectors), self.mean_dots(vectors)
        candidates, proved = self.propose(product, errors, mean_dots)
        vector_kernel.rank(candidates, vectors, mean_dots, self.embedding.rows, self.inverse_norm, ids, scores)
        for v in np.flatnonzero(~proved):
            one = slice(v, v + 1)
            row = product[one].cpu().numpy()
            self._select_on_cpu(row, vectors[one], errors[one], mean_dots[one], ids[one], scores[one])

    def propose(
        self, product: torch.Tensor, errors: Float32, mean_dots: Float64
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return candidates (n, lenses, ends, depth), and for which vectors they surely hold all entries of the
        lists."""
        device, (n, d_vocab) = product.device, product.shape
        depth = min(self.k + MARGIN, d_vocab)
        error = torch.from_numpy(errors).to(device)[:, None]
        slack = torch.from_numpy(self.slack).to(device)
        shift = torch.from_numpy(mean_dots).to(product)[:, None]
        lensed = product, (product - shift) * torch.from_numpy(self.inverse_norm).to(product)
        candidates = torch.empty(n, 2, 2, depth, dtype=torch.int32, device=device)
        proved = torch.ones(n, dtype=torch.bool, device=device)
        for lens, end in ((0, 0), (0, 1), (1, 0), (1, 1)):
            best = torch.topk(lensed[lens], depth, largest=end == 0)
            candidates[:, lens, end] = best.indices.int()
            size = best.values if end == 0 else -best.values
            floor = (size - error * slack[lens][best.indices])[:, : self.k].min(dim=1).values
            proved &= (depth == d_vocab) | (size[:, -1] + error[:, 0] * slack[lens].max() < floor)
        return candidates.cpu().numpy(), proved.cpu().numpy()

    def vector_errors(self, vectors: Float32) -> Float32:
        """Return one number for each vector (n,): times the slack of a token, it bounds how far that token's score in
        the float32 product may be off."""
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not np.isfinite(norms).all() or norms.max(initial=0) * (self.slack[0].max() + 1) > LARGEST_SCORE:
            raise BadWeights("weights so large that scores overflow float32: no list can be made from them")
        return np.asarray(self._gamma * norms + self._underflow, np.float32)

    def mean_dots(self, vectors: Float32) -> NDArray[np.float64]:
        """Return the product of each vector with the mean row, in float64, each computed by itself so that the result
        does not depend on the block."""
        return np.asarray(np.einsum("nd,d->n", vectors.astype(np.float64), self.embedding.mean))
