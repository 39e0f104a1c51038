"""Positions: what they say of heads, and of the scores of a run, against brute force with `transformers`."""

import pytest
import torch
from torch import Tensor

from lexiscope.precompute.live.panels.positions import parts_of_scores, words_of
from lexiscope.precompute.live.wire.answers import Positions, ScoreParts
from tests.precompute.live.reference import TEXT, Case, close
from tests.support.families import POSITIONS

HEAD, LAYERS = 2, range(3)
PARTS = tuple(ScoreParts.__annotations__)


def ask(case: Case, text: str = TEXT, **fields: int) -> Positions:
    answer = case.ask(text, panel=("positions",), **fields)["positions"]
    assert answer is not None
    return answer


def states(case: Case, layer: int) -> Tensor:
    return case.run(case.engine.words.prompt(TEXT)).reads[layer]


def scores(case: Case, layer: int, x: Tensor) -> Tensor:
    """Return the scores (n_heads, T, T) that `transformers` gives states (T, d_model) at positions 0 to T - 1."""
    at = torch.arange(len(x))
    return case.net.scores(case.model, layer, x, at, x, at, case.run(case.engine.words.prompt(TEXT)))


def position_vectors(case: Case) -> tuple[Tensor, list[Tensor]]:
    """Return what `transformers` adds at each position (T, d_model), and of each layer the part (T, d_model) that it
    has in what attention reads: through the norms on the way as matrices, over what each divided by in the run."""
    names = ("wpe", "embed_positions", "position_embeddings")
    (added,) = (module for name, module in case.net.body.named_modules() if name.endswith(names))
    steps = [(name, layer) for layer in LAYERS for name in ("attention", *(() if case.model.shape.causal else ("ff",)))]
    seen: dict[int, Tensor] = {}

    def keep(module: torch.nn.Module, args: tuple[Tensor], output: Tensor) -> None:
        seen[id(module)] = output[0] if module is added else args[0][0]

    norms = [case.net.norm(*step) for step in steps]
    handles = [module.register_forward_hook(keep) for module in (added, *norms)]
    case.net.run(case.engine.words.prompt(TEXT))
    for handle in handles:
        handle.remove()
    vectors, parts = seen[id(added)], []
    part = vectors.double()
    for (name, layer), norm in zip(steps, norms, strict=True):
        read = seen[id(norm)].double()
        divisors = ((read - read.mean(dim=1, keepdim=True)).square().mean(dim=1, keepdim=True) + norm.eps).sqrt()
        normed = part @ case.net.linear_norm(name, layer) / divisors
        if name == "attention":
            parts.append(normed.float())
        part = part if case.model.shape.causal else normed
    return vectors, parts


def mean_scores(case: Case, layer: int) -> Tensor:
    """Return for each distance the mean score (n_heads, T) of all pairs of queries and keys of the run, if each query
    stood so far behind each key; a soft cap comes after the mean."""
    x, cap = states(case, layer), case.net.soft_cap
    run, first = case.run(case.engine.words.prompt(TEXT)), torch.zeros(len(x), dtype=torch.long)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(case.net), "soft_cap", None)
        of_pairs = [case.net.scores(case.model, layer, x, first + d, x, first, run) for d in range(len(x))]
    means = torch.stack([pairs.double().mean(dim=(1, 2)) for pairs in of_pairs], dim=1).float()
    return cap * torch.tanh(means / cap) if cap else means


def expected_shares(case: Case, weights: Tensor) -> dict[str, float | None]:
    """Return the shares of one head's weights (T, T), by going over them."""
    T, after = len(weights), None if case.model.shape.causal else 0.0
    sums = {"first": 0.0, "previous": 0.0, "same": 0.0}
    for i in range(1, T):
        sums["first"] += float(weights[i, 0])
        sums["previous"] += float(weights[i, i - 1])
        sums["same"] += float(weights[i, i])
        if after is not None and i + 1 < T:
            after += float(weights[i, i + 1])
    means = {name: total / (T - 1) for name, total in sums.items()}
    return {**means, "next": None if after is None else after / (T - 1)}


def masked(case: Case, of: Tensor) -> Tensor:
    return of.masked_fill(torch.ones_like(of).triu(1).bool(), -torch.inf) if case.model.shape.causal else of


def test_where_heads_look_by_position_alone_and_in_the_run(every: Case) -> None:
    found = ask(every)
    tokens = every.engine.words.prompt(TEXT)
    learned, T, run = every.model.shape.positions == "learned", len(tokens), every.run(tokens)
    assert found["by"] == ("position" if learned else "distance")
    seen = [i + 1 if every.model.shape.causal else T for i in range(1, T)]
    assert found["even"] == pytest.approx(sum(1 / n for n in seen) / (T - 1))
    assert [(row["layer"], row["head"]) for row in found["heads"]] == [(a, b) for a in LAYERS for b in range(4)]
    for layer in LAYERS:
        if learned:
            vectors = every.net.norm("attention", layer)(position_vectors(every)[0])
            by_position = scores(every, layer, vectors)
        else:
            curve = mean_scores(every, layer)
            by_position = torch.stack([curve[:, (i - torch.arange(T)).clamp(min=0)] for i in range(T)], dim=1)
        alone = masked(every, by_position).softmax(dim=2)
        for row in found["heads"][layer * 4 : layer * 4 + 4]:
            for part, weights in ((row, alone), (row["attention"], run.attentions[layer])):
                expected = expected_shares(every, weights[row["head"]])
                assert {name: part[name] for name in expected} == pytest.approx(expected, abs=1e-5)  # type: ignore[literal-required]
            assert row["words"] == words_of(row)


