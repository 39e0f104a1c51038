"""Find the nearest tokens of every token: its embedding, centred and set to length one, is projected onto the
vocabulary like any other vector."""

from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.layout import NEAREST, number_dtype
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.vectors import Projector
from lexiscope.precompute.shape import LENSES


def nearest_tokens(embedding: Embedding, pool: Executor) -> dict[str, NDArray[Any]]:
    """Return the arrays `neighbours.*` of an index: for each token, the others with the largest cosine, ties by the
    smaller id."""
    d_vocab = len(embedding.rows)
    projector = Projector(embedding, min(NEAREST + 1, d_vocab))
    lists = projector.start(d_vocab, embedding.directions, pool).result()
    cosine = LENSES.index("cosine")
    ids, scores = lists.ids[:, cosine, 0], lists.scores[:, cosine, 0]  # (d_vocab, NEAREST + 1)
    others = ids != np.arange(d_vocab)[:, None]
    others[others.all(axis=1), -1] = False  # where a token is not on its own list, because many are equal to it
    shape = (d_vocab, ids.shape[1] - 1)
    return {
        "neighbours.ids": ids[others].reshape(shape).astype(number_dtype(d_vocab)),
        "neighbours.scores": scores[others].reshape(shape),
    }
