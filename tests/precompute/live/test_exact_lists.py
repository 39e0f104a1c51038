"""The first tokens of vectors against a full sort in float64, over vocabularies that make searches err."""

import numpy as np
import pytest
import torch

from lexiscope.precompute.live.first_tokens import exact_lists
from lexiscope.precompute.live.wire.fields import End, Lens
from lexiscope.precompute.live.words import Vocabulary
from tests.precompute.project.vocabularies import KINDS, vocabulary
from tests.support.brute import vector_lists

D_VOCAB, D_MODEL, N = 400, 24, 5


@pytest.mark.parametrize("kind", KINDS)
def test_lists_equal_a_full_sort(kind: str) -> None:
    E = vocabulary(kind, D_VOCAB, D_MODEL, seed=3)
    V = np.random.default_rng(4).integers(-3, 4, (N, D_MODEL)).astype(np.float32)
    V[0] = 0
    words = Vocabulary.of(torch.from_numpy(E))
    lenses: tuple[Lens, ...] = ("dot", "cosine")
    ends: tuple[End, ...] = ("top", "bottom")
    for k in (1, 8, D_VOCAB + 5):
        ids, scores = vector_lists(E, V, k)
        for a, lens in enumerate(lenses):
            for b, end in enumerate(ends):
                found = exact_lists(words, V.astype(np.float64), lens, k, end)
                assert [[token["id"] for token in tokens] for tokens in found] == ids[:, a, b].tolist()
                assert [[token["score"] for token in tokens] for tokens in found] == scores[:, a, b].tolist()
