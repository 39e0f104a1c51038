"""The neurons that read one word and write another, against numpy in float64."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.live.wire.answers import NeuronTransition
from lexiscope.precompute.live.wire.asks import TransitionAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import WordPair
from lexiscope.precompute.project.embedding import Float64
from tests.precompute.live.reference import Case

PAIRS = (("dog", "lion"), ("France", "Paris"), ("horse", "week"))
LENSES = ("dot", "cosine")


@pytest.fixture
def gpt2(case_of: Callable[[str], Case]) -> Case:
    return case_of("gpt2")


class Parameters(LoadedParameters):
    """Random vectors that are given, of a model that is not tied."""

    n_positions = padding = 0

    def __init__(self, case: Case, *, gated: bool) -> None:
        self.shape = replace(case.engine.shape, n_layers=2, d_model=8, d_mlp=40, gated=gated, tied=False)
        self.device, generator = torch.device("cpu"), torch.Generator().manual_seed(5)
        self.W_E, self.W_U = (torch.randn(self.shape.d_vocab, 8, generator=generator) for _ in range(2))
        self.W_E[:, 0] = self.W_U[:, 0] = 1.5  # so that a vector of this channel alone scores all tokens alike
        kinds = [kind for kind in self.shape.kinds if kind.startswith("ff_")]
        self.of = {(kind, layer): torch.randn(40, 8, generator=generator) for kind in kinds for layer in (0, 1)}

    def vectors(self, kind: str, layer: int) -> Tensor:
        return self.of[kind, layer]

    def lacks(self, kind: str, layer: int) -> bool:  # noqa: ARG002
        return False

    def engine(self, case: Case) -> Engine:
        return Engine(self, case.engine.words.tokenizer, case.engine.tokenizer_file)


def ask(*pairs: tuple[str, str], lens: str = "dot", k: int = 1000) -> TransitionAsk:
    asked = tuple(WordPair(source=a, target=b) for a, b in pairs)
    return TransitionAsk.model_validate({"pairs": asked, "lens": lens, "k": k})


class Numpy:
    """Scores of all tokens in all neurons' vectors, and what follows from them."""

    def __init__(self, engine: Engine, lens: str) -> None:
        w, self.tokenizer = engine.parameters, engine.words.tokenizer
        self.scores: dict[str, Float64] = {}
        for kind in (kind for kind in w.shape.kinds if kind.startswith("ff_")):
            W = (w.W_U if kind == "ff_value" else w.W_E).numpy().astype(np.float64)
            if lens == "cosine":
                W = W - W.mean(axis=0)
                W /= np.linalg.norm(W, axis=1, keepdims=True)
            V = np.concatenate([w.vectors(kind, layer).numpy() for layer in range(w.shape.n_layers)])
            self.scores[kind] = V.astype(np.float64) @ W.T
        self.d_mlp = w.shape.d_mlp

    def token(self, word: str) -> int:
        return find_seed(self.tokenizer, word).tokens[0]

    def z(self, kind: str, token: int) -> Float64:
        scores = self.scores[kind]
        sd = scores.std(axis=1)
        sd[sd < 1e-9] = np.nan
        return np.asarray((scores[:, token] - scores.mean(axis=1)) / sd)

    def strength(self, source: int, target: int, sign: int) -> Float64:
        """Return z of every neuron; NaN where a vector scores all tokens alike."""
        z, writes = self.z("ff_key", source), sign * self.z("ff_value", target)
        if "ff_up" in self.scores:
            up = self.z("ff_up", source)
            z, writes = np.minimum(z, abs(up)), np.where(up < 0, -writes, writes)
        return np.minimum(z, writes)

    def score(self, pairs: list[tuple[int, int]], sign: int) -> Float64:
        return np.asarray(np.mean([self.strength(*pair, sign) for pair in pairs], axis=0))

    def rank(self, kind: str, row: int, token: int, *, from_bottom: bool) -> int:
        """Count scores as equal that differ by rounding alone."""
        scores = (-1 if from_bottom else 1) * self.scores[kind][row]
        return 1 + int((scores > scores[token] + 1e-12 * abs(scores).max()).sum())


