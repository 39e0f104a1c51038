"""Seeds, relations and words through heads of a difference of two models, against brute force in float64."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.grammar import Term, Word, WordPair
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import FACTORS, SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference
from tests.support.brute import lensed, rounded
from tests.support.differences import BASE, TUNED, UNCHANGED_HEAD, UNCHANGED_LAYER, UNCHANGED_NEURONS, difference_of
from tests.support.directions import by_full_svd
from tests.support.models import tiny_gpt2, tiny_llama

Pair = tuple[Engine, Model, Model]
MAKERS: dict[str, Any] = {"gpt2": tiny_gpt2, "llama-untied": lambda *a, **k: tiny_llama(*a, tied=False, **k)}


@pytest.fixture(scope="module", params=MAKERS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The engine of a difference, and its two models; one case has grouped heads and an unembedding of its own."""
    folder, make = tmp_path_factory.mktemp("pair"), MAKERS[request.param]
    folders = (make(folder / name, seed=seed) for name, seed in (("tuned", 5), ("base", 0)))
    tuned, base = (describe(Checkpoint.open(of_model)) for of_model in folders)
    return Engine.load(Difference(tuned, base), "cpu"), tuned, base


def dog(engine: Engine, lens: str, W: Float64) -> Float64:
    (token,) = engine.words.tokens("dog")
    centred = W[token] - W.mean(axis=0)
    return np.asarray(W[token] if lens == "dot" else centred / np.linalg.norm(centred))


def matrix_of(model: Model, layer: int, head: int, matrix: str) -> Float64:
    left, right = (factor[head].double().numpy() for factor in model.factors(layer, matrix))
    return np.asarray(left @ right)


def vectors_of_difference(tuned: Model, base: Model, layer: int, kind: str) -> Float64:
    if kind in base.shape.weight_kinds:
        return np.asarray((tuned.vectors(layer, kind) - base.vectors(layer, kind)).double().numpy())
    s, matrix, side = base.shape, kind[:2], 1 if kind in ("vo_out", "qk_key") else 0
    W = (base.W_U if matrix == "vo" else base.W_E).double().numpy()
    deltas = (matrix_of(tuned, layer, h, matrix) - matrix_of(base, layer, h, matrix) for h in range(s.n_heads))
    return np.concatenate([by_full_svd(delta, W, s.d_head)[side] for delta in deltas])


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_seeds_rank_differences_of_vectors(pair: Pair, lens: str) -> None:
    engine, tuned, base = pair
    kinds = engine.shape.kinds
    (answer,) = engine.seeds(
        [asks.SeedsAsk.model_validate({"words": [Term(word="dog")], "kind": kinds, "k": 9, "lens": lens})]
    )
    ranked = []
    for kind in kinds:
        W = (base.W_E if SIDES[kind] == "reads" else base.W_U).double().numpy()
        centred = dog(engine, "dot", W) - W.mean(axis=0)
        q = centred / np.linalg.norm(centred) if lens == "cosine" else centred
        for layer in range(engine.shape.n_layers):
            delta = vectors_of_difference(tuned, base, layer, kind)
            scores = delta @ q / (np.linalg.norm(delta, axis=1) if lens == "cosine" else 1.0)
            ranked += [(-score, kind, layer, row) for row, score in enumerate(scores.tolist())]
    expected = sorted(ranked)[:9]
    assert not isinstance(answer, Exception)
    assert [(r["kind"], r["layer"], r["index"]) for r in answer["results"]] == [tuple(entry[1:]) for entry in expected]
    np.testing.assert_allclose([r["score"] for r in answer["results"]], [-entry[0] for entry in expected], rtol=1e-6)


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_words_go_through_the_difference_of_the_matrices(pair: Pair, lens: str) -> None:
    """Not through the product of the differences of a head's factors."""
    engine, tuned, base = pair
    s = engine.shape
    ask = asks.ThroughHeadsAsk.model_validate(
        {"words": ((Word(word="dog"),),), "layers": tuple(range(s.n_layers)), "lens": lens, "k": 5}
    )
    (heads,) = engine.answer(ask)["heads"]
    e = dog(engine, lens, base.W_E.double().numpy())
    for head in heads:
        for found, matrix, W in ((head["writes"], "vo", base.W_U), (head["seeks"], "qk", base.W_E)):
            delta = matrix_of(tuned, head["layer"], head["head"], matrix) - matrix_of(
                base, head["layer"], head["head"], matrix
            )
            rows, factor = lensed(W.numpy(), lens)
            scores = rounded(e @ delta @ rows.T * factor)
            order = np.argsort(-scores, kind="stable")[:5]
            assert [token["id"] for token in found] == order.tolist()
            np.testing.assert_allclose([token["score"] for token in found], scores[order], rtol=1e-5)


