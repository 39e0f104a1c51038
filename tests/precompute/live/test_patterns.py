"""Patterns and messages: the exact ones are the model's own attention, and each convention's lists are what it says."""

import pytest
import torch
from torch import Tensor

from precompute.live.patterns import NormedVocabulary, exact_pattern, messages_of, pattern_of
from precompute.live.wire import Convention, Scored
from tests.precompute.live.reference import TEXT, Case, close


def states(case: Case, layer: int) -> Tensor:
    """What the layer's attention reads."""
    return case.run(case.engine.words.prompt(TEXT)).reads[layer]


@pytest.mark.parametrize("layer", [0, 1])
def test_exact_patterns_give_the_models_attention(case: Case, layer: int) -> None:
    w, x = case.engine.weights, states(case, layer)
    run = case.run(case.engine.words.prompt(TEXT))
    for position in range(len(x)):
        seen = position + 1 if w.shape.causal else len(x)
        scores = torch.empty(w.shape.n_heads, seen)
        for j in range(seen):
            at = torch.full((w.shape.n_heads,), j)
            pattern, constant = exact_pattern(w, layer, x[position], position, at, run.rotations[layer])
            scores[:, j] = pattern @ x[j] + constant
        close(scores.softmax(dim=1), run.attentions[layer][:, position, :seen])


@pytest.mark.parametrize("layer", [0, 1])
def test_messages_and_weights_sum_to_the_attentions_output(every: Case, layer: int) -> None:
    w, x = every.engine.weights, states(every, layer)
    run = every.run(every.engine.words.prompt(TEXT))
    messages = messages_of(w, layer, x, biased=True)  # (n_heads, T, d_model)
    total = torch.einsum("hij,hjd->id", run.attentions[layer], messages)
    bias = w.bias("w_o", layer)
    close(total if bias is None else total + bias, run.attended[layer])


def test_plain_patterns_and_messages_are_products_of_the_heads_matrices(every: Case) -> None:
    w, x = every.engine.weights, states(every, 1)
    W_Q, W_K = every.model.factors(1, "qk")
    W_V, W_O = every.model.factors(1, "vo")
    close(pattern_of(w, 1, x[2]), torch.einsum("d,hdk,hke->he", x[2], W_Q, W_K))
    close(messages_of(w, 1, x, biased=False), torch.einsum("nd,hdk,hke->hne", x, W_V, W_O))


def test_products_with_a_normed_vocabulary(every: Case) -> None:
    w = every.engine.weights
    vectors = torch.randn(3, w.shape.d_model, generator=torch.Generator().manual_seed(1))
    for W in (w.W_E, w.W_U):
        expected = vectors @ every.net.norm("attention", 1)(W * every.net.embedding_scale).T
        close(NormedVocabulary.of(w, W).products(w, 1, vectors), expected)


@pytest.mark.parametrize("convention", ["final", "vocabulary", "exact"])
@pytest.mark.parametrize("position", [1, 6])
def test_lists_of_each_convention(every: Case, convention: Convention, position: int) -> None:
    answer = every.ask(panels={"patterns"}, layer=1, position=position, convention=convention, k=4)
    w, x, run, net = every.engine.weights, states(every, 1), every.run(answer.tokens), every.net
    final, seen = net.norm("final"), position + 1 if w.shape.causal else len(x)
    embeddings, unembeddings = (net.norm("attention", 1)(W * net.embedding_scale) for W in (w.W_E, w.W_U))
    assert [pattern.head for pattern in answer.patterns or ()] == list(range(w.shape.n_heads))
    for found in answer.patterns or ():
        picked = run.attentions[1][found.head, position, :seen].topk(min(3, seen))
        assert [message.position for message in found.messages] == picked.indices.tolist()
        close(torch.tensor([message.weight for message in found.messages]), picked.values)
        pattern = pattern_of(w, 1, x[position])[found.head]
        if convention == "exact":  # the score of every token's bare embedding, there where the head looks most
            there = picked.indices[:1].expand(len(embeddings))
            at = torch.tensor([position])
            sought = net.scores(every.model, 1, x[position][None], at, embeddings, there, run)[found.head, 0]
        else:
            sought = embeddings @ pattern if convention == "vocabulary" else w.W_E @ final(pattern)
        messages = messages_of(w, 1, x, biased=convention == "exact")[found.head]
        assert_first(found.pattern, sought)
        for message in found.messages:
            sent = messages[message.position]
            rows = unembeddings if convention == "vocabulary" else w.W_U
            assert_first(message.tokens, rows @ (final(sent) if convention == "final" else sent))


def assert_first(found: tuple[Scored, ...], scores: Tensor) -> None:
    best = scores.topk(len(found))
    assert [token.id for token in found] == best.indices.tolist()
    close(torch.tensor([token.score for token in found]), best.values)


def test_a_head_that_is_asked_about_tells_more(case: Case) -> None:
    """Messages of all positions, in the order of its weights; the other heads as without it."""
    plain, chosen = (case.ask(panels={"patterns"}, layer=1, head=head).patterns for head in (None, 2))
    assert plain is not None
    assert chosen is not None
    assert [each for each in chosen if each.head != 2] == [each for each in plain if each.head != 2]
    assert chosen[2].messages[:3] == plain[2].messages
    weights = [message.weight for message in chosen[2].messages]
    assert len(weights) == len(case.engine.words.prompt(TEXT))
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