def check_neuron(of: Numpy, pairs: list[tuple[int, int]], neuron: NeuronTransition) -> None:
    row, sign = neuron["layer"] * of.d_mlp + neuron["neuron"], 1 if neuron["end"] == "top" else -1
    assert neuron["score"] == pytest.approx(of.score(pairs, sign)[row], rel=1e-6)
    gated = "ff_up" in of.scores
    for at, (source, target) in enumerate(pairs):
        assert neuron["key_z"][at] == pytest.approx(of.z("ff_key", source)[row])
        assert neuron["value_z"][at] == pytest.approx(of.z("ff_value", target)[row])
        assert neuron["key_ranks"][at] == of.rank("ff_key", row, source, from_bottom=False)
        turned = False
        if gated:
            assert neuron["up_z"]
            assert neuron["up_ranks"]
            turned = neuron["up_z"][at] < 0
            assert neuron["up_z"][at] == pytest.approx(of.z("ff_up", source)[row])
            assert neuron["up_ranks"][at] == of.rank("ff_up", row, source, from_bottom=turned)
        assert neuron["value_ranks"][at] == of.rank("ff_value", row, target, from_bottom=turned != (sign < 0))
    for name in ("key", "value"):
        assert neuron[f"{name}_rank"] == pytest.approx(np.mean(neuron[f"{name}_ranks"]))  # type: ignore[literal-required]
    if not gated:
        assert (neuron["up_rank"], neuron["up_ranks"], neuron["up_z"]) == (None, None, None)