@pytest.mark.parametrize("matrix", [*FACTORS])
def test_a_relation_ranks_targets_by_the_difference_of_the_matrices(pair: Pair, matrix: str) -> None:
    engine, tuned, base = pair
    ask = asks.RelationAsk.model_validate({"pairs": [WordPair(source="dog", target="lion")], "matrix": matrix})
    (lion,) = engine.words.tokens("lion")
    e = dog(engine, "dot", base.W_E.double().numpy())
    W = (base.W_U if matrix == "vo" else base.W_E).double().numpy()
    for head in engine.answer(ask)["heads"]:
        delta = matrix_of(tuned, head["layer"], head["head"], matrix) - matrix_of(
            base, head["layer"], head["head"], matrix
        )
        scores = e @ delta @ W.T
        assert head["rank"] == 1 + (scores > scores[lion]).sum()


READING = asks.ReadingAsk(kind="ff_value", layer=0, index=0, reading="norm")
STATES, STATES_READING = asks.StatesAsk(text="the dog"), asks.StatesReadingAsk(states=b"1234")
PAIRS_READING = asks.PairsReadingAsk(matrix="vo", layer=0, head=0, reading="mlp")
NORMED = asks.RelationAsk(pairs=(WordPair(source="dog", target="lion"),), source="norm")


@pytest.mark.parametrize(
    "run",
    [
        lambda engine: engine.prompts([asks.PromptAsk(text="the dog")]),
        lambda engine: engine.answer(READING),
        lambda engine: engine.answer(PAIRS_READING),
        lambda engine: engine.check(asks.PromptAsk(text="the dog")),
        lambda engine: engine.check(READING),
        lambda engine: engine.check(PAIRS_READING),
        lambda engine: engine.answer(NORMED),
        lambda engine: engine.check(NORMED),
        lambda engine: engine.answer(STATES),
        lambda engine: engine.check(STATES),
        lambda engine: engine.check(STATES_READING),
        lambda engine: engine.check(asks.BeforehandAsk(token=3)),
        lambda engine: engine.answer(asks.BeforehandAsk(token=3)),
    ],
)
def test_what_runs_a_model_is_refused(pair: Pair, run: Callable[[Engine], object]) -> None:
    with pytest.raises(NotFound, match="a difference of two models cannot run"):
        run(pair[0])


@pytest.fixture(scope="module")
def tuned(difference_data: Path) -> Engine:
    """Of a fine-tune that leaves a layer, some neurons and a head as they were."""
    sources = difference_data.parent / "sources"
    return Engine.load(difference_of(sources / TUNED, sources / BASE), "cpu")


def did_change(layer: int, head: int) -> bool:
    return layer != UNCHANGED_LAYER and head != UNCHANGED_HEAD


def test_heads_that_did_not_change_write_nothing(tuned: Engine) -> None:
    ask = asks.ThroughHeadsAsk.model_validate({"words": ((Word(word="dog"),),), "layers": (0, 1), "k": 5})
    (heads,) = tuned.answer(ask)["heads"]
    for head in heads:
        assert bool(head["writes"]) == bool(head["seeks"]) == did_change(head["layer"], head["head"])
        assert (head["writes_alike"] is None) == (not head["writes"])


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_heads_that_did_not_change_carry_no_pair(tuned: Engine, lens: str) -> None:
    """All tokens have the score 0 there: a target is in the middle, not the first."""
    ask = asks.RelationAsk.model_validate({"pairs": [WordPair(source="dog", target="lion")], "lens": lens})
    middle = (tuned.shape.d_vocab - 1) // 2 + 1
    for head in tuned.answer(ask)["heads"]:
        if not did_change(head["layer"], head["head"]):
            assert (head["rank"], head["rank_from_bottom"], head["score"]) == (middle, middle, 0)


def test_vectors_that_did_not_change_are_about_nothing(tuned: Engine) -> None:
    s = tuned.shape
    ask = asks.SeedsAsk(words=(Term(word="dog"),), kind=("ff_key",), k=s.n_layers * s.d_mlp)
    (answer,) = tuned.seeds([ask])
    assert not isinstance(answer, Exception)
    found = {(result["layer"], result["index"]) for result in answer["results"]}
    assert found == {(1, neuron) for neuron in range(s.d_mlp) if neuron not in UNCHANGED_NEURONS}
