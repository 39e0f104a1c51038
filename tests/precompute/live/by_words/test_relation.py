"""Pairs to heads: every head's rank of the target, and of what baselines put in its place, against brute force."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.by_words.chance import chance_of_sum, expected_heads
from lexiscope.precompute.live.by_words.relation import RANDOM_WORDS, SHUFFLES
from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.live.vocabulary import count_around
from lexiscope.precompute.live.wire.asks import RelationAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import WordPair
from lexiscope.precompute.project.embedding import Float64
from tests.precompute.live.reference import Case, ids, into_heads, source_vectors

PAIRS = (("France", "Paris"), ("Germany", "Berlin"), ("zebra", "writers"), ("dog", "Dog"))
WORDS = [
    "France",
    "Paris",
    "dog",
    "lion",
    "horse",
    "Germany",
    "Berlin",
    "week",
    "years",
    "river",
    "Italy",
    "Rome",
    "seas",
]


def ask(*pairs: tuple[str, str], lens: str = "dot", matrix: str = "vo", source: str = "raw") -> RelationAsk:
    asked = [{"source": a, "target": b} for a, b in pairs]
    return RelationAsk.model_validate({"pairs": asked, "lens": lens, "matrix": matrix, "source": source})


def scores_of(case: Case, sources: list[str], lens: str, matrix: str, source: str = "raw") -> NDArray[np.float64]:
    """(n_layers, n_heads, sources, d_vocab)"""
    W_E, W_U = (W.numpy().astype(np.float64) for W in (case.model.W_E, case.model.W_U))
    to = W_U if matrix == "vo" else W_E
    tokens = [list(find_seed(case.engine.words.tokenizer, source).tokens) for source in sources]
    x = source_vectors(case, tokens, lens, source)
    if lens == "cosine":
        to = to - to.mean(axis=0)
        to /= np.linalg.norm(to, axis=1, keepdims=True)

    def through(layer: int, head: int) -> Float64:
        left, right = (f[head].numpy().astype(np.float64) for f in case.model.factors(layer, matrix))
        return np.asarray(into_heads(case, x, lens, source, layer) @ left @ right @ to.T)

    s = case.engine.shape
    return np.array([[through(layer, head) for head in range(s.n_heads)] for layer in range(s.n_layers)])


def ranks_of(scores: Float64, token: int) -> tuple[int, int]:
    """From the top and from the bottom. A hair's breadth apart: two computations differ in the last bit."""
    return tuple(1 + int((sign * (scores - scores[token]) > 1e-12).sum()) for sign in (1, -1))  # type: ignore[return-value]


def first_token(case: Case, word: str) -> int:
    return find_seed(case.engine.words.tokenizer, word).tokens[0]


@pytest.mark.parametrize("source", ["first", "norm"])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_words_after_the_first_block_or_the_norm(every: Case, lens: str, source: str) -> None:
    answer = every.engine.answer(ask(*PAIRS, lens=lens, source=source))
    scores = scores_of(every, [word for word, _ in PAIRS], lens, "vo", source)
    targets = [first_token(every, target) for _, target in PAIRS]
    for head in answer["heads"]:
        expected = scores[head["layer"], head["head"], range(len(PAIRS)), targets]
        np.testing.assert_allclose(head["scores"], expected, rtol=1e-4, atol=1e-5)
        ranks = [
            ranks_of(row, target)[0] for row, target in zip(scores[head["layer"], head["head"]], targets, strict=True)
        ]
        assert np.abs(np.subtract(head["ranks"], ranks)).max() <= 1  # the net computes in float32
    assert ask(*PAIRS) == ask(*PAIRS, source="raw")


@pytest.mark.parametrize("matrix", ["vo", "qk"])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_ranks_equal_brute_force(case: Case, lens: str, matrix: str) -> None:
    answer = case.engine.answer(ask(*PAIRS, lens=lens, matrix=matrix))
    every = scores_of(case, [source for source, _ in PAIRS], lens, matrix)
    targets = [first_token(case, target) for _, target in PAIRS]
    themselves = [first_token(case, source) for source, _ in PAIRS]
    s = case.engine.shape
    assert {(h["layer"], h["head"]) for h in answer["heads"]} == {
        (x, y) for x in range(s.n_layers) for y in range(s.n_heads)
    }
    assert answer["shuffled_with"] == "pairs"
    for head in answer["heads"]:
        scores = every[head["layer"], head["head"]]  # (pairs, d_vocab)
        np.testing.assert_allclose(head["scores"], scores[range(len(PAIRS)), targets], atol=1e-9)
        assert head["score"] == pytest.approx(np.mean(head["scores"]))
        own = [ranks_of(row, target) for row, target in zip(scores, targets, strict=True)]
        assert head["ranks"] == [top for top, _ in own]
        assert (head["rank"], head["rank_from_bottom"]) == pytest.approx(np.mean(own, axis=0))
        copied = [ranks_of(row, token) for row, token in zip(scores, themselves, strict=True)]
        assert (head["identity"], head["identity_from_bottom"]) == pytest.approx(np.mean(copied, axis=0))
        others = [
            [ranks_of(row, other) for other in targets if other != target]
            for row, target in zip(scores, targets, strict=True)
        ]
        expected = np.mean([np.mean(each, axis=0) for each in others], axis=0)
        assert (head["shuffled"], head["shuffled_from_bottom"]) == pytest.approx(expected)
    assert [h["rank"] for h in answer["heads"]] == sorted(h["rank"] for h in answer["heads"])


