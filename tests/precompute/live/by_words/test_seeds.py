"""Seed words with weights: ranking against brute force in float64, alone and in a batch; near tokens; heads."""

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound
from lexiscope.precompute.live.by_words.random_words import draw_words, frequency_bands
from lexiscope.precompute.live.by_words.seeds import NEAR, NEAREST_TO_SEEDS, TOKENS_OF_HEAD, Query, SeedSearch
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.proposals import proposals
from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.live.wire.answers import SeedsAnswer
from lexiscope.precompute.live.wire.asks import SeedsAsk, VectorPlace
from lexiscope.precompute.live.wire.grammar import Term
from lexiscope.precompute.live.words import Words
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import Case, ids
from tests.support.models import tiny_gpt2

EQUATION = {"horse": 1.0, "dog": -0.5, "zebra": 2.0}


def ask(words: dict[str, float], *kinds: str, **options: Any) -> SeedsAsk:
    terms = tuple(Term(word=word, weight=weight) for word, weight in words.items())
    return SeedsAsk(words=terms, kind=kinds or ("ff_value",), **options)


def answer_of(case: Case, question: SeedsAsk) -> SeedsAnswer:
    (answer,) = case.engine.seeds([question])
    assert isinstance(answer, dict), answer
    return answer


def embedding(case: Case, side: str) -> Float64:
    return np.asarray((case.model.W_E if side == "reads" else case.model.W_U).numpy(), np.float64)


def vectors(case: Case, kind: str) -> Float64:
    """All vectors of a kind, layer after layer, (n_layers * count, d_model)."""
    layers = range(case.engine.shape.n_layers)
    return np.concatenate([case.model.vectors(layer, kind).numpy() for layer in layers]).astype(np.float64)


def terms_of(W: Float64, case: Case, words: dict[str, float], lens: str) -> Float64:
    tokens = [list(find_seed(case.engine.words.tokenizer, word).tokens) for word in words]
    terms = np.stack([W[each].mean(axis=0) - W.mean(axis=0) for each in tokens])
    return terms / np.linalg.norm(terms, axis=1, keepdims=True) if lens == "cosine" else terms


def average(terms: Float64) -> Float64:
    """The average of the words of EQUATION."""
    weights = np.array(list(EQUATION.values()))
    return np.asarray(weights @ terms / np.abs(weights).sum())


def unit(q: Float64) -> Float64:
    return np.asarray(q / np.linalg.norm(q))


def fits(W: Float64, V: Float64, q: Float64, lens: str, widen: int) -> Float64:
    """Compute the fits of vectors V with the average q of some words by all their scores; NaN where these are equal."""
    centred = W - W.mean(axis=0)
    directions = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    if widen:
        near = np.argsort(-(directions @ q), kind="stable")[:20]
        q = unit(q) / 2 + unit((directions if lens == "cosine" else centred)[near].mean(axis=0)) / 2
    spread = (V @ W.T).std(axis=1)
    return np.asarray(V @ q / np.where(spread > 1e-9, spread, np.nan))


def numbers_of(case: Case, kind: str, lens: str, widen: int) -> dict[str, Float64]:
    """Return what an answer says of each vector of a kind, for the words of EQUATION."""
    W, V = embedding(case, SIDES[kind]), vectors(case, kind)
    terms, lengths = terms_of(W, case, EQUATION, lens), np.linalg.norm(V, axis=1)
    q, seen = average(terms), V / lengths[:, None] if lens == "cosine" else V
    found = {"fit": fits(W, V, q, lens, widen), "score": seen @ q, "scores": seen @ terms.T}
    return found | {"cosine": V @ q / lengths / np.linalg.norm(q)}