def check(engine: Engine, pairs: tuple[tuple[str, str], ...], lens: str, k: int = 1000) -> None:
    answer, of = engine.answer(ask(*pairs, lens=lens, k=k)), Numpy(engine, lens)
    tokens = [(of.token(source), of.token(target)) for source, target in pairs]
    for end, sign in (("top", 1), ("bottom", -1)):
        expected = of.score(tokens, sign)
        found = [n for n in answer["neurons"] if n["end"] == end]
        order = np.argsort(-np.where(np.isnan(expected), -np.inf, expected), kind="stable")
        order = order[: min(k, int(np.isfinite(expected).sum()))]
        np.testing.assert_allclose([n["score"] for n in found], expected[order], rtol=1e-6, atol=1e-9)
        rows = [n["layer"] * of.d_mlp + n["neuron"] for n in found]
        np.testing.assert_allclose(expected[rows], expected[order], rtol=1e-6, atol=1e-9)
        assert len(set(rows)) == len(rows)
        for neuron in found:
            check_neuron(of, tokens, neuron)
            others = [[o for _, o in tokens if o != target] for _, target in tokens]
            if answer["shuffled_with"] == "pairs":
                row = neuron["layer"] * of.d_mlp + neuron["neuron"]
                shuffled = [
                    np.mean([of.strength(source, other, sign)[row] for other in others[at]])
                    for at, (source, _) in enumerate(tokens)
                ]
                assert neuron["shuffled"] == pytest.approx(np.mean(shuffled))
    scores = [n["score"] for n in answer["neurons"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("lens", LENSES)
def test_neurons_of_small_models(case: Case, lens: str) -> None:
    check(case.engine, PAIRS, lens, k=7)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("pairs", [PAIRS[:1], PAIRS])
def test_neurons_of_a_model_that_is_not_tied(
    gpt2: Case, pairs: tuple[tuple[str, str], ...], lens: str, gated: bool
) -> None:
    check(Parameters(gpt2, gated=gated).engine(gpt2), pairs, lens)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("lens", LENSES)
def test_vectors_that_score_all_tokens_alike_and_equal_neurons(gpt2: Case, lens: str, gated: bool) -> None:
    """Neurons with a vector of zeros, or of a channel that is the same for all tokens, are left out; equal neurons are
    ordered by layer and number; a shift of all scores changes nothing."""
    w = Parameters(gpt2, gated=gated)
    flat = {("ff_key", 0, 3): 0.0, ("ff_value", 1, 4): 0.0, ("ff_key", 1, 5): 2.0, ("ff_value", 0, 6): -2.0}
    flat |= {("ff_up", 1, 7): 2.0, ("ff_up", 0, 8): 0.0} if gated else {}
    for (kind, layer, neuron), number in flat.items():
        w.of[kind, layer][neuron] = 0
        w.of[kind, layer][neuron, 0] = number
    for vectors in w.of.values():
        vectors[20] = vectors[10]
    w.of["ff_key", 0][10, 0] += 3
    answer = w.engine(gpt2).answer(ask(*PAIRS[:1], lens=lens))
    found = [(n["layer"], n["neuron"], n["end"]) for n in answer["neurons"]]
    left_out = {(layer, neuron) for _, layer, neuron in flat}
    assert len(found) == 2 * (80 - len(left_out))
    assert left_out.isdisjoint((layer, neuron) for layer, neuron, _ in found)
    assert answer["chance"] is not None
    for layer in (0, 1):
        for end in ("top", "bottom"):
            one, two = found.index((layer, 10, end)), found.index((layer, 20, end))
            assert answer["neurons"][one]["score"] == pytest.approx(answer["neurons"][two]["score"], abs=1e-6)
            assert layer == 0 or one < two, "bit for bit equal"
    check(w.engine(gpt2), PAIRS, lens)


def test_no_neuron_tells_tokens_apart(gpt2: Case) -> None:
    w = Parameters(gpt2, gated=False)
    for vectors in w.of.values():
        vectors.zero_()
    answer = w.engine(gpt2).answer(ask(*PAIRS))
    assert (answer["neurons"], answer["chance"]) == ([], None)


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("n", [1, 3])
def test_few_random_pairs_of_words_reach_chance(gpt2: Case, lens: str, n: int) -> None:
    """Five in a hundred do. The random words of this test are of all frequencies, in a small vocabulary."""
    engine = Parameters(gpt2, gated=True).engine(gpt2)
    answer, of = engine.answer(ask(*PAIRS[:n], lens=lens)), Numpy(engine, lens)
    random, best = np.random.default_rng(7), []
    for draw in random.integers(engine.shape.d_vocab, size=(600, n, 2)).tolist():
        best.append(max(of.score(draw, 1).max(), of.score(draw, -1).max()))
    assert answer["chance"] == pytest.approx(np.quantile(best, 0.95), rel=0.1)
    assert engine.answer(ask(*PAIRS[:n], lens=lens)) == answer, "the same again"
    fresh = Parameters(gpt2, gated=True).engine(gpt2)
    assert fresh.answer(ask(*PAIRS[:n], lens=lens))["chance"] == answer["chance"], "and tomorrow"


def test_of_several_pieces_the_first_counts(gpt2: Case) -> None:
    answer = gpt2.engine.answer(ask(("zebra", "writers")))
    of, (pair,) = Numpy(gpt2.engine, "dot"), answer["pairs"]
    assert len(pair["source"]["tokens"]) > 1
    assert len(pair["target"]["tokens"]) > 1
    assert pair["ranked"] == pair["target"]["tokens"][0]
    check_neuron(of, [(pair["source"]["tokens"][0]["id"], pair["ranked"]["id"])], answer["neurons"][0])


def test_words_without_tokens_and_cancelled_asks(gpt2: Case) -> None:
    with pytest.raises(NotFound, match="has no tokens"):
        gpt2.engine.answer(ask(("\n", "dog")))
    for turn in range(0, 7, 2):
        calls = iter([False] * turn)
        with pytest.raises(Cancelled):
            Parameters(gpt2, gated=True).engine(gpt2).answer(ask(*PAIRS), cancelled=partial(next, calls, True))
