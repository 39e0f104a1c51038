"""Other readings of a vector: with a norm folded in, and with the vocabulary after the first MLP of `transformers`."""

import numpy as np
import pytest
import torch

from precompute.errors import NotFound
from precompute.live.wire import Reading, ReadingAnswer, ReadingAsk
from precompute.project.embedding import Float64
from precompute.shape import SIDES
from tests.precompute.live.reference import Case

KINDS = ("ff_key", "ff_value", "w_q", "w_k", "w_v", "w_o")


def check(answer: ReadingAnswer, scores: Float64, k: int, tolerance: float) -> None:
    for found, sign in ((answer.top, 1), (answer.bottom, -1)):
        expected = np.argsort(-sign * scores, kind="stable")[:k]
        assert [token.id for token in found] == expected.tolist()
        np.testing.assert_allclose([token.score for token in found], scores[expected], atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_norm_is_what_the_norm_does_to_the_stream(case: Case, kind: str) -> None:
    """Scores are how the vector meets every embedding through transformers' norm, up to divisors and biases."""
    layer, index = 1, 3
    answer = case.engine.reading(ReadingAsk(kind=kind, layer=layer, index=index, reading="norm", k=20))
    block, final = case.blocks[layer], (case.reference.transformer.ln_f if case.gpt2 else case.reference.model.norm)
    norms = (block.ln_1, block.ln_2) if case.gpt2 else (block.input_layernorm, block.post_attention_layernorm)
    writes = SIDES[kind] == "writes"
    norm = final if writes else norms[kind.startswith("ff_")]
    gain = norm.weight.detach().numpy().astype(np.float64)
    v = case.model.vectors(layer, kind)[index].numpy().astype(np.float64)
    W = (case.model.W_U if writes else case.model.W_E).numpy().astype(np.float64)
    if writes:
        scores = W @ (gain * (v - v.mean() if case.gpt2 else v))
    else:
        scores = (W - W.mean(axis=1, keepdims=True) if case.gpt2 else W) @ (gain * v)
    check(answer, scores, 20, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_mlp_replaces_the_vocabulary(case: Case, kind: str) -> None:
    answer = case.engine.reading(ReadingAsk(kind=kind, layer=0, index=2, reading="mlp", k=15))
    block, W_E = case.blocks[0], case.model.W_E
    with torch.no_grad():
        after = W_E + block.mlp((block.ln_2 if case.gpt2 else block.post_attention_layernorm)(W_E))
    scores = after.numpy().astype(np.float64) @ case.model.vectors(0, kind)[2].numpy().astype(np.float64)
    check(answer, scores, 15, 1e-5)


@pytest.mark.parametrize("reading", ["norm", "mlp"])
def test_the_lens_cosine_takes_centred_directions(case: Case, reading: Reading) -> None:
    readings = case.engine.readings
    W = readings.mlp_vocabulary.rows if reading == "mlp" else case.model.W_E.numpy()
    v = readings.folded("ff_key", 1, 3) if reading == "norm" else case.model.vectors(1, "ff_key")[3].numpy()
    rows = W.astype(np.float64) - W.mean(axis=0, dtype=np.float64)
    scores = rows @ v.astype(np.float64) / np.linalg.norm(rows, axis=1)
    ask = ReadingAsk(kind="ff_key", layer=1, index=3, reading=reading, lens="cosine", k=15)
    check(case.engine.reading(ask), scores, 15, 1e-5)


@pytest.mark.parametrize(("kind", "layer", "index", "said"), [
    ("ff_wrong", 0, 0, "ff_wrong"), ("ff_key", 9, 0, "layer 9"), ("w_k", 0, 9999, "w_k 9999"), ("w_k", 0, -1, "w_k -1"),
])  # fmt: skip
def test_what_does_not_exist(case: Case, kind: str, layer: int, index: int, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        case.engine.reading(ReadingAsk(kind=kind, layer=layer, index=index, reading="norm"))