@pytest.mark.parametrize(("rank", "widen"), [("score", 1), ("fit", 0), ("fit", 1)])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize("kinds", [(), ("vo_out", "ff_key", "w_o"), ("w_o", "w_q", "w_k", "w_v", "qk_key", "w_q")])
@pytest.mark.parametrize("n", [1, 20, 1000])
def test_ranking_equals_brute_force(
    case: Case, kinds: tuple[str, ...], n: int, lens: str, rank: str, widen: int
) -> None:
    words = tuple(Term(word=word, weight=weight) for word, weight in EQUATION.items())
    asked = {"words": words, "kind": kinds, "k": n, "lens": lens, "rank": rank, "widen": widen}
    answer = answer_of(case, SeedsAsk.model_validate(asked))
    every: list[dict[str, Any]] = []
    for kind in dict.fromkeys(kinds or (("ff_key", "ff_value") if rank == "fit" else ("ff_value",))):
        count, numbers = case.engine.shape.count(kind), numbers_of(case, kind, lens, widen)
        for row in range(len(numbers["fit"])):
            place = {"kind": kind, "layer": row // count, "index": row % count}
            every.append(place | {name: of_kind[row] for name, of_kind in numbers.items()})
    place_of = itemgetter("kind", "layer", "index")
    every.sort(key=lambda row: (-row[rank], *place_of(row)))
    assert [place_of(result) for result in answer["results"]] == [place_of(row) for row in every[:n]]
    for name in ("fit", "score", "cosine", "scores"):
        found: Any = [dict(result)[name] for result in answer["results"]]
        np.testing.assert_allclose(found, [row[name] for row in every[:n]], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(("rank", "widen"), [("score", 1), ("fit", 0), ("fit", 1)])
@pytest.mark.parametrize(
    ("kind", "lens"), [("ff_value", "cosine"), ("w_q", "dot"), ("w_q", "cosine"), ("ff_key", "dot")]
)
def test_the_rank_of_any_vector_equals_brute_force(case: Case, kind: str, lens: str, rank: str, widen: int) -> None:
    order = np.argsort(-numbers_of(case, kind, lens, widen)[rank], kind="stable").tolist()
    for at in (1, 2, len(order) // 2, len(order)):
        layer, index = divmod(order[at - 1], case.engine.shape.count(kind))
        place = VectorPlace(kind=kind, layer=layer, index=index)
        question = ask(EQUATION, kind, "w_o", k=1, lens=lens, rank=rank, widen=widen, rank_of=place)
        assert answer_of(case, question)["rank"] == at


@pytest.mark.parametrize("rank", ["score", "fit"])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize("source", ["first", "pseudo"])
def test_words_of_another_vocabulary(case: Case, source: str, lens: str, rank: str) -> None:
    """Everything is as if that vocabulary were the embedding, but for what lists and heads are compared with."""
    found = {"widen": 1, "lens": lens, "rank": rank, "k": 40}
    plain = ask(EQUATION, "ff_key", "w_o", heads=1, **found)
    answers = case.engine.seeds([plain, ask(EQUATION, "ff_key", "w_o", heads=1, source=source, **found)])
    raw, answer = (each for each in answers if isinstance(each, dict))
    assert raw["results"] != answer["results"]
    assert raw["heads"] == answer["heads"]
    every: dict[tuple[str, int], float] = {}
    for kind in ("ff_key", "w_o"):
        inverse = np.linalg.pinv(embedding(case, SIDES[kind])).T
        W: Any = inverse if source == "pseudo" else case.net.after_first_block().double().numpy()
        V, q = vectors(case, kind), average(terms_of(W, case, EQUATION, lens))
        lengths = np.linalg.norm(V, axis=1) if lens == "cosine" else 1
        of_kind = fits(W, V, q, lens, widen=1) if rank == "fit" else V @ q / lengths
        every |= {(kind, at): number for at, number in enumerate(of_kind.tolist())}
    best = sorted(every.values(), reverse=True)[:40]
    near = 1e-4 * max(map(abs, best))  # transformers, and rows of E⁺ here, are float32
    count = case.engine.shape.count
    own = [every[each["kind"], each["layer"] * count(each["kind"]) + each["index"]] for each in answer["results"]]
    for expected in (best, own):
        numbers = [each["fit"] if rank == "fit" else each["score"] for each in answer["results"]]
        np.testing.assert_allclose(np.array(numbers, float), expected, atol=near)


@pytest.mark.parametrize("widen", [0, 1])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_what_random_words_reach(case: Case, lens: str, widen: int) -> None:
    """95 % of the best fits of 200 draws, each computed by itself."""
    answer = answer_of(case, ask(EQUATION, "ff_key", "ff_value", rank="fit", lens=lens, widen=widen))
    word_tokens = case.engine._word_tokens
    used = [max(ids(term["tokens"])) for term in answer["terms"]]
    bands = sorted(zip(frequency_bands(word_tokens, used), EQUATION.values(), strict=True))
    weights = np.array([weight for _, weight in bands])
    best = []
    for drawn in draw_words(word_tokens, [band for band, _ in bands], 200):
        of_draw = []
        for kind in ("ff_key", "ff_value"):
            W, V = embedding(case, SIDES[kind]), vectors(case, kind)
            terms = W[drawn] - W.mean(axis=0)
            if lens == "cosine":
                terms /= np.linalg.norm(terms, axis=1, keepdims=True)
            of_draw.append(fits(W, V, weights @ terms / np.abs(weights).sum(), lens, widen).max())
        best.append(max(of_draw))
    assert answer["chance"] == pytest.approx(np.quantile(best, 0.95), rel=1e-4)
    assert answer_of(case, ask(EQUATION, rank="score", lens=lens))["chance"] is None


def test_tokens_near_to_the_words_for_either_side(case: Case) -> None:
    answer = answer_of(case, ask(EQUATION, "ff_key", "ff_value"))
    assert answer["near"].keys() == {"reads", "writes"}
    for side, near in answer["near"].items():
        W = embedding(case, side)
        q, centred = average(terms_of(W, case, EQUATION, "dot")), W - W.mean(axis=0)
        cosines = centred @ q / np.linalg.norm(centred, axis=1) / np.linalg.norm(q)
        assert near == np.argsort(-cosines, kind="stable")[:NEAR].tolist()
        if side == "reads":
            assert [token["id"] for token in answer["nearest"]] == near[:NEAREST_TO_SEEDS]
            scores = [token["score"] for token in answer["nearest"]]
            np.testing.assert_allclose(scores, cosines[near[:NEAREST_TO_SEEDS]], atol=1e-9)


@torch.inference_mode()
def test_zero_constant_and_equal_vectors(tmp_path: Path) -> None:
    """All tokens have the same number in dimension 0: a vector that reads nothing else scores them all alike."""
    engine = Engine.load(Checkpoint.open(tiny_gpt2(tmp_path)), "cpu")
    w, kind = engine.parameters, "ff_value"
    w.W_E[:, 0] = 1
    values = w.vectors(kind, 1)
    values[2], values[5] = 0, 0
    values[5, 0], values[7] = 3, values[9]
    search = SeedSearch(w, Words.of(w, engine.words.tokenizer), lambda: np.arange(30, 60))
    everything: dict[str, Any] = {"words": (Term(word="dog"),), "kind": (kind,), "k": 1000}
    asks = [
        SeedsAsk(**everything, rank=rank, rank_of=VectorPlace(kind=kind, layer=1, index=index))
        for rank, index in (("fit", 2), ("fit", 5), ("fit", 9), ("score", 2))
    ]
    zero, constant, equal, by_score = search.answers(asks)
    assert not any(isinstance(answer, LexiscopeError) for answer in (zero, constant, equal, by_score))
    rows = [(r["layer"], r["index"]) for r in zero["results"]]  # type: ignore[index]
    count = w.shape.n_layers * w.shape.d_mlp
    assert len(rows) == count - 2
    assert {(1, 2), (1, 5)}.isdisjoint(rows)
    assert rows.index((1, 9)) == rows.index((1, 7)) + 1
    assert equal["rank"] == rows.index((1, 9)) + 1  # type: ignore[index]
    assert (zero["rank"], constant["rank"]) == (count - 1, count)  # type: ignore[index]
    of_score = {(r["layer"], r["index"]): r for r in by_score["results"]}  # type: ignore[index]
    assert len(of_score) == count
    assert (of_score[1, 2]["fit"], of_score[1, 2]["cosine"], of_score[1, 2]["score"]) == (None, None, 0)
    assert of_score[1, 5]["fit"] is None
    assert of_score[1, 5]["cosine"] == pytest.approx(0, abs=1e-7)
    assert "NaN" not in json.dumps([zero, constant, equal, by_score])


def test_a_batch_changes_nothing(case: Case) -> None:
    """Results are equal to the last bit, because float32 products only propose vectors."""
    asks = [
        ask({"dog": 1.0}, "ff_value", k=5),
        ask(EQUATION, "ff_key", "w_o", k=40),
        ask(EQUATION, "ff_key", "ff_value", k=40, lens="cosine"),
        ask(EQUATION, "ff_key", "ff_value", k=40, rank="fit"),
        ask({"lion": 2.0, "Paris": 1.0}, "ff_value", "ff_key", k=17, heads=True),
        *(ask({word: 1.0}, "ff_value") for word in ("week", "France", "river", "years", "Italy", "seas")),
    ]
    together, alone = case.engine.seeds(asks), [answer_of(case, each) for each in asks]
    for one, other in zip(together, alone, strict=True):
        assert isinstance(one, dict)
        assert {**one, "heads": []} == {**other, "heads": []}
        assert [(h["layer"], h["head"]) for h in one["heads"]] == [(h["layer"], h["head"]) for h in other["heads"]]


def test_devices_find_the_same_near_tokens(case: Case) -> None:
    search = case.engine.seed_search
    asks = [ask({word: 1.0}) for word in ("dog", "years", "France", "zebra")]
    queries = [Query(case.engine.words, case.engine.weights, each) for each in asks]
    for each, (_, near) in zip(asks, search.near_by_product(queries, "reads"), strict=True):
        assert {token["id"] for token in answer_of(case, each)["nearest"]} <= set(near.tolist())


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_what_every_head_makes_of_the_average(case: Case, lens: str) -> None:
    answer, s = answer_of(case, ask(EQUATION, heads=True, lens=lens)), case.engine.shape
    q = torch.from_numpy(average(terms_of(embedding(case, "reads"), case, EQUATION, lens)))
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
def test_proposals_hold_all_rows_that_may_be_among_the_largest(size: int, n: int) -> None:
    generator = torch.Generator().manual_seed(size + n)
    true = torch.randn(size, generator=generator)
    error = 0.01 * torch.rand(size, generator=generator)
    scores = true + error * (2 * torch.rand(size, generator=generator) - 1)
    found = set(proposals(scores, error / 4, 4.0, n).tolist())
    assert set(true.topk(min(n, size)).indices.tolist()) <= found
    assert len(found) <= min(n, size) + size // 10


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