def test_of_many_pairs_only_the_next_targets_are_shuffled_in(case: Case) -> None:
    pairs = [(source, target) for source, target in pairwise(WORDS)]
    assert len(pairs) > SHUFFLES + 1
    answer = case.engine.answer(ask(*pairs))
    targets = [first_token(case, target) for _, target in pairs]
    every = scores_of(case, [source for source, _ in pairs], "dot", "vo")
    head = answer["heads"][3]
    shuffled = []
    for at, row in enumerate(every[head["layer"], head["head"]]):
        others = [token for token in (targets[at + 1 :] + targets[:at]) if token != targets[at]][:SHUFFLES]
        shuffled.append(np.mean([ranks_of(row, token)[0] for token in others]))
    assert head["shuffled"] == pytest.approx(np.mean(shuffled))


@pytest.mark.parametrize("pairs", [[("dog", "lion")], [("dog", "lion"), ("horse", "lion")]])
def test_without_another_target_random_words_take_its_place(case: Case, pairs: list[tuple[str, str]]) -> None:
    """Always the same ones, so that an answer is the same tomorrow; and not those of the pairs."""
    answer = case.engine.answer(ask(*pairs))
    assert answer["shuffled_with"] == "words"
    assert answer == case.engine.answer(ask(*pairs))
    d_vocab = case.engine.shape.d_vocab
    assert 0.2 * d_vocab < np.mean([head["shuffled"] for head in answer["heads"]]) < 0.8 * d_vocab
    for head in answer["heads"]:
        n = head["shuffled"] * len(pairs) * RANDOM_WORDS  # a sum of so many ranks
        assert n == pytest.approx(round(n))


@pytest.mark.parametrize(("n", "d_vocab"), [(1, 7), (2, 5), (3, 4), (4, 3)])
def test_chance_is_the_share_of_all_ways_in_which_ranks_can_come_out(n: int, d_vocab: int) -> None:
    sums = np.array([sum(ranks) for ranks in product(range(1, d_vocab + 1), repeat=n)])
    for total in range(n, n * d_vocab + 1):
        assert chance_of_sum(total, n, d_vocab) == pytest.approx((sums <= total).mean())


def test_chance_of_many_pairs_and_tokens() -> None:
    assert expected_heads([24577] * 64, 49152, 270) == pytest.approx(135, abs=3)  # the mean is in the middle
    assert expected_heads([491], 49152, 270) == pytest.approx(270 * 491 / 49152)
    assert 0 < expected_heads([1] * 64, 49152, 270) < 1e-250
    assert expected_heads([49152] * 3, 49152, 270) == 270


def test_counts_around_scores() -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randint(-20, 20, (9, 333), generator=generator).float()
    centres = torch.randint(-20, 20, (9, 4), generator=generator).double()
    above, within, several = count_around(scores, centres - 0.5, centres + 1.5)
    expected = (scores[:, None] >= centres[:, :, None] - 0.5) & (scores[:, None] <= centres[:, :, None] + 1.5)
    assert above.equal((scores[:, None] > centres[:, :, None] + 1.5).sum(dim=2))
    assert within.equal(expected.sum(dim=2))
    assert several.equal(torch.nonzero(expected & (within > 1)[:, :, None]))


def test_the_tokens_that_were_used(case: Case) -> None:
    (pair,) = case.engine.answer(ask(("zebra", "France")))["pairs"]
    tokenizer = case.engine.words.tokenizer
    assert tokenizer.decode(ids(pair["source"]["tokens"])).strip() == "zebra"
    assert len(pair["source"]["tokens"]) > 1
    assert tokenizer.decode(ids(pair["target"]["tokens"])).strip().lower() == "france"


def test_no_word_and_nobody_waiting(case: Case) -> None:
    with pytest.raises(NotFound, match="has no tokens"):
        case.engine.answer(RelationAsk(pairs=(WordPair(source="\n", target="dog"),)))
    with pytest.raises(Cancelled):
        case.engine.answer(ask(*PAIRS), cancelled=lambda: True)
