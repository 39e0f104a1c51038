"""Other readings of a vector: with a norm folded in, and with the vocabulary after the first MLP of `transformers`."""

import numpy as np
import pytest

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.wire.answers import ReadingAnswer
from lexiscope.precompute.live.wire.asks import Reading, ReadingAsk
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import SIDES
from tests.precompute.live.reference import Case


def check(answer: ReadingAnswer, scores: Float64, k: int, tolerance: float) -> None:
    for found, sign in ((answer["top"], 1), (answer["bottom"], -1)):
        expected = np.argsort(-sign * scores, kind="stable")[:k]
        assert [token["id"] for token in found] == expected.tolist()
        np.testing.assert_allclose([token["score"] for token in found], scores[expected], atol=tolerance)


def test_norm_is_what_the_norm_does_to_the_stream(every: Case) -> None:
    """Scores are how the vector meets every embedding through transformers' norm, up to divisors and biases."""
    layer, index, k = 1, 3, 20
    for kind in every.engine.shape.kinds:
        answer = every.engine.answer(ReadingAsk(kind=kind, layer=layer, index=index, reading="norm", k=k))
        v = every.model.vectors(layer, kind)[index].double()
        if SIDES[kind] == "writes":
            scores = every.model.W_U.double() @ (v @ every.net.linear_norm("final"))
        else:
            norm = every.net.linear_norm("ff" if kind.startswith("ff_") else "attention", layer)
            scores = every.model.W_E.double() @ (norm @ v)
        check(answer, scores.numpy(), k, 1e-5)


def test_mlp_replaces_the_vocabulary(every: Case) -> None:
    after = every.net.after_first_ff().double()  # (d_vocab, d_model)
    for kind in every.engine.shape.kinds:
        answer = every.engine.answer(ReadingAsk(kind=kind, layer=0, index=2, reading="mlp", k=15))
        check(answer, (after @ every.model.vectors(0, kind)[2].double()).numpy(), 15, 1e-4)


@pytest.mark.parametrize("reading", ["norm", "mlp"])
def test_the_lens_cosine_takes_centred_directions(case: Case, reading: Reading) -> None:
    readings = case.engine.readings
    W = readings.mlp_vocabulary.rows if reading == "mlp" else case.model.W_E.numpy()
    v = readings.folded("ff_key", 1, 3) if reading == "norm" else case.model.vectors(1, "ff_key")[3].numpy()
    rows = W.astype(np.float64) - W.mean(axis=0, dtype=np.float64)
    scores = rows @ v.astype(np.float64) / np.linalg.norm(rows, axis=1)
    ask = ReadingAsk(kind="ff_key", layer=1, index=3, reading=reading, lens="cosine", k=15)
    check(case.engine.answer(ask), scores, 15, 1e-5)


@pytest.mark.parametrize(("kind", "layer", "index", "said"), [
    ("ff_wrong", 0, 0, "ff_wrong"), ("ff_key", 9, 0, "layer 9"), ("w_k", 0, 9999, "w_k 9999"), ("w_k", 0, -1, "w_k -1"),
])  # fmt: skip
def test_what_does_not_exist(case: Case, kind: str, layer: int, index: int, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        case.engine.answer(ReadingAsk(kind=kind, layer=layer, index=index, reading="norm"))
