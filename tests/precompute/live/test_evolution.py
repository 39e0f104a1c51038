"""Token evolution: the last row is the model's own prediction, every other row its stream read the same way."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from precompute.live.evolution import appears
from precompute.live.vocabulary import sums_of_exponentials
from precompute.live.wire import EvolutionRow
from tests.precompute.live.reference import Case


def expected_logits(case: Case, tokens: tuple[int, ...]) -> dict[tuple[int, str], torch.Tensor]:
    """By transformers' own norm and head: (T, d_vocab) for each row."""
    run, model = case.run(tokens), case.reference
    norm = model.transformer.ln_f if case.gpt2 else model.model.norm
    last = case.engine.shape.n_layers - 1
    rows = {(0, "embedding"): run.hidden[0]}
    for layer in range(last + 1):
        rows[layer, "attention"] = run.hidden[layer] + run.outputs[layer, "attention"]
        if layer < last:
            rows[layer, "ff"] = run.hidden[layer + 1]
    with torch.no_grad():
        logits = {key: model.lm_head(norm(stream)) for key, stream in rows.items()}
    return logits | {(last, "ff"): run.logits}


def test_every_row_is_the_stream_through_the_final_norm(case: Case) -> None:
    answer = case.ask(panels={"evolution"}, k=7)
    assert answer.evolution is not None
    logits = expected_logits(case, answer.tokens)
    assert [(row.layer, row.after) for row in answer.evolution] == sorted(
        logits, key=lambda key: (key[0], ("embedding", "attention", "ff").index(key[1]))
    )
    answers = logits[case.engine.shape.n_layers - 1, "ff"].argmax(dim=1)
    for row in answer.evolution:
        expected = logits[row.layer, row.after]
        p = expected.softmax(dim=1)
        assert len(row.cells) == len(answer.tokens)
        for position, cell in enumerate(row.cells):
            assert [likely.id for likely in cell] == expected[position].topk(7).indices.tolist()
            assert_close(torch.tensor([likely.p for likely in cell]), p[position].topk(7).values, atol=1e-5, rtol=1e-3)
            token = int(answers[position])
            assert abs(row.answer[position] - float(p[position, token])) < 1e-4
            assert row.answer_rank[position] == 1 + int((expected[position] > expected[position, token]).sum())
    assert all(rank == 1 for rank in answer.evolution[-1].answer_rank)
    assert answer.appears == appears(answer.evolution, answer.position)
    last = answer.evolution[-1].cells[-1]
    assert [likely.id for likely in answer.prediction] == [likely.id for likely in last]
    np.testing.assert_allclose([likely.p for likely in answer.prediction], [likely.p for likely in last], atol=1e-5)
    assert answer.evolution_untouched is None


def test_the_last_row_holds_the_models_logits(case: Case) -> None:
    """Up to a constant for each position, which a softmax takes away."""
    answer = case.ask(panels={"evolution"}, k=50)
    assert answer.evolution is not None
    logits = case.run(answer.tokens).logits
    for position, cell in enumerate(answer.evolution[-1].cells):
        ids, p = [likely.id for likely in cell], torch.tensor([likely.p for likely in cell])
        expected = logits[position, ids] - logits[position].logsumexp(dim=0)
        assert_close(p.log(), expected, atol=1e-4, rtol=1e-4)


def test_no_probability_is_larger_than_one() -> None:
    sure = torch.full((1, 300), -100.0)
    sure[0, 3] = 0.0
    assert sums_of_exponentials(sure, torch.zeros(1)).item() == 1.0


def test_a_run_with_interventions_is_shown_beside_the_same_without(case: Case) -> None:
    touches = [{"kind": "head", "layer": 0, "head": 1}, {"kind": "neuron", "layer": 1, "neuron": 3, "value": 4.0}]
    plain, touched = (case.ask(panels={"evolution"}, interventions=some) for some in ([], touches))
    assert plain.evolution is not None
    assert touched.evolution is not None
    assert touched.evolution_untouched is not None
    assert touched.evolution != plain.evolution
    for row, same in zip(touched.evolution_untouched, plain.evolution, strict=True):
        np.testing.assert_allclose(row.answer, same.answer, atol=1e-5)
        assert row.answer_rank == same.answer_rank
    np.testing.assert_allclose([x.p for x in touched.untouched], [x.p for x in plain.prediction], atol=1e-5)


@pytest.mark.parametrize(("ranks", "layer"), [
    ((9, 9, 9, 9, 9, 9, 1), 2),
    ((9, 9, 9, 9, 9, 1, 1), 2),  # it leads already within layer 2, but not after layer 1
    ((9, 9, 9, 9, 1, 1, 1), 1),
    ((9, 9, 1, 2, 1, 1, 1), 1),  # it has to stay
    ((1, 1, 1, 1, 1, 1, 1), 0),
])  # fmt: skip
def test_where_the_answer_appears(ranks: tuple[int, ...], layer: int) -> None:
    steps = [(0, "embedding"), *((at, after) for at in range(3) for after in ("attention", "ff"))]
    rows = [
        EvolutionRow.model_validate({"layer": at, "after": after, "cells": [], "answer": [0], "answer_rank": [rank]})
        for (at, after), rank in zip(steps, ranks, strict=True)
    ]
    assert appears(rows, 0) == layer
