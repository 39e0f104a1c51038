"""Token evolution: the last row is the model's own prediction, every other row its stream read the same way."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.testing import assert_close

from lexiscope.precompute.live.panels.evolution import appears
from lexiscope.precompute.live.vocabulary import sums_of_exponentials
from lexiscope.precompute.live.wire.answers import EvolutionRow
from lexiscope.precompute.live.wire.grammar import Word
from tests.precompute.live.reference import TEXT, Case, changed, ids, numbers
from tests.precompute.live.test_run import TOUCHES, touched
from tests.support.nets import Run

Expected = dict[tuple[int, str], tuple[Tensor, Tensor]]


def expected_rows(case: Case, tokens: tuple[int, ...], run: Run | None = None) -> Expected:
    """What orders the tokens and what is shown of them, (T, d_vocab) each: by transformers' own last steps logits and
    probabilities; without such steps cosines.
    """
    streams = (run or case.run(tokens)).streams
    if case.engine.shape.predicts != "nearest":
        logits = {step: case.net.logits(stream) for step, stream in streams.items()}
        return {step: (scores, scores.softmax(dim=1)) for step, scores in logits.items()}
    W = case.model.W_U.double() - case.model.W_U.double().mean(dim=0)
    cosines = {step: cosine_similarity(stream.double()[:, None], W, dim=2) for step, stream in streams.items()}
    return {step: (scores, scores) for step, scores in cosines.items()}


def test_every_row_is_the_stream_through_the_final_norm(every: Case) -> None:
    answer = every.ask(panel=("evolution",), k=7)
    assert answer["evolution"] is not None
    rows, last = expected_rows(every, ids(answer["tokens"])), (every.engine.shape.n_layers - 1, "ff")
    assert [(row["layer"], row["after"]) for row in answer["evolution"]] == list(rows)
    logits = every.run(ids(answer["tokens"])).logits
    if logits is not None:
        assert_close(rows[last][0], logits, atol=1e-4, rtol=1e-4)
    answers = rows[last][0].argmax(dim=1)
    for row in answer["evolution"]:
        scores, p = rows[row["layer"], row["after"]]
        assert len(row["cells"]) == len(answer["tokens"])
        for position, cell in enumerate(row["cells"]):
            best = scores[position].topk(7).indices
            assert [likely["id"] for likely in cell] == best.tolist()
            found, expected = torch.tensor(numbers(cell)), p[position, best].float()
            assert_close(found, expected, atol=1e-5, rtol=1e-3)
            token = int(answers[position])
            assert abs(row["answer"][position] - float(p[position, token])) < 1e-4
            assert row["answer_rank"][position] == 1 + int((scores[position] > scores[position, token]).sum())
    assert all(rank == 1 for rank in answer["evolution"][-1]["answer_rank"])
    assert answer["appears"] == appears(answer["evolution"], answer["position"])
    at_the_end = answer["evolution"][-1]["cells"][answer["position"]]
    assert [likely["id"] for likely in answer["prediction"]] == [likely["id"] for likely in at_the_end]
    np.testing.assert_allclose(numbers(answer["prediction"]), numbers(at_the_end), atol=1e-5)
    assert answer["evolution_untouched"] is None


@pytest.mark.parametrize("changes", [(), TOUCHES])
def test_a_word_is_followed_and_the_text_itself_is_the_truth(every: Case, changes: Sequence[Any]) -> None:
    """Against the run of `transformers`, under the run's changes: any word at every step, and the tokens of the text:
    the next ones, or those at the positions themselves, but for what the tokenizer put around them."""
    answer = every.ask(panel=("evolution",), position=2, token=Word(word="#11", token=11), **changed(changes))
    tokens, predicts = ids(answer["tokens"]), every.engine.shape.predicts
    with touched(every.net, changes):
        run = every.net.run(tokens)
        rows = expected_rows(every, tokens, run)
    assert answer["word"] == {"id": 11}
    assert answer["evolution"] is not None
    for row in answer["evolution"]:
        scores, p = (each[2] for each in rows[row["layer"], row["after"]])
        word, number = dict(row["word"]), "score" if predicts == "nearest" else "p"
        assert word[number] == pytest.approx(float(p[11]), abs=1e-5, rel=1e-3)
        assert word["rank"] == 1 + int((scores > scores[11]).sum())
        assert word["logit"] == (None if predicts == "nearest" else pytest.approx(float(scores[11]), abs=1e-3))
    if run.logits is None:
        assert (answer["truth"], answer["right"]) == (None, None)
        return
    own = every.engine.words.tokenizer.encode(TEXT).special_tokens_mask
    shift = int(predicts == "next")
    at = range(len(tokens) - 1) if shift else [position for position, mark in enumerate(own) if not mark]
    log_p = run.logits.double().log_softmax(dim=1)
    assert answer["truth"] is not None
    assert [(each["position"], each["token"]["id"]) for each in answer["truth"]] == [(i, tokens[i + shift]) for i in at]
    for each in answer["truth"]:
        scores, token = run.logits[each["position"]], each["token"]["id"]
        assert each["probability"] == pytest.approx(float(log_p[each["position"], token].exp()), abs=1e-6, rel=1e-3)
        assert each["rank"] == 1 + int((scores > scores[token]).sum())
    assert answer["right"] == {
        "hits": sum(int(run.logits[i].argmax()) == tokens[i + shift] for i in at), "of": len(at),
        "mean_log_p": pytest.approx(float(torch.stack([log_p[i, tokens[i + shift]] for i in at]).mean()), abs=1e-4),
    }  # fmt: skip


def test_one_token_has_no_truth_and_a_mask_is_none(case_of: Callable[[str], Case]) -> None:
    assert case_of("gpt2").ask("d")["right"] == {"hits": 0, "of": 0, "mean_log_p": None}
    masked = case_of("bert").ask("the [MASK] and the dog")
    at = [each["position"] for each in masked["truth"] or ()]
    assert at == [1, *range(3, len(masked["tokens"]) - 1)]


def test_no_probability_is_larger_than_one() -> None:
    sure = torch.full((1, 300), -100.0)
    sure[0, 3] = 0.0
    assert sums_of_exponentials(sure, torch.zeros(1)).item() == 1.0


def test_a_run_with_interventions_is_shown_beside_the_same_without(case: Case) -> None:
    touches = [{"kind": "head", "layer": 0, "head": 1}, {"kind": "neuron", "layer": 1, "neuron": 3, "value": 4.0}]
    plain, touched = (case.ask(panel=("evolution",), **changed(some)) for some in ([], touches))
    assert plain["evolution"] is not None
    assert touched["evolution"] is not None
    assert touched["evolution_untouched"] is not None
    assert touched["evolution"] != plain["evolution"]
    for row, same in zip(touched["evolution_untouched"], plain["evolution"], strict=True):
        np.testing.assert_allclose(row["answer"], same["answer"], atol=1e-5)
        assert row["answer_rank"] == same["answer_rank"]
    np.testing.assert_allclose(numbers(touched["untouched"]), numbers(plain["prediction"]), atol=1e-5)


@pytest.mark.parametrize(("ranks", "layer"), [
    ((9, 9, 9, 9, 9, 9, 1), 2),
    ((9, 9, 9, 9, 9, 1, 1), 2),  # it leads already within layer 2, but not after layer 1
    ((9, 9, 9, 9, 1, 1, 1), 1),
    ((9, 9, 1, 2, 1, 1, 1), 1),  # it has to stay
    ((1, 1, 1, 1, 1, 1, 1), 0),
])  # fmt: skip
def test_where_the_answer_appears(ranks: tuple[int, ...], layer: int) -> None:
    steps: list[tuple[int, Any]] = [(0, "embedding"), *product(range(3), ("attention", "ff"))]
    rows = [
        EvolutionRow(layer=at, after=after, cells=[], answer=[0], answer_rank=[rank], word={"rank": rank, "logit": 0})
        for (at, after), rank in zip(steps, ranks, strict=True)
    ]
    assert appears(rows, 0) == layer
