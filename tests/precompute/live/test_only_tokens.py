"""Lists of some tokens only: those that brute force gives over all tokens, without the others."""

import json

import numpy as np
import pytest
import torch

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.live.first_tokens import ListEnd, exact_lists, first_tokens
from lexiscope.precompute.live.wire.asks import PairsReadingAsk, ReadingAsk, ThroughHeadsAsk
from lexiscope.precompute.live.wire.fields import End, Lens, Unbuilt, pack_tokens, unpack_tokens
from lexiscope.precompute.live.words import Vocabulary
from tests.precompute.live.reference import Case, ids
from tests.precompute.project.vocabularies import KINDS, vocabulary
from tests.support import brute

D_VOCAB, D_MODEL = 400, 24
ENDS: tuple[tuple[End, int], ...] = (("top", 1), ("bottom", -1))
LENSES: tuple[Lens, ...] = ("dot", "cosine")


def some_tokens(d_vocab: int, share: float) -> brute.Array:
    """A few tokens, none of them the first: (d_vocab,) bool."""
    kept = np.random.default_rng(int(share * 100)).random(d_vocab) < share
    kept[0] = False
    return kept


def first_of(scores: brute.Array, kept: brute.Array, k: int, sign: int = 1) -> list[int]:
    tokens = np.flatnonzero(kept)
    return list(tokens[np.argsort(-sign * scores[tokens], kind="stable")][:k].tolist())


