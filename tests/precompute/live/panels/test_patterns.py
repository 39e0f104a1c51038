"""Patterns and messages: the exact ones are the model's own attention, and each convention's lists are what it says."""

from functools import cached_property
from typing import get_args

import pytest
import torch
from torch import Tensor

from lexiscope.precompute.live.panels.head_vectors import exactly_sought, messages, sought
from lexiscope.precompute.live.panels.token_rows import TokenRows
from lexiscope.precompute.live.wire.answers import HeadPattern, Look, ScoredToken, TokenPattern
from lexiscope.precompute.live.wire.asks import Convention, PatternRows
from lexiscope.precompute.live.wire.fields import Lens
from tests.precompute.live.reference import TEXT, Case, close, ids

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
LENSES: tuple[Lens, ...] = get_args(Lens)


def states(case: Case, layer: int) -> Tensor:
    """What the layer's attention reads."""
    return case.run(case.engine.words.prompt(TEXT)).reads[layer]


@pytest.mark.parametrize("kind", ["w_q", "w_k"])
@pytest.mark.parametrize("layer", [0, 1])
def test_exact_patterns_give_the_models_attention(case: Case, layer: int, kind: str) -> None:
    """From either side: what queries look for, and what keys are found by."""
    w, x = case.engine.weights, states(case, layer)
    run, T, heads = case.run(case.engine.words.prompt(TEXT)), len(x), range(w.shape.n_heads)
    scores = torch.empty(w.shape.n_heads, T, T)  # of every position of that kind, with every other
    for other in range(T):
        there = torch.full((w.shape.n_heads, T), other)
        vectors, constants = exactly_sought(w, layer, kind, x, heads, torch.arange(T), there, run.rotations[layer])
        scores[:, :, other] = vectors @ x[other] + constants
    by_query = scores if kind == "w_q" else scores.transpose(1, 2)
    unseen = torch.ones(T, T, dtype=torch.bool).triu(1) if w.shape.causal else torch.zeros(T, T, dtype=torch.bool)
    close(by_query.masked_fill(unseen, -torch.inf).softmax(dim=2), run.attentions[layer])


@pytest.mark.parametrize("layer", [0, 1])
def test_messages_and_weights_sum_to_the_attentions_output(every: Case, layer: int) -> None:
    w, x = every.engine.weights, states(every, layer)
    run = every.run(every.engine.words.prompt(TEXT))
    sent = messages(w, layer, x, range(w.shape.n_heads), biased=True)  # (n_heads, T, d_model)
    total = torch.einsum("hij,hjd->id", run.attentions[layer], sent)
    bias = w.bias("w_o", layer)
    close(total if bias is None else total + bias, run.attended[layer])


def test_plain_patterns_and_messages_are_products_of_the_heads_matrices(every: Case) -> None:
    w, x, heads = every.engine.weights, states(every, 1), [2, 0]
    W_Q, W_K = (factor[heads] for factor in every.model.factors(1, "qk"))
    W_V, W_O = (factor[heads] for factor in every.model.factors(1, "vo"))
    close(sought(w, 1, "w_q", x, heads), torch.einsum("nd,hdk,hke->hne", x, W_Q, W_K))
    close(sought(w, 1, "w_k", x, heads), torch.einsum("nd,hkd,hek->hne", x, W_K, W_Q))
    close(messages(w, 1, x, heads, biased=False), torch.einsum("nd,hdk,hke->hne", x, W_V, W_O))


def under(lens: Lens, rows: Tensor) -> Tensor:
    """What vectors are multiplied with, one row for each token."""
    if lens == "dot":
        return rows
    centred = rows.double() - rows.double().mean(dim=0)
    lengths: Tensor = torch.linalg.vector_norm(centred, dim=1, keepdim=True)
    return (centred / lengths).float()


@pytest.mark.parametrize("lens", LENSES)
def test_products_with_tokens(every: Case, lens: Lens) -> None:
    w = every.engine.weights
    vectors = torch.randn(3, w.shape.d_model, generator=torch.Generator().manual_seed(1))
    for W in (w.W_E, w.W_U):
        close(TokenRows.of(w, W).plain(lens)(vectors), vectors @ under(lens, W).T)
        normed = every.net.norm("attention", 1)(W * every.net.embedding_scale)
        found = TokenRows.of(w, W).normed(w.norm_numbers("attention", 1), lens)(vectors)
        close(found, vectors @ under(lens, normed).T)


