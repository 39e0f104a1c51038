"""Other readings of a head: its pairs equal brute force over the factors with the norm folded in, and over the
vocabulary after the first MLP of `transformers`."""

from pathlib import Path

import numpy as np
import pytest

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.live import readings
from lexiscope.precompute.live.wire.asks import PairsReadingAsk
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


@pytest.mark.parametrize(("reading", "layer", "matrix", "lens"), [
    ("norm", 1, "vo", "cosine"), ("norm", 1, "qk", "dot"), ("mlp", 0, "vo", "dot"), ("mlp", 0, "qk", "cosine"),
])  # fmt: skip
def test_pairs_equal_brute_force(every: Case, reading: str, layer: int, matrix: str, lens: str) -> None:
    head, W_E, W_U = 2, every.model.W_E.numpy(), every.model.W_U.numpy()
    if reading == "norm":
        vocabularies = W_E, W_U if matrix == "vo" else W_E
        factors = normed_factors(every, matrix, layer, head)
    else:
        after = every.net.after_first_ff().numpy()
        left, right = (part[head].numpy() for part in every.model.factors(layer, matrix))
        vocabularies, factors = (after, after), (left, right.T)
    tokens = token_bytes(every.folder / "tokenizer.json", every.engine.shape.d_vocab)
    masks = distinct_classes(tokens), whole_words(tokens)
    expected = brute.top_pairs(*vocabularies, *factors, lens, *masks, N)
    ask = {"matrix": matrix, "layer": layer, "head": head, "reading": reading, "lens": lens, "n": N}
    for preset, ends in expected.items():
        found = every.engine.answer(PairsReadingAsk.model_validate(ask | {"preset": preset}))
        for pairs, (ids, scores) in zip((found["top"], found["bottom"]), ends, strict=True):
            np.testing.assert_allclose([pair["score"] for pair in pairs], scores, rtol=1e-4, atol=1e-5)
            clear = ids[np.abs(scores - scores[-1]) > 1e-5].tolist()  # the others may be as good as one left out
            assert {tuple(pair) for pair in clear} <= {(pair["from"]["id"], pair["to"]["id"]) for pair in pairs}


@pytest.mark.parametrize(("layer", "head", "said"), [(9, 0, "layer 9"), (0, 4, "head 4"), (0, -1, "head -1")])
def test_what_does_not_exist(case: Case, layer: int, head: int, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        case.engine.answer(PairsReadingAsk(matrix="vo", layer=layer, head=head, reading="norm"))


def test_tokens_that_went_through_the_mlp_need_not_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what takes longer than a request may would never be done."""
    monkeypatch.setattr(readings, "MLP_TOKENS", 100)
    made = make_case(tiny_gpt2(tmp_path))
    ask = PairsReadingAsk(matrix="vo", layer=0, head=0, reading="mlp", n=3)
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
