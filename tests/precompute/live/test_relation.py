"""Pairs to heads: every head's rank of the target against brute force in float64."""

import numpy as np
import pytest

from precompute.errors import NotFound
from precompute.live.faults import Cancelled
from precompute.live.seed_ranking import find_seed
from precompute.live.wire import RelationAsk, WordPair
from tests.precompute.live.reference import Case

PAIRS = (("France", "Paris"), ("Germany", "Berlin"), ("zebra", "writers"), ("dog", "Dog"))


def ask(*pairs: tuple[str, str], lens: str = "dot") -> RelationAsk:
    return RelationAsk.model_validate({"pairs": [{"source": a, "target": b} for a, b in pairs], "lens": lens})


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_ranks_equal_brute_force(case: Case, lens: str) -> None:
    answer = case.engine.relation(ask(*PAIRS, lens=lens))
    tokenizer = case.engine.words.tokenizer
    W_E, W_U = (W.numpy().astype(np.float64) for W in (case.model.W_E, case.model.W_U))
    sources = np.stack([W_E[list(find_seed(tokenizer, source).tokens)].mean(axis=0) for source, _ in PAIRS])
    if lens == "cosine":
        sources = sources - W_E.mean(axis=0)
        sources /= np.linalg.norm(sources, axis=1, keepdims=True)
        W_U = W_U - W_U.mean(axis=0)
        W_U /= np.linalg.norm(W_U, axis=1, keepdims=True)
    targets = [find_seed(tokenizer, target).tokens[0] for _, target in PAIRS]
    s = case.engine.shape
    assert {(h.layer, h.head) for h in answer.heads} == {(x, y) for x in range(s.n_layers) for y in range(s.n_heads)}
    for head in answer.heads:
        left, right = (f[head.head].numpy().astype(np.float64) for f in case.model.factors(head.layer, "vo"))
        scores = sources @ left @ right @ W_U.T  # (pairs, d_vocab)
        own = scores[range(len(PAIRS)), targets]
        np.testing.assert_allclose(head.scores, own, atol=1e-9)
        # a hair's breadth apart: the target itself, whose two computations differ in the last bit
        above, below = ((sign * (scores - own[:, None]) > 1e-12).sum(axis=1) for sign in (1, -1))
        assert list(head.ranks) == (1 + above).tolist()
        assert head.rank == pytest.approx(1 + above.mean())
        assert head.rank_from_bottom == pytest.approx(1 + below.mean())
        assert head.score == pytest.approx(own.mean())
    assert [h.rank for h in answer.heads] == sorted(h.rank for h in answer.heads)


def test_the_tokens_that_were_used(case: Case) -> None:
    (pair,) = case.engine.relation(ask(("zebra", "France"))).pairs
    tokenizer = case.engine.words.tokenizer
    assert tokenizer.decode(list(pair.source_tokens)).strip() == "zebra"
    assert len(pair.source_tokens) > 1
    assert tokenizer.decode(list(pair.target_tokens)).strip().lower() == "france"


def test_no_word_and_nobody_waiting(case: Case) -> None:
    with pytest.raises(NotFound, match="has no tokens"):
        case.engine.relation(RelationAsk(pairs=(WordPair(source="\n", target="dog"),)))
    with pytest.raises(Cancelled):
        case.engine.relation(ask(*PAIRS), cancelled=lambda: True)
