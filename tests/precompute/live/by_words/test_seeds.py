"""Seed words with weights: ranking against brute force in float64, in and out of company; near tokens; heads."""

from typing import Any

import numpy as np
import pytest
import torch

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound
from lexiscope.precompute.live.by_words.seeds import NEAREST_TO_SEEDS, TOKENS_OF_HEAD, Query
from lexiscope.precompute.live.proposals import proposals
from lexiscope.precompute.live.seed_ranking import find_seed, rank_by_seeds
from lexiscope.precompute.live.wire.answers import SeedsAnswer
from lexiscope.precompute.live.wire.asks import SeedsAsk, VectorPlace
from lexiscope.precompute.live.wire.grammar import Term
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import SIDES
from tests.precompute.live.reference import Case, ids

EQUATION = {"horse": 1.0, "dog": -0.5, "zebra": 2.0}


def ask(words: dict[str, float], *kinds: str, **options: Any) -> SeedsAsk:
    terms = tuple(Term(word=word, weight=weight) for word, weight in words.items())
    return SeedsAsk(words=terms, kind=kinds or ("ff_value",), **options)


def answer_of(case: Case, question: SeedsAsk) -> SeedsAnswer:
    (answer,) = case.engine.seeds([question])
    assert isinstance(answer, dict), answer
    return answer


def terms_of(case: Case, words: dict[str, float], side: str, lens: str = "dot") -> Float64:
    W = (case.model.W_E if side == "reads" else case.model.W_U).numpy().astype(np.float64)
    tokens = [list(find_seed(case.engine.words.tokenizer, word).tokens) for word in words]
    terms = np.stack([W[each].mean(axis=0) - W.mean(axis=0) for each in tokens])
    return terms / np.linalg.norm(terms, axis=1, keepdims=True) if lens == "cosine" else terms


def query_of(case: Case, words: dict[str, float], side: str, lens: str = "dot") -> Float64:
    weights = np.array(list(words.values()))
    return np.asarray(weights @ terms_of(case, words, side, lens) / np.abs(weights).sum())


@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize("kinds", [("ff_value",), ("vo_out", "ff_key"), ("w_o", "w_q", "w_k", "w_v", "qk_key", "w_q")])
@pytest.mark.parametrize("n", [1, 20, 1000])
def test_ranking_equals_brute_force(case: Case, kinds: tuple[str, ...], n: int, lens: str) -> None:
    answer = answer_of(case, ask(EQUATION, *kinds, k=n, lens=lens))
    every = []
    for kind in dict.fromkeys(kinds):
        terms, q = (of(case, EQUATION, SIDES[kind], lens) for of in (terms_of, query_of))
        for layer in range(case.engine.shape.n_layers):
            V = case.model.vectors(layer, kind).numpy().astype(np.float64)
            if lens == "cosine":
                V /= np.linalg.norm(V, axis=1, keepdims=True)
            every += [
                (score, kind, layer, index, own)
                for index, (score, own) in enumerate(zip(V @ q, V @ terms.T, strict=True))
            ]
    every.sort(key=lambda row: (-row[0], *row[1:4]))
    assert [(r["kind"], r["layer"], r["index"]) for r in answer["results"]] == [row[1:4] for row in every[:n]]
    np.testing.assert_allclose([r["score"] for r in answer["results"]], [row[0] for row in every[:n]], atol=1e-12)
    np.testing.assert_allclose([r["scores"] for r in answer["results"]], [row[4] for row in every[:n]], atol=1e-12)


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_without_weights_the_same_as_the_command(case: Case, lens: str) -> None:
    words = dict.fromkeys(("horse", "dog", "lion"), 1.0)
    seeds = [find_seed(case.engine.words.tokenizer, word) for word in words]
    answer = answer_of(case, ask(words, "ff_value", "w_v", k=30, lens=lens))
    expected = rank_by_seeds(case.model, seeds, ("ff_value", "w_v"), 30, lens)
    assert [(r["kind"], r["layer"], r["index"]) for r in answer["results"]] == [
        (r.kind, r.layer, r.index) for r in expected
    ]
    np.testing.assert_allclose([r["score"] for r in answer["results"]], [r.score for r in expected], atol=1e-12)
    assert [ids(term["tokens"]) for term in answer["terms"]] == [seed.tokens for seed in seeds]


def test_company_changes_nothing(case: Case) -> None:
    """Bitwise: float32 only proposes."""
    asks = [
        ask({"dog": 1.0}, "ff_value", k=5),
        ask(EQUATION, "ff_key", "w_o", k=40),
        ask(EQUATION, "ff_key", "ff_value", k=40, lens="cosine"),
        ask({"lion": 2.0, "Paris": 1.0}, "ff_value", "ff_key", k=17, heads=True),
        *(ask({word: 1.0}, "ff_value") for word in ("week", "France", "river", "years", "Italy", "seas")),
    ]
    together, alone = case.engine.seeds(asks), [answer_of(case, each) for each in asks]
    for one, other in zip(together, alone, strict=True):
        assert isinstance(one, dict)
        assert {**one, "heads": []} == {**other, "heads": []}
        assert [(h["layer"], h["head"]) for h in one["heads"]] == [(h["layer"], h["head"]) for h in other["heads"]]


