"""Words through heads: what every head looks for and writes, against brute force in float64."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.live.wire.asks import ThroughHeadsAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import Word
from lexiscope.precompute.project.embedding import Float64
from tests.precompute.live.reference import Case, into_heads, source_vectors
from tests.support.brute import lensed, rounded

GROUPS = (("dog",), ("zebra",), ("horse", "lion", "zebra"), ("Paris",))  # zebra is several pieces


def ask(*groups: tuple[str, ...], **fields: Any) -> ThroughHeadsAsk:
    words = tuple(tuple(Word(word=word) for word in group) for group in groups)
    return ThroughHeadsAsk.model_validate({"words": words, "layers": (0,), **fields})


def embeddings(case: Case, lens: str, source: str) -> Float64:
    """(groups, d_model); the mean of words of as many pieces is that of all pieces, and else each word counts once"""
    tokenizer = case.engine.words.tokenizer
    words = [[find_seed(tokenizer, word).tokens for word in group] for group in GROUPS]
    rows = source_vectors(case, [tokens for group in words for tokens in group], "dot", source)
    counts = np.cumsum([len(group) for group in words])[:-1]
    e = np.stack([part.mean(axis=0) for part in np.split(rows, counts)])
    if lens == "cosine":
        e -= source_vectors(case, [range(case.engine.shape.d_vocab)], "dot", source)
        e /= np.linalg.norm(e, axis=1, keepdims=True)
    return e


@pytest.mark.parametrize("source", ["raw", "first", "norm"])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize("end", ["top", "bottom"])
def test_lists_equal_brute_force(case: Case, lens: str, end: str, source: str) -> None:
    s, k = case.engine.shape, 7
    layers = tuple(reversed(range(s.n_layers)))
    answer = case.engine.answer(ask(*GROUPS, layers=layers, lens=lens, end=end, k=k, source=source))
    e = embeddings(case, lens, source)
    tolerance = 1e-6 if source == "raw" else 1e-4  # transformers computes the others in float32
    assert len(answer["heads"]) == len(GROUPS)
    for x, heads in zip(e, answer["heads"], strict=True):
        assert [(h["layer"], h["head"]) for h in heads] == [
            (layer, head) for layer in layers for head in range(s.n_heads)
        ]
        for each in heads:
            given = into_heads(case, x[None], lens, source, each["layer"])[0]
            for found, matrix, W in ((each["writes"], "vo", case.model.W_U), (each["seeks"], "qk", case.model.W_E)):
                left, right = (
                    f[each["head"]].numpy().astype(np.float64) for f in case.model.factors(each["layer"], matrix)
                )
                rows, factor = lensed(W.numpy(), lens)
                scores = rounded(given @ left @ right @ rows.T * factor)  # (d_vocab,)
                order = np.argsort(scores if end == "bottom" else -scores, kind="stable")[:k]
                if source == "raw":
                    assert [token["id"] for token in found] == order.tolist()
                ids = [token["id"] for token in found]
                np.testing.assert_allclose([token["score"] for token in found], scores[ids], tolerance, tolerance)
                np.testing.assert_allclose(scores[ids], scores[order], tolerance, tolerance)


def test_how_alike_the_tokens_of_a_list_are(case: Case) -> None:
    (heads,) = case.engine.answer(ask(("dog",), k=5))["heads"]
    for head in heads:
        for tokens, alike, W in (
            (head["writes"], head["writes_alike"], case.model.W_U),
            (head["seeks"], head["seeks_alike"], case.model.W_E),
        ):  # fmt: skip
            centred = W.numpy().astype(np.float64) - W.numpy().mean(axis=0, dtype=np.float64)
            units = [centred[token["id"]] / np.linalg.norm(centred[token["id"]]) for token in tokens]
            assert alike == pytest.approx(np.mean([a @ b for a, b in combinations(units, 2)]))
    (alone,) = case.engine.answer(ask(("dog",), k=1))["heads"]
    assert {(head["writes_alike"], head["seeks_alike"]) for head in alone} == {(None, None)}


def test_one_head_and_a_token_by_its_id(case: Case) -> None:
    every = case.engine.answer(ask(("dog",), layers=(1,)))
    (dog,) = every["groups"][0]
    named = ThroughHeadsAsk(words=((Word(word="#", token=dog["tokens"][0]["id"]),),), layers=(1,), head=2)
    one = case.engine.answer(named)
    assert one["groups"][0][0]["tokens"] == dog["tokens"]
    assert one["heads"] == [[every["heads"][0][2]]]


def test_what_there_is_not(case: Case) -> None:
    s = case.engine.shape
    for question, said in (
        (ask(("dog",), layers=(0, s.n_layers)), f"layer {s.n_layers} does not exist here: 0 to {s.n_layers - 1} do"),
        (ask(("dog",), head=s.n_heads), f"head {s.n_heads} does not exist here"),
        (ask(("dog", "\n")), "has no tokens"),
        (ThroughHeadsAsk(words=((Word(word="x", token=s.d_vocab),),), layers=(0,)), f"token {s.d_vocab} does not"),
    ):
        with pytest.raises(NotFound, match=said):
            case.engine.answer(question)
    with pytest.raises(Cancelled):
        case.engine.answer(ask(("dog",)), cancelled=lambda: True)


def test_the_mean_of_all_tokens_has_no_direction(case: Case) -> None:
    reads = case.engine.words.reads
    with pytest.raises(BadRequest, match="'it' has no direction"):
        reads.direction(reads.mean, "it")
