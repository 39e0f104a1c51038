"""Other readings of a head: its pairs equal brute force over what the norms, the first block and the first MLP of
`transformers` make of the vocabulary, and over pseudo-inverses."""

from pathlib import Path

import numpy as np
import pytest

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.live import readings
from lexiscope.precompute.live.wire.asks import PairsReadingAsk, Reading
from lexiscope.precompute.live.wire.errors import Cancelled
from tests.precompute.live.reference import Case, make_case
from tests.support import brute
from tests.support.models import tiny_gpt2

N = 40


def normed_factors(case: Case, matrix: str, layer: int, head: int) -> tuple[brute.Array, brute.Array]:
    """(d_model, d_head) each, through what transformers' norms do but for their divisors and biases."""
    reads, final = case.net.linear_norm("attention", layer), case.net.linear_norm("final")
    left, right = (part[head].double() for part in case.model.factors(layer, matrix))
    return (reads @ left).numpy(), ((right @ final).T if matrix == "vo" else reads @ right.T).numpy()


def sides(
    case: Case, reading: str, side: str, matrix: str, layer: int, head: int, lens: str
) -> tuple[tuple[brute.Array, brute.Array], tuple[brute.Array, brute.Array]]:
    """Return what stands for the tokens on both sides, (d_vocab, d_model) each, and the factors, (d_model, d_head)."""
    W_E, W_U = (W.double().numpy() for W in (case.model.W_E, case.model.W_U))
    stored = W_E, W_U if matrix == "vo" else W_E
    left, right = (part[head].double().numpy() for part in case.model.factors(layer, matrix))
    match reading:
        case "norm" if lens == "cosine":
            return stored, normed_factors(case, matrix, layer, head)
        case "norm":  # what heads read has gone through the norm, times what it divides by; what is written, as above
            normed = case.net.undivided_norm("attention", layer, case.model.W_E).numpy()
            factors = left, normed_factors(case, matrix, layer, head)[1] if matrix == "vo" else right.T
            return (normed, W_U if matrix == "vo" else normed), factors
        case "pseudo":  # E⁺ on both sides; under the lens cosine less its mean, and over |e - mean|
            inverses = [np.linalg.pinv(W).T for W in stored]
            if lens == "cosine":
                lengths = [np.linalg.norm(W - W.mean(axis=0), axis=1, keepdims=True) for W in stored]
                inverses = [(W - W.mean(axis=0)) / length for W, length in zip(inverses, lengths, strict=True)]
            return (inverses[0], inverses[1]), (left, right.T)
        case _:
            after = (case.net.after_first_ff() if reading == "mlp" else case.net.after_first_block()).double().numpy()
            replaced = (after if side != "target" else stored[0], after if side != "source" else stored[1])
            return replaced, (left, right.T)


@pytest.mark.parametrize(("reading", "side", "layer", "matrix", "lens"), [
    ("norm", "both", 1, "vo", "cosine"), ("norm", "both", 1, "qk", "dot"), ("norm", "both", 2, "vo", "dot"),
    ("mlp", "both", 0, "vo", "dot"), ("mlp", "both", 0, "qk", "cosine"),
    ("first", "both", 1, "vo", "dot"), ("first", "source", 1, "vo", "cosine"), ("first", "target", 1, "vo", "dot"),
    ("first", "source", 1, "qk", "dot"), ("first", "both", 1, "qk", "cosine"),
    ("pseudo", "both", 1, "vo", "dot"), ("pseudo", "both", 1, "qk", "cosine"),
])  # fmt: skip
def test_pairs_equal_brute_force(every: Case, reading: str, side: str, layer: int, matrix: str, lens: str) -> None:
    head = 2
    vocabularies, factors = sides(every, reading, side, matrix, layer, head, lens)
    seen = "dot" if reading == "pseudo" else lens  # the lens is in the inverses already
    tokens = token_bytes(every.folder / "tokenizer.json", every.engine.shape.d_vocab)
    masks = distinct_classes(tokens), whole_words(tokens)
    expected = brute.top_pairs(*vocabularies, *factors, seen, *masks, N)
    ask = {"matrix": matrix, "layer": layer, "head": head, "reading": reading, "side": side, "lens": lens, "n": N}
    for preset, ends in expected.items():
        found = every.engine.answer(PairsReadingAsk.model_validate(ask | {"preset": preset}))
        for pairs, (ids, scores) in zip((found["top"], found["bottom"]), ends, strict=True):
            near = 1e-5 * min(1.0, np.abs(scores).max())
            np.testing.assert_allclose([pair["score"] for pair in pairs], scores, rtol=1e-4, atol=near)
            clear = ids[np.abs(scores - scores[-1]) > near].tolist()  # the others may be as good as one left out
            assert {tuple(pair) for pair in clear} <= {(pair["from"]["id"], pair["to"]["id"]) for pair in pairs}


@pytest.mark.parametrize(("layer", "head", "said"), [(9, 0, "layer 9"), (0, 4, "head 4"), (0, -1, "head -1")])
def test_what_does_not_exist(case: Case, layer: int, head: int, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        case.engine.answer(PairsReadingAsk(matrix="vo", layer=layer, head=head, reading="norm"))


@pytest.mark.parametrize("reading", ["mlp", "first"])
def test_tokens_that_went_through_the_mlp_or_block_need_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: Reading
) -> None:
    """Else what takes longer than a request may would never be done."""
    monkeypatch.setattr(readings, "TOKENS_AT_ONCE", 100)
    made = make_case(tiny_gpt2(tmp_path))
    ask = PairsReadingAsk(matrix="vo", layer=0, head=0, reading=reading, n=3)
    before: list[float] = []
    with pytest.raises(Cancelled):
        made.engine.answer(ask, lambda _, share: before.append(share), lambda: len(before) == 4)
    after: list[float] = []
    answer = made.engine.answer(ask, lambda _, share: after.append(share))
    assert after[1] > before[-1]  # the first says that the work begins
    fresh = make_case(tmp_path)
    assert fresh.engine.answer(ask) == answer


def test_it_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path) -> None:
    made = make_case(tiny_gpt2(tmp_path))
    ask = PairsReadingAsk(matrix="qk", layer=0, head=0, reading="mlp", n=3)
    steps: list[tuple[str, float]] = []
    with pytest.raises(Cancelled):
        made.engine.answer(ask, lambda *step: steps.append(step), lambda: len(steps) == 1)
    assert steps == [("vocabulary", 0.0)]
    answer = made.engine.answer(ask, lambda *step: steps.append(step))
    assert {stage for stage, _ in steps} == {"vocabulary", "pairs"}
    assert [share for _, share in steps[1:]] == sorted(share for _, share in steps[1:])
    assert made.engine.answer(ask) == answer