def test_nearest_tokens_of_the_average(case: Case) -> None:
    answer = answer_of(case, ask(EQUATION))
    W, q = case.model.W_E.numpy().astype(np.float64), query_of(case, EQUATION, "reads")
    centred = W - W.mean(axis=0)
    cosines = centred @ q / np.linalg.norm(centred, axis=1) / np.linalg.norm(q)
    assert [token["id"] for token in answer["nearest"]] == np.argsort(-cosines, kind="stable")[
        :NEAREST_TO_SEEDS
    ].tolist()
    np.testing.assert_allclose(
        [t["score"] for t in answer["nearest"]], np.sort(cosines)[::-1][:NEAREST_TO_SEEDS], atol=1e-9
    )


def test_devices_find_the_same_near_tokens(case: Case) -> None:
    search = case.engine.seed_search
    asks = [ask({word: 1.0}) for word in ("dog", "years", "France", "zebra")]
    queries = [Query(case.engine.words, case.engine.weights, each) for each in asks]
    for each, (_, near) in zip(asks, search.near_by_product(queries), strict=True):
        assert {token["id"] for token in answer_of(case, each)["nearest"]} <= set(near.tolist())


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_what_every_head_makes_of_the_average(case: Case, lens: str) -> None:
    answer, s = answer_of(case, ask(EQUATION, heads=True, lens=lens)), case.engine.shape
    q = torch.from_numpy(query_of(case, EQUATION, "reads", lens))
    assert [(h["layer"], h["head"]) for h in answer["heads"]] == [
        (x, y) for x in range(s.n_layers) for y in range(s.n_heads)
    ]
    for each in answer["heads"]:
        for found, matrix, W in ((each["writes"], "vo", case.model.W_U), (each["seeks"], "qk", case.model.W_E)):
            left, right = (factor[each["head"]].double() for factor in case.model.factors(each["layer"], matrix))
            centred = W.double() - W.double().mean(dim=0)
            tokens = W.double() if lens == "dot" else centred / centred.norm(dim=1, keepdim=True)
            best = (tokens @ (q @ left @ right)).topk(TOKENS_OF_HEAD)
            assert [token["id"] for token in found] == best.indices.tolist()
            np.testing.assert_allclose([token["score"] for token in found], best.values, atol=1e-4)
    assert answer_of(case, ask(EQUATION))["heads"] == []


@pytest.mark.parametrize(("question", "kind", "said"), [
    (ask({"dog": 1.0}).model_copy(update={"kind": ("ff_wrong",)}), NotFound, "only ff_key"),
    (ask({"\n": 1.0}), NotFound, "has no tokens"),
    (ask({"dog": 0.0}), BadRequest, "weight 0"),
    (SeedsAsk(words=(Term(word="dog"), Term(word=" dog", weight=-1)), kind=("w_q",)), BadRequest, "cancel"),
])  # fmt: skip
def test_a_wrong_ask_gets_its_error_and_the_others_their_answers(
    case: Case, question: SeedsAsk, kind: type[LexiscopeError], said: str
) -> None:
    good = ask({"dog": 1.0})
    wrong, right = case.engine.seeds([question, good])
    assert isinstance(wrong, kind)
    assert said in str(wrong)
    assert right == answer_of(case, good)


@pytest.mark.parametrize("n", [1, 7, 40, 1000])
@pytest.mark.parametrize("size", [5, 64, 1000, 5000])
def test_proposals_hold_whoever_may_be_among_the_largest(size: int, n: int) -> None:
    generator = torch.Generator().manual_seed(size + n)
    true = torch.randn(size, generator=generator)
    error = 0.01 * torch.rand(size, generator=generator)
    scores = true + error * (2 * torch.rand(size, generator=generator) - 1)
    found = set(proposals(scores, error / 4, 4.0, n).tolist())
    assert set(true.topk(min(n, size)).indices.tolist()) <= found
    assert len(found) <= min(n, size) + size // 10


@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize("kind", ["ff_value", "w_q"])
def test_the_rank_of_any_vector_equals_brute_force(case: Case, kind: str, lens: str) -> None:
    shape = case.engine.shape
    rows = [(layer, index) for layer in range(shape.n_layers) for index in range(shape.count(kind))]
    V = np.concatenate([case.model.vectors(layer, kind).numpy() for layer in range(shape.n_layers)]).astype(np.float64)
    if lens == "cosine":
        V /= np.linalg.norm(V, axis=1, keepdims=True)
    order = np.argsort(-(V @ query_of(case, EQUATION, SIDES[kind], lens)), kind="stable").tolist()
    for rank in (1, 2, len(rows) // 2, len(rows)):
        layer, index = rows[order[rank - 1]]
        place = VectorPlace(kind=kind, layer=layer, index=index)
        assert answer_of(case, ask(EQUATION, kind, k=1, lens=lens, rank_of=place))["rank"] == rank


@pytest.mark.parametrize(
    ("place", "error"),
    [(("ff_key", 0, 0), BadRequest), (("ff_value", 99, 0), NotFound), (("ff_value", 0, 9999), NotFound)],
)
def test_the_rank_of_what_is_not_there(case: Case, place: tuple[str, int, int], error: type[LexiscopeError]) -> None:
    kind, layer, index = place
    wanted = VectorPlace(kind=kind, layer=layer, index=index)
    (answer,) = case.engine.seeds([ask({"dog": 1.0}, "ff_value", rank_of=wanted)])
    assert isinstance(answer, error)


@pytest.mark.parametrize(("spelling", "text"), [("spaced", " dog"), ("bare", "dog")])
def test_seeds_as_they_are_spelt(case: Case, spelling: Any, text: str) -> None:
    term = Term(word="dog", spelling=spelling)
    (used,) = answer_of(case, SeedsAsk(words=(term,), kind=("ff_value",)))["terms"]
    assert ids(used["tokens"]) == tuple(case.engine.words.tokenizer.encode(text, add_special_tokens=False).ids)
