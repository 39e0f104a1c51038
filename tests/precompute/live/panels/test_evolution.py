"""Token evolution: the last row is the model's own prediction, every other row its stream read the same way."""

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
from tests.precompute.live.reference import Case, changed, ids, numbers


def expected_rows(case: Case, tokens: tuple[int, ...]) -> dict[tuple[int, str], tuple[Tensor, Tensor]]:
    """What orders the tokens and what is shown of them, (T, d_vocab) each: by transformers' own last steps logits and
    probabilities; without such steps cosines.
    """
    streams = case.run(tokens).streams
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
        EvolutionRow(layer=at, after=after, cells=[], answer=[0], answer_rank=[rank])
        for (at, after), rank in zip(steps, ranks, strict=True)
    ]
    assert appears(rows, 0) == layer
