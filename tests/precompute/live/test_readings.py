"""Other readings of a vector: with a norm folded in, and with the vocabulary after the first MLP of `transformers`."""

import numpy as np
import pytest
from torch import Tensor

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.wire.answers import ReadingAnswer
from lexiscope.precompute.live.wire.asks import Reading, ReadingAsk
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.project.embedding import Float64, inverse_gram
from lexiscope.precompute.shape import SIDES
from tests.precompute.live.reference import Case


def check(answer: ReadingAnswer, scores: Float64, k: int, tolerance: float) -> None:
    for found, sign in ((answer["top"], 1), (answer["bottom"], -1)):
        expected = np.argsort(-sign * scores, kind="stable")[:k]
        assert [token["id"] for token in found] == expected.tolist()
        np.testing.assert_allclose([token["score"] for token in found], scores[expected], atol=tolerance)


def test_norm_is_what_the_norm_does_to_the_stream(every: Case) -> None:
    """A token's score is what the vector reads of it behind transformers' norm, times what the norm divides it by; the
    final norm is applied to what a vector writes, up to its divisor and bias."""
    layer, index, k = 1, 3, 20
    for kind in every.engine.shape.kinds:
        answer = every.engine.answer(ReadingAsk(kind=kind, layer=layer, index=index, reading="norm", k=k))
        v = every.model.vectors(layer, kind)[index].double()
        if SIDES[kind] == "writes":
            scores = every.model.W_U.double() @ (v @ every.net.linear_norm("final"))
        else:
            name = "ff" if kind.startswith("ff_") else "attention"
            scores = every.net.undivided_norm(name, layer, every.model.W_E) @ v
        check(answer, scores.numpy(), k, 1e-5)


@pytest.mark.parametrize("reading", ["first", "mlp"])
def test_another_vocabulary_replaces_the_embedding(every: Case, reading: Reading) -> None:
    after = vocabulary(every, reading).double()  # (d_vocab, d_model)
    for kind in every.engine.shape.kinds:
        answer = every.engine.answer(ReadingAsk(kind=kind, layer=0, index=2, reading=reading, k=15))
        check(answer, (after @ every.model.vectors(0, kind)[2].double()).numpy(), 15, 1e-4)


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_pseudo_gives_the_smallest_coefficients_of_tokens_that_make_the_vector(every: Case, lens: Lens) -> None:
    for kind in every.engine.shape.kinds:
        W = (every.model.W_U if SIDES[kind] == "writes" else every.model.W_E).numpy().astype(np.float64)
        v = every.model.vectors(1, kind)[3].numpy().astype(np.float64)
        coefficients = v @ np.linalg.pinv(W)  # (d_vocab,)
        np.testing.assert_allclose(coefficients @ W, v, atol=1e-9)
        if lens == "cosine":
            coefficients = (coefficients - coefficients.mean()) / np.linalg.norm(W - W.mean(axis=0), axis=1)
        ask = ReadingAsk(kind=kind, layer=1, index=3, reading="pseudo", lens=lens, k=20)
        check(every.engine.answer(ask), coefficients, 20, 1e-6 * np.abs(coefficients).max())


def test_pseudo_of_embeddings_that_do_not_span_the_space() -> None:
    """A part of a vector outside of their span counts as nothing, and a vector that lies outside scores 0."""
    generator = np.random.default_rng(1)
    flat = (generator.standard_normal((80, 5)) @ generator.standard_normal((5, 32))).astype(np.float32)
    v = generator.standard_normal((4, 32))
    v[2] = np.linalg.svd(flat)[2][-1]  # outside of the span
    v[3] = 0
    scores = v @ inverse_gram(flat) @ flat.T.astype(np.float64)
    np.testing.assert_allclose(scores, v @ np.linalg.pinv(flat.astype(np.float64), rcond=1e-5), atol=1e-6)
    np.testing.assert_allclose(scores[2:], 0, atol=1e-6)
    assert not inverse_gram(np.zeros((7, 3), np.float32)).any()


@pytest.mark.parametrize("reading", ["norm", "first", "mlp"])
def test_the_lens_cosine_takes_centred_directions(case: Case, reading: Reading) -> None:
    """The norm's bias is left out: it is what all tokens share, as their mean is."""
    W = vocabulary(case, reading).numpy()
    v = case.model.vectors(1, "ff_key")[3].numpy().astype(np.float64)
    if reading == "norm":
        v = case.net.linear_norm("ff", 1).numpy() @ v
    rows = W.astype(np.float64) - W.mean(axis=0, dtype=np.float64)
    scores = rows @ v / np.linalg.norm(rows, axis=1)
    ask = ReadingAsk(kind="ff_key", layer=1, index=3, reading=reading, lens="cosine", k=15)
    check(case.engine.answer(ask), scores, 15, 1e-5)


def vocabulary(case: Case, reading: Reading) -> Tensor:
    """(d_vocab, d_model), of transformers"""
    if reading == "first":
        return case.net.after_first_block()
    return case.net.after_first_ff() if reading == "mlp" else case.model.W_E


@pytest.mark.parametrize(("kind", "layer", "index", "said"), [
    ("ff_wrong", 0, 0, "ff_wrong"), ("ff_key", 9, 0, "layer 9"), ("w_k", 0, 9999, "w_k 9999"), ("w_k", 0, -1, "w_k -1"),
])  # fmt: skip
def test_what_does_not_exist(case: Case, kind: str, layer: int, index: int, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        case.engine.answer(ReadingAsk(kind=kind, layer=layer, index=index, reading="norm"))