class Expected:
    """The scores of all tokens at layer 1, by what patterns.py says, from vectors and `transformers`."""

    def __init__(self, case: Case, tokens: tuple[int, ...], convention: Convention, lens: Lens) -> None:
        self.case, self.convention, self.lens = case, convention, lens
        self.w, self.net, self.run = case.engine.weights, case.net, case.run(tokens)
        self.x, self.attention = self.run.reads[1], self.run.attentions[1]
        self.embeddings = self.net.norm("attention", 1)(self.w.W_E * self.net.embedding_scale)

    @cached_property
    def read(self) -> Tensor:
        """What patterns are multiplied with."""
        return under(self.lens, self.w.W_E if self.convention == "final" else self.embeddings)

    @cached_property
    def written(self) -> Tensor:
        """What messages are multiplied with."""
        plain = self.convention != "vocabulary"
        return under(
            self.lens, self.w.W_U if plain else self.net.norm("attention", 1)(self.w.W_U * self.net.embedding_scale)
        )

    def sought(self, kind: str, head: int, position: int, there: int) -> Tensor:
        """(d_vocab,) of a pattern (w_q) or what would find the position (w_k), for tokens that stand there."""
        if self.convention == "exact":
            if self.lens == "cosine":
                return self.exact_cosines(kind, head, position, there)
            return self.scores(kind, head, position, there, self.embeddings)
        W_Q, W_K = (factor[head] for factor in self.case.model.factors(1, "qk"))
        vector = self.x[position] @ (W_Q @ W_K if kind == "w_q" else (W_Q @ W_K).T)
        if self.convention == "vocabulary":
            return self.read @ vector
        normed: Tensor = self.net.norm("final")(vector)
        return self.read @ normed

    def scores(self, kind: str, head: int, position: int, there: int, tokens: Tensor) -> Tensor:
        """Attention scores between the position and states (n, d_model) that stand there."""
        mine, mine_at = self.x[position][None], torch.tensor([position])
        theirs_at = torch.tensor([there]).expand(len(tokens))
        query, at, key, to = (mine, mine_at, tokens, theirs_at) if kind == "w_q" else (tokens, theirs_at, mine, mine_at)
        return self.net.scores(self.case.model, 1, query, at, key, to, self.run)[head].flatten()

    def exact_cosines(self, kind: str, head: int, position: int, there: int) -> Tensor:
        """The scores are linear in the state of the token, but for norms in heads and soft caps: so is what is left."""
        vectors, _ = exactly_sought(
            self.w, 1, kind, self.x[position][None], [head], torch.tensor([position]), torch.tensor([[there]]),
            self.run.rotations[1],
        )  # fmt: skip
        vector = vectors[0, 0]
        if self.w.head_norm("w_q", 1) is None and self.net.soft_cap is None:  # against the model itself
            steps = torch.eye(len(vector)) + self.embeddings[7]
            one_by_one = self.scores(kind, head, position, there, steps)
            close(one_by_one - self.scores(kind, head, position, there, self.embeddings[7:8]), vector, 1e-3)
        return self.read @ vector

    def sent(self, head: int, position: int) -> Tensor:
        exact = self.convention == "exact"
        message = messages(self.w, 1, self.x[position][None], [head], biased=exact)[0, 0]
        normed: Tensor = self.net.norm("final")(message) if self.convention == "final" else message
        return self.written @ normed

    def found_from(self, head: int, position: int) -> Look | None:
        column = self.attention[head, :, position]
        others = [at for at in range(len(column)) if (at > position if self.w.shape.causal else at != position)]
        if not others:
            return None
        best = max(others, key=lambda at: float(column[at]))
        return Look(position=best, weight=float(column[best]))

    def check(self, found: HeadPattern | TokenPattern, head: int, position: int) -> None:
        looks_at = int(self.attention[head, position].argmax())
        assert_first(found["pattern"], self.sought("w_q", head, position, looks_at))
        expected, there = self.found_from(head, position), position
        assert (found["found_from"] is None) == (expected is None)
        if found["found_from"] and expected:
            assert found["found_from"]["position"] == expected["position"]
            assert found["found_from"]["weight"] == pytest.approx(expected["weight"], abs=1e-5)
            there = expected["position"]
        assert_first(found["found_by"], self.sought("w_k", head, position, there))
        assert_first(found["message"], self.sent(head, position))


