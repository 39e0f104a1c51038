"""R_k equals a direct computation from what `transformers` computes and the weights, set by set."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from lexiscope.precompute.live.panels import coverage
from lexiscope.precompute.live.wire.answers import CoverageRow
from tests.precompute.live.reference import Case, ids
from tests.support.nets import Run


def first(scores: torch.Tensor) -> set[int]:
    return set(scores.topk(coverage.COVERED_TOKENS).indices.tolist())


def lists(case: Case, run: Run, layer: int, at: int, kind: str) -> list[set[int]]:
    """The first tokens of each active vector."""
    s, vectors = case.engine.shape, case.model.vectors(layer, kind)
    c = (run.mixed if kind.startswith("w_") else run.coefficients)[layer][at]
    W = case.model.W_E if kind in ("ff_key", "w_v") else case.model.W_U
    rows, signs = [], []
    for n in sorted(range(len(c)), key=lambda n: -abs(float(c[n])))[: coverage.ACTIVE_VECTORS]:
        if c[n] == 0:
            continue
        head, j = divmod(n, s.d_head)
        rows.append((head * s.n_kv_heads // s.n_heads) * s.d_head + j if kind == "w_v" else n)
        signs.append((run.keys[layer][at] if kind == "ff_key" else c)[n].sign())
    return [first(sign * scores) for sign, scores in zip(signs, vectors[rows] @ W.T, strict=True)]


def hidden(case: Case, run: Run, layer: int) -> list[set[int]]:
    """The first tokens of the stream after the layer, by position; an encoder's has been normed."""
    states = run.streams[layer, "ff"]
    if case.engine.shape.causal:
        states = case.net.norm("final")(states)
    return [first(row) for row in states @ case.model.W_U.T]


def check(case: Case, rows: list[CoverageRow], run: Run, at: int) -> None:
    assert [(row["kind"], row["layer"]) for row in rows] == [
        (kind, layer) for kind in coverage.COVERED_KINDS for layer in range(case.engine.shape.n_layers)
    ]
    states = [hidden(case, run, layer) for layer in range(case.engine.shape.n_layers)]
    for row in rows:
        listed = set().union(*lists(case, run, row["layer"], at, row["kind"]))
        shares = [len(state & listed) / coverage.COVERED_TOKENS for state in states[row["layer"]]]
        assert row["covered"] == pytest.approx(shares.pop(at))
        assert row["shuffled"] == (pytest.approx(np.mean(shares)) if shares else None)
        assert row["shuffled_sd"] == (pytest.approx(np.std(shares, ddof=1)) if len(shares) > 1 else None)
        assert (row["others"], row["as_covered"]) == (
            len(shares),
            sum(share > row["covered"] - 1e-9 for share in shares),
        )


# small, so that lists do not cover everything
@pytest.mark.parametrize(("position", "k", "active"), [(0, 40, 10), (4, 10, 3), (None, 40, 10)])
def test_coverage_equals_a_direct_computation(
    every: Case, position: int | None, k: int, active: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "COVERED_TOKENS", k)
    monkeypatch.setattr(coverage, "ACTIVE_VECTORS", active)
    answer = every.ask(panel=("coverage",), position=position)
    assert answer["coverage"] is not None
    check(every, answer["coverage"], every.run(ids(answer["tokens"])), answer["position"])
    assert 0 < sum(row["covered"] for row in answer["coverage"]) < len(answer["coverage"])


def test_a_single_token_has_nothing_to_be_shuffled_with(case_of: Callable[[str], Case]) -> None:
    case = case_of("gpt2")
    answer = case.ask("T", panel=("coverage",))
    assert len(answer["tokens"]) == 1
    assert answer["coverage"] is not None
    check(case, answer["coverage"], case.run(ids(answer["tokens"])), 0)
    assert {(row["shuffled"], row["shuffled_sd"], row["others"]) for row in answer["coverage"]} == {(None, None, 0)}


@pytest.mark.parametrize("every", [False, True])
def test_what_adds_nothing_covers_nothing(case: Case, every: bool) -> None:
    s = case.engine.shape
    layers = range(s.n_layers) if every else (1,)
    off = [{"kind": "head", "layer": layer, "head": head} for layer in layers for head in range(s.n_heads)]
    off += [{"kind": "neuron", "layer": layer, "neuron": neuron} for layer in layers for neuron in range(s.d_mlp)]
    answer = case.ask(panel=("coverage",), off=off)
    assert answer["coverage"] is not None
    assert {row["covered"] for row in answer["coverage"] if row["layer"] in layers} == {0}
    assert every or any(row["covered"] for row in answer["coverage"])
