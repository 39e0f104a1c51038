"""R_k equals a direct computation from what `transformers` computes and the weights, set by set."""

import pytest
import torch

from precompute.live import coverage
from tests.live import TEXT, Case, case  # noqa: F401

K = 10


def first(scores: torch.Tensor) -> set[int]:
    return set(scores.topk(K).indices.tolist())


@pytest.mark.parametrize("position", [0, 4, None])
@pytest.mark.parametrize("active", [100, 6])  # small, so that lists do not cover everything
def test_coverage_equals_a_direct_computation(
    case: Case,  # noqa: F811
    position: int | None,
    active: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coverage, "ACTIVE", active)
    answer = case.ask(panels={"coverage"}, position=position)
    run, s, at = case.run(answer.tokens), case.engine.shape, answer.position
    W_U, model = case.model.W_U, case.reference
    norm = model.transformer.ln_f if case.gpt2 else model.model.norm
    assert [row.layer for row in answer.coverage or ()] == list(range(s.n_layers))
    for row in answer.coverage or ():
        with torch.no_grad():
            last = row.layer == s.n_layers - 1
            state = run.hidden[row.layer + 1][at]
            hidden = first(W_U @ (state if last else norm(state)))
        values, c = case.model.vectors(row.layer, "ff_value"), run.inputs[row.layer, "ff_value"][at]
        lists = [
            first(W_U @ (values[n] if c[n] > 0 else -values[n]))
            for n in (c.abs() * values.norm(dim=1)).topk(min(active, s.d_mlp)).indices
        ]
        z, W_O = run.inputs[row.layer, "w_o"][at].view(s.n_heads, -1), case.model.factors(row.layer, "vo")[1]
        lists += [first(W_U @ (z[head] @ W_O[head])) for head in range(s.n_heads)]
        assert row.covered == len(hidden & set().union(*lists)) / K
        drawn, negative = coverage.random_values(s.d_mlp, active + s.n_heads, row.layer)
        chance = [first(W_U @ (-values[n] if minus else values[n])) for n, minus in zip(drawn, negative, strict=True)]
        assert row.shuffled == len(hidden & set().union(*chance)) / K


def test_again_from_known_lists_and_in_company_the_same(case: Case) -> None:  # noqa: F811
    answers = [case.ask(text, panels={"coverage"}).coverage for text in (TEXT, "The horse", TEXT)]
    assert answers[0] == answers[2] != answers[1]


def test_random_values_are_different_neurons_and_stay_the_same() -> None:
    drawn, negative = coverage.random_values(200, 112, 3)
    assert len(set(drawn.tolist())) == 112 == len(negative)
    assert 20 < int(negative.sum()) < 92
    assert drawn.equal(coverage.random_values(200, 112, 3)[0])
    assert not drawn.equal(coverage.random_values(200, 112, 4)[0])
    assert len(coverage.random_values(48, 112, 3)[0]) == 48


def test_what_adds_nothing_covers_nothing(case: Case) -> None:  # noqa: F811
    s = case.engine.shape
    off = [{"kind": "head", "layer": 1, "head": head} for head in range(s.n_heads)]
    off += [{"kind": "neuron", "layer": 1, "neuron": neuron} for neuron in range(s.d_mlp)]
    answer = case.ask(panels={"coverage"}, interventions=off)
    assert answer.coverage is not None
    assert answer.coverage[1].covered == 0
