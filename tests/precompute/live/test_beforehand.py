"""What a model makes of a token before any text: against runs of `transformers`."""

import pytest
import torch

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.beforehand import SENTENCES
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.asks import BeforehandAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import Case

TOKENS = (0, 7, 40)


def test_the_logit_at_the_mean_state_is_the_mean_logit(every: Case) -> None:
    """The unembedding is linear; a cap of logits, where there is one, comes after it."""
    engine = every.engine
    answers = [engine.answer(BeforehandAsk(token=token)) for token in TOKENS]
    if engine.shape.predicts != "next":
        assert all(answer == {"bias": None, "mean_state": None, "positions": 0} for answer in answers)
        return
    runs = [every.run(engine.words.prompt(sentence)[: engine.n_positions]) for sentence in SENTENCES]
    logits = torch.cat([run.logits[1:].double() for run in runs if run.logits is not None])
    if cap := getattr(engine.weights.net.config, "final_logit_softcapping", None):
        logits = cap * torch.atanh(logits / cap)
    mean = logits.mean(dim=0)
    for token, answer in zip(TOKENS, answers, strict=True):
        found = answer["mean_state"]
        assert found is not None
        assert answer["positions"] == len(logits)
        assert found["score"] == pytest.approx(float(mean[token]), rel=1e-3, abs=1e-3)
        assert (mean > mean[token] + 2e-3).sum() < found["rank"] <= 1 + (mean > mean[token] - 2e-3).sum()


def test_the_part_of_the_bias(every: Case) -> None:
    """The norm of a state of zeros is its bias."""
    w = every.engine.weights
    with torch.inference_mode():
        scores = (w.W_U.double() @ w.norm(torch.zeros(w.shape.d_model), "final").double()).float()
    has_bias = w.shape.predicts == "next" and getattr(w.model.norm("final", 0), "bias", None) is not None
    for token in TOKENS:
        found = every.engine.answer(BeforehandAsk(token=token))["bias"]
        assert (found is not None) == has_bias
        if found:
            assert found["score"] == pytest.approx(float(scores[token]), rel=1e-3, abs=1e-5)
            near = scores.abs().max() * 1e-4
            assert (scores > scores[token] + near).sum() < found["rank"] <= 1 + (scores > scores[token] - near).sum()


def test_an_unknown_token_and_a_cancelled_ask(case: Case) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        case.engine.answer(BeforehandAsk(token=10**9))
    engine = Engine.load(Checkpoint.open(case.folder), "cpu")
    if engine.shape.predicts == "next":
        with pytest.raises(Cancelled):
            engine.answer(BeforehandAsk(token=3), cancelled=lambda: True)
