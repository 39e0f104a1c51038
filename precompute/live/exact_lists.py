"""The first tokens of vectors, exactly: what a full sort of float64 scores, rounded once to float32, would give.
float32 products propose, float64 decides; ties by the smaller id.
"""

from collections.abc import Callable

import numpy as np
import torch

from lexiscope.precompute.live import token_kernel
from lexiscope.precompute.live.proposals import error_of_products, proposals
from lexiscope.precompute.live.vocabulary import BLOCK, scored
from lexiscope.precompute.live.wire.answers import ScoredToken
from lexiscope.precompute.live.wire.fields import End, Lens
from lexiscope.precompute.live.words import Vocabulary
from lexiscope.precompute.project.embedding import Float64


def exact_lists(
    vocabulary: Vocabulary, vectors: Float64, lens: Lens, k: int, end: End = "top",
    check: Callable[[], None] = lambda: None,
) -> list[list[ScoredToken]]:  # fmt: skip
    """Return for each of vectors (n, d_model) the k tokens with the largest scores, or at the bottom the most negative
    ones.

    A token's score is v · e, and under cosine v · (e - mean) / |e - mean|. `check` is called between products; what it
    raises ends the work.
    """
    lists: list[list[ScoredToken]] = []
    sign = 1.0 if end == "top" else -1.0
    W = vocabulary.W
    share, least = error_of_products(W.shape[1])
    size = vocabulary.norm + least  # (d_vocab,): a score is off in proportion to it
    if lens == "cosine":
        size = (size + float(np.linalg.norm(vocabulary.mean))) * vocabulary.inverse
    for start in range(0, len(vectors), BLOCK):
        check()
        block = np.ascontiguousarray(sign * vectors[start : start + BLOCK])
        shifts, lengths = block @ vocabulary.mean, np.linalg.norm(block, axis=1) + least
        scores = torch.from_numpy(block).float().to(W.device) @ W.T  # (block, d_vocab)
        if lens == "cosine":
            scores.sub_(torch.from_numpy(shifts).float().to(W.device)[:, None]).mul_(vocabulary.inverse)
        for row, length in enumerate(lengths.tolist()):
            near = proposals(scores[row], size, share * length, k).cpu().numpy()
            exact = token_kernel.dots(block, vocabulary.embedding.rows, np.full(len(near), row), near)
            if lens == "cosine":
                exact = (exact - shifts[row]) * vocabulary.exact_inverse[near]
            rounded = exact.astype(np.float32)
            best = np.lexsort((near, -rounded))[:k]
            values = sign * rounded[best] + np.float32(0)  # + 0 turns -0 into 0
            lists.append(scored(near[best].tolist(), values.tolist()))
    return lists
