"""Patterns and messages: the exact ones are the model's own attention, and each convention's lists are what it says."""

import pytest
import torch
from torch import Tensor

from precompute.live.patterns import NormedVocabulary, exact_pattern, messages_of, pattern_of
from precompute.live.run import Rotation
from precompute.live.wire import Convention
from tests.precompute.live.reference import TEXT, Case, close


def normed(case: Case, layer: int, x: Tensor) -> Tensor:
    """The norm before a layer's attention, by transformers."""
    block = case.blocks[layer]
    with torch.no_grad():
        result: Tensor = (block.ln_1 if case.gpt2 else block.input_layernorm)(x)
    return result


def rotation(case: Case, tokens: int) -> Rotation | None:
    """By transformers."""
    if case.gpt2:
        return None
    cos, sin = case.reference.model.rotary_emb(torch.empty(1), torch.arange(tokens)[None])
    return cos[0], sin[0]


def states(case: Case, layer: int) -> Tensor:
    return normed(case, layer, case.run(case.engine.words.prompt(TEXT)).hidden[layer])


@pytest.mark.parametrize("layer", [0, 1])
def test_exact_patterns_give_the_models_attention(case: Case, layer: int) -> None:
    w, x = case.engine.weights, states(case, layer)
    attention = case.run(case.engine.words.prompt(TEXT)).attentions[layer]
    for position in range(len(x)):
        scores = torch.empty(w.shape.n_heads, position + 1)
        for j in range(position + 1):
            at = torch.full((w.shape.n_heads,), j)
            pattern, constant = exact_pattern(w, layer, x[position], position, at, rotation(case, len(x)))
            scores[:, j] = pattern @ x[j] + constant
        close(scores.softmax(dim=1), attention[:, position, : position + 1])


def test_exact_patterns_give_the_models_scores_themselves(case: Case) -> None:
    """Not only what a softmax leaves of them: queries and keys by hand from the stored tensors."""
    w, x, s = case.engine.weights, states(case, 1), case.engine.shape
    if not case.gpt2:
        pytest.skip("positions of the keys are turned; the softmax of the test above tells")
    qkv = case.blocks[1].attn.c_attn(x).detach()
    q, k = (part.view(len(x), s.n_heads, s.d_head) for part in qkv.chunk(3, dim=1)[:2])
    pattern, constant = exact_pattern(w, 1, x[5], 5, torch.zeros(s.n_heads, dtype=torch.long), None)
    close(pattern @ x.T + constant[:, None], torch.einsum("hd,jhd->hj", q[5], k) / s.d_head**0.5)


@pytest.mark.parametrize("layer", [0, 1])
def test_messages_and_weights_sum_to_the_attentions_output(case: Case, layer: int) -> None:
    w, x = case.engine.weights, states(case, layer)
    run = case.run(case.engine.words.prompt(TEXT))
    messages = messages_of(w, layer, x, biased=True)  # (n_heads, T, d_model)
    total = torch.einsum("hij,hjd->id", run.attentions[layer], messages)
    bias = w.bias("w_o", layer)
    close(total if bias is None else total + bias, run.outputs[layer, "attention"])


def test_plain_patterns_and_messages_are_products_of_the_heads_matrices(case: Case) -> None:
    w, x = case.engine.weights, states(case, 1)
    W_Q, W_K = case.model.factors(1, "qk")
    W_V, W_O = case.model.factors(1, "vo")
    close(pattern_of(w, 1, x[2]), torch.einsum("d,hdk,hke->he", x[2], W_Q, W_K))
    close(messages_of(w, 1, x, biased=False), torch.einsum("nd,hdk,hke->hne", x, W_V, W_O))


def test_products_with_a_normed_vocabulary(case: Case) -> None:
    w = case.engine.weights
    vectors = torch.randn(3, w.shape.d_model, generator=torch.Generator().manual_seed(1))
    for W in (w.W_E, w.W_U):
        expected = vectors @ normed(case, 1, W).T
        close(NormedVocabulary.of(w, W).products(w, 1, vectors), expected)


@pytest.mark.parametrize("convention", ["final", "vocabulary", "exact"])
@pytest.mark.parametrize("position", [0, 1, 6])
def test_lists_of_each_convention(case: Case, convention: Convention, position: int) -> None:
    answer = case.ask(panels={"patterns"}, layer=1, position=position, convention=convention, k=4)
    w, x, model = case.engine.weights, states(case, 1), case.reference
    attention = case.run(answer.tokens).attentions[1]
    final = model.transformer.ln_f if case.gpt2 else model.model.norm
    assert [pattern.head for pattern in answer.patterns or ()] == list(range(w.shape.n_heads))
    for found in answer.patterns or ():
        weights = attention[found.head, position, : position + 1]
        picked = weights.topk(min(3, position + 1))
        assert [message.position for message in found.messages] == picked.indices.tolist()
        close(torch.tensor([message.weight for message in found.messages]), picked.values)
        with torch.no_grad():
            if convention == "exact":
                at = torch.full((w.shape.n_heads,), int(picked.indices[0]))
                exact, constant = exact_pattern(w, 1, x[position], position, at, rotation(case, len(x)))
                sought = normed(case, 1, w.W_E) @ exact[found.head] + constant[found.head]
            elif convention == "vocabulary":
                sought = normed(case, 1, w.W_E) @ pattern_of(w, 1, x[position])[found.head]
            else:
                sought = w.W_E @ final(pattern_of(w, 1, x[position])[found.head])
            messages = messages_of(w, 1, x, biased=convention == "exact")[found.head]
            assert [token.id for token in found.pattern] == sought.topk(4).indices.tolist()
            close(torch.tensor([token.score for token in found.pattern]), sought.topk(4).values)
            for message in found.messages:
                sent = messages[message.position]
                rows = normed(case, 1, w.W_U) if convention == "vocabulary" else w.W_U
                expected = (rows @ (final(sent) if convention == "final" else sent)).topk(4)
                assert [token.id for token in message.tokens] == expected.indices.tolist()
                close(torch.tensor([token.score for token in message.tokens]), expected.values)


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