@pytest.mark.parametrize("share", [0.0, 0.005, 0.3, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_vectors(kind: str, share: float) -> None:
    """Zero vectors, ties and rows that are all equal included."""
    E, kept = vocabulary(kind, D_VOCAB, D_MODEL, seed=3), some_tokens(D_VOCAB, share)
    V = np.random.default_rng(4).integers(-3, 4, (4, D_MODEL)).astype(np.float32)
    V[0] = 0
    words = Vocabulary.of(torch.from_numpy(E))
    for lens in LENSES:
        scores = brute.rounded(brute.vector_scores(E, V, lens))
        for end, sign in ENDS:
            for k in (1, 20, D_VOCAB + 1):
                found = exact_lists(words, V.astype(np.float64), lens, k, end, only=kept)
                assert [[token["id"] for token in tokens] for tokens in found] == [
                    first_of(row, kept, k, sign) for row in scores
                ]
                for tokens, row in zip(found, scores, strict=True):
                    assert [token["score"] for token in tokens] == [row[token["id"]] for token in tokens]


@pytest.mark.parametrize("kind", ["ff_key", "ff_value", "w_q", "w_o"])
@pytest.mark.parametrize("lens", LENSES)
def test_a_full_reading(case: Case, kind: str, lens: Lens) -> None:
    W = (case.model.W_U if kind in ("ff_value", "w_o") else case.model.W_E).numpy()
    vector = case.model.vectors(1, kind)[3].numpy()
    scores = brute.rounded(brute.vector_scores(W, vector[None], lens))[0]
    kept = some_tokens(len(W), 0.2)
    for only, flags in ((pack_tokens(kept), kept), (None, np.ones(len(W), bool))):
        ask = ReadingAsk(kind=kind, layer=1, index=3, reading="full", lens=lens, k=40, only=only)
        answer = case.engine.answer(ReadingAsk.model_validate_json(ask.model_dump_json()))
        assert ids(answer["top"]) == tuple(first_of(scores, flags, 40))
        assert ids(answer["bottom"]) == tuple(first_of(scores, flags, 40, -1))


@pytest.mark.parametrize("share", [0.0, 0.004, 0.1])
@pytest.mark.parametrize(("matrix", "lens"), [("vo", "dot"), ("qk", "cosine")])
def test_pairs(every: Case, matrix: str, lens: str, share: float) -> None:
    W_E, W_U = every.model.W_E.numpy(), every.model.W_U.numpy()
    left, right = (part[1].numpy() for part in every.model.factors(1, matrix))
    kept = some_tokens(len(W_E), share)
    scores = brute.rounded(brute.pair_matrix(W_E, W_U if matrix == "vo" else W_E, left, right.T, lens))
    tokens = token_bytes(every.folder / "tokenizer.json", len(W_E))
    ask = {"matrix": matrix, "layer": 1, "head": 1, "reading": "full", "lens": lens, "n": 30}
    for preset, mask in brute.preset_masks(distinct_classes(tokens), whole_words(tokens)).items():
        expected = brute.best_pairs(scores, mask & kept[:, None] & kept, 30)
        asked = PairsReadingAsk.model_validate(ask | {"preset": preset, "only": pack_tokens(kept)})
        found = every.engine.answer(asked)
        for pairs, (of_end, their_scores) in zip((found["top"], found["bottom"]), expected, strict=True):
            np.testing.assert_allclose([pair["score"] for pair in pairs], their_scores, rtol=1e-4, atol=1e-6)
            clear = of_end[np.abs(their_scores - their_scores[-1:].sum()) > 1e-5].tolist()
            assert {tuple(pair) for pair in clear} <= {(pair["from"]["id"], pair["to"]["id"]) for pair in pairs}


def test_evolution_and_patterns_are_filled_up(every: Case) -> None:
    d_vocab = every.engine.shape.d_vocab
    kept = some_tokens(d_vocab, 0.1)
    panels = ("evolution", "patterns")
    whole = every.ask(panel=panels, k=50)
    some = every.ask(panel=panels, k=7, only=pack_tokens(kept))
    assert whole["evolution"] is not None
    assert some["evolution"] is not None
    assert whole["patterns"] is not None
    assert some["patterns"] is not None
    for of_all, row in zip(whole["evolution"], some["evolution"], strict=True):
        is_prediction = row is some["evolution"][-1]
        assert row["answer_rank"] == of_all["answer_rank"]
        np.testing.assert_allclose(row["answer"], of_all["answer"], rtol=1e-4)
        for every_token, cell in zip(of_all["cells"], row["cells"], strict=True):
            assert len(cell) == 7
            first = [token for token in every_token if is_prediction or kept[token["id"]]][:7]
            assert ids(cell)[: len(first)] == ids(first)
            assert is_prediction or all(kept[token["id"]] for token in cell)
    for of_head, head in zip(whole["patterns"], some["patterns"], strict=True):
        for every_token, tokens in (
            (of_head["pattern"], head["pattern"]), (of_head["found_by"], head["found_by"]),
            (of_head["message"], head["message"]),
        ):  # fmt: skip
            assert len(tokens) == 7
            listed = tuple(token["id"] for token in every_token if kept[token["id"]])[:7]
            assert ids(tokens)[: len(listed)] == listed
            assert all(kept[token["id"]] for token in tokens)
    assert every.ask(panel=panels, only=pack_tokens(np.zeros(d_vocab, bool)))["patterns"]


def test_lists_of_layers_that_are_not_built_and_of_heads(case: Case) -> None:
    w, words, d_vocab = case.engine.weights, case.engine.words, case.engine.shape.d_vocab
    kept = some_tokens(d_vocab, 0.3)
    only = pack_tokens(kept)
    unbuilt = Unbuilt(layers=frozenset({1}), lens="dot", only=only)
    (found,) = first_tokens(w.vectors, words.reads, words.writes, unbuilt, [ListEnd("ff_key", 1, 2)])
    scores = brute.rounded(
        brute.vector_scores(case.model.W_E.numpy(), case.model.vectors(1, "ff_key")[2:3].numpy(), "dot")
    )
    assert found["tokens"] == first_of(scores[0], kept, 25)
    ask = {"words": [[{"word": "dog"}]], "layers": [1], "k": 50}
    all_heads = case.engine.answer(ThroughHeadsAsk.model_validate_json(json.dumps(ask)))
    asked = ThroughHeadsAsk.model_validate_json(json.dumps(ask | {"k": 5})).model_copy(update={"only": only})
    some_heads = case.engine.answer(asked)
    for of_all, head in zip(all_heads["heads"][0], some_heads["heads"][0], strict=True):
        first = [token for token in of_all["writes"] if kept[token["id"]]][:5]
        assert ids(head["writes"])[: len(first)] == ids(first)
        assert len(head["writes"]) == 5


def test_tokens_of_another_vocabulary_are_refused(case: Case) -> None:
    d_vocab = case.engine.shape.d_vocab
    kept = some_tokens(d_vocab, 0.5)
    np.testing.assert_array_equal(unpack_tokens(pack_tokens(kept), d_vocab), kept)
    for wrong in (b"", bytes(d_vocab), pack_tokens(kept)[:-1]):
        with pytest.raises(BadRequest, match="only has"):
            case.engine.answer(ReadingAsk(kind="ff_key", layer=0, index=0, reading="full", only=wrong))