def test_texts_of_one_token_and_of_all_positions(every: Case) -> None:
    words = every.engine.words
    texts = ["a", *(" ".join(["dog"] * n) for n in range(POSITIONS, 0, -1))]
    short, long = texts[0], next(text for text in texts if len(words.prompt(text)) == every.engine.n_positions)
    if len(words.prompt(short)) == 1:
        assert ask(every, short, layer=1, head=HEAD) | {"by": ""} == {
            "by": "",
            "even": None,
            "heads": [],
            "chosen": None,
        }
    found = ask(every, long, layer=1, head=HEAD)
    assert found["chosen"] is not None
    rows = found["chosen"]["distances"] or found["chosen"]["keys"] or []
    assert len(rows) == every.engine.n_positions
    assert ask(every, long, layer=1)["chosen"] is None


@pytest.mark.parametrize("layer", LAYERS)
def test_a_head_by_distance(every: Case, layer: int) -> None:
    if every.model.shape.positions == "learned":
        return
    tokens, chosen = every.engine.words.prompt(TEXT), ask(every, layer=layer, head=HEAD)["chosen"]
    weights, curve = every.run(tokens).attentions[layer][HEAD], mean_scores(every, layer)[HEAD]
    assert chosen is not None
    assert chosen["distances"] is not None
    assert [row["distance"] for row in chosen["distances"]] == list(range(len(tokens)))
    for d, row in enumerate(chosen["distances"]):
        alone = [curve[: i + 1].softmax(dim=0)[d] for i in range(d, len(tokens))]
        assert row["score"] == pytest.approx(float(curve[d]), abs=1e-4)
        assert row["alone"] == pytest.approx(float(torch.stack(alone).mean()), abs=1e-5)
        assert row["attention"] == pytest.approx(float(weights.diagonal(-d).mean()), abs=1e-5)


@pytest.mark.parametrize("layer", LAYERS)
def test_parts_of_scores_sum_to_those_of_the_model(every: Case, layer: int) -> None:
    if every.model.shape.positions != "learned":
        return
    tokens, x = every.engine.words.prompt(TEXT), states(every, layer)
    own, run, position = scores(every, layer, x), every.run(tokens), position_vectors(every)[1][layer]
    answer = ask(every, layer=layer, head=HEAD, position=3)
    W_Q, W_K = every.model.factors(layer, "qk")
    scale = getattr(every.net.module(layer, "attention"), "scaling", 1.0)
    both = {"position": position, "content": x - position}
    parts = {f"{a}_{b}": both[a] @ W_Q @ W_K @ both[b].T * scale for a in both for b in both}
    parts["biases"] = own - sum(parts.values())
    found = parts_of_scores(every.engine.weights, layer, x, position)
    for name, part in zip(PARTS, found, strict=True):
        close(part, parts[name])
    if every.model.shape.architecture != "gpt_neo":  # whose second layer has a window
        close(masked(every, torch.stack(found).sum(dim=0)).softmax(dim=2), run.attentions[layer])
    seen = range(4) if every.model.shape.causal else range(len(x))
    assert answer["chosen"] is not None
    keys = answer["chosen"]["keys"] or []
    assert [key["position"] for key in keys] == list(seen)
    for key, row in enumerate(keys):
        assert row["score"] == pytest.approx(float(own[HEAD, 3, key]), abs=1e-4)
        assert row["weight"] == pytest.approx(float(run.attentions[layer][HEAD, 3, key]), abs=1e-5)
        assert {name: row[name] for name in PARTS} == pytest.approx(  # type: ignore[literal-required]
            {name: float(part[HEAD, 3, key]) for name, part in parts.items()}, abs=1e-4
        )
    for of_head in answer["heads"][layer * 4 : layer * 4 + 4]:
        head, n, shares = of_head["head"], range(len(x)), of_head["parts"]
        assert shares is not None
        seen_by = [slice(0, i + 1 if every.model.shape.causal else len(x)) for i in n]
        variance = sum(float(own[head, i, seen_by[i]].var(correction=0)) * (seen_by[i].stop) for i in n)
        for name in PARTS:
            covariance = sum(
                float(torch.cov(torch.stack([parts[name][head, i, keys], own[head, i, keys]]), correction=0)[0, 1])
                * keys.stop
                for i, keys in enumerate(seen_by)
            )
            assert shares[name] == pytest.approx(covariance / variance, abs=1e-4)  # type: ignore[literal-required]
        assert sum(shares[name] for name in PARTS) == pytest.approx(1, abs=1e-4)  # type: ignore[literal-required]