def assert_first(found: list[ScoredToken], scores: Tensor) -> None:
    best = scores.topk(len(found))
    assert [token["id"] for token in found] == best.indices.tolist()
    close(torch.tensor([token["score"] for token in found]), best.values)


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("position", [1, -1])
def test_every_head_at_a_position(every: Case, convention: Convention, lens: Lens, position: int) -> None:
    tokens = every.engine.words.prompt(TEXT)
    position %= len(tokens)
    answer = every.ask(panel=("patterns",), layer=1, position=position, convention=convention, lens=lens, k=4)
    expected = Expected(every, tokens, convention, lens)
    seen = position + 1 if every.engine.shape.causal else len(tokens)
    assert [pattern["head"] for pattern in answer["patterns"] or ()] == list(range(every.engine.shape.n_heads))
    assert "patterns_by_token" not in answer
    for found in answer["patterns"] or ():
        expected.check(found, found["head"], position)
        picked = expected.attention[found["head"], position, :seen].topk(min(3, seen))
        assert [message["position"] for message in found["messages"]] == picked.indices.tolist()
        close(torch.tensor([message["weight"] for message in found["messages"]]), picked.values)
        for message in found["messages"]:
            assert_first(message["tokens"], expected.sent(found["head"], message["position"]))


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_token_at_a_head(every: Case, convention: Convention, lens: Lens) -> None:
    check_every_token(every, TEXT, convention, lens)


def check_every_token(case: Case, text: str, convention: Convention, lens: Lens) -> None:
    """A table of the text: the same lists as of all heads at each position."""
    how = {"convention": convention, "lens": lens, "k": 3}
    answer = case.ask(text, panel=("patterns",), layer=1, head=2, rows="tokens", **how)
    assert "patterns" not in answer
    expected = Expected(case, ids(answer["tokens"]), convention, lens)
    assert [found["position"] for found in answer["patterns_by_token"] or ()] == list(range(len(answer["tokens"])))
    for found in answer["patterns_by_token"] or ():
        expected.check(found, 2, found["position"])
        weight, at = expected.attention[2, found["position"]].max(dim=0)
        assert found["looks_at"]["position"] == int(at)
        assert found["looks_at"]["weight"] == pytest.approx(float(weight), abs=1e-5)


def test_a_single_token(case: Case) -> None:
    """Nobody else looks at it. Head 0 is shown where none is named."""
    rows: tuple[PatternRows, ...] = get_args(PatternRows)
    answers = [case.ask("d", panel=("patterns",), layer=1, position=0, rows=of, convention="exact") for of in rows]
    by_head, by_token = (answers[0]["patterns"] or [])[0], (answers[1]["patterns_by_token"] or [])[0]
    assert [token["id"] for token in by_head["pattern"]] == [token["id"] for token in by_token["pattern"]]
    if len(answers[0]["tokens"]) == 1:
        assert by_head["found_from"] is None
    for found in (by_head, by_token):
        Expected(case, ids(answers[0]["tokens"]), "exact", "dot").check(found, 0, 0)


def test_a_head_that_is_asked_about_tells_more(case: Case) -> None:
    """Messages of all positions, in the order of its weights; the other heads as without it."""
    plain, chosen = (case.ask(panel=("patterns",), layer=1, head=head)["patterns"] for head in (None, 2))
    assert plain is not None
    assert chosen is not None
    assert [each for each in chosen if each["head"] != 2] == [each for each in plain if each["head"] != 2]
    assert chosen[2]["messages"][:3] == plain[2]["messages"]
    weights = [message["weight"] for message in chosen[2]["messages"]]
    assert len(weights) == len(case.engine.words.prompt(TEXT))
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
