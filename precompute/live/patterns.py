"""The panel `patterns`: at one position, what every head of a layer looks for and what it would pass on, as words.
Patterns and messages are McCormick's names: h W_Q W_Kᵀ of the position, and h W_V W_O of those it attends to.

h is what the layer's attention reads: the stream through the layer's own norm. Three conventions of comparing:
- final: the model's final norm is applied to pattern or message, then W_E (patterns) or W_U (messages).
- vocabulary: every token's embedding goes through the layer's own norm, and is multiplied with pattern or message.
- exact: what the model computes. Biases count, positions too, and scores are scaled: the score of a token is the
  attention score it would get if its bare embedding stood where the head looks most. Messages are taken with
  W_U as they are: times the weights, over all positions and heads, they sum (with w_o's bias) to the layer's output.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from precompute.live.forward import rotated, rotations
from precompute.live.records import Record
from precompute.live.vocabulary import blocks, scored
from precompute.live.weights import Weights
from precompute.live.wire import Convention, HeadPattern, Message

MESSAGES = 3  # of the positions a head attends to most


def pattern_of(w: Weights, layer: int, x: Tensor) -> Tensor:
    """x (d_model) normed -> x W_Q W_Kᵀ of every head (n_heads, d_model)."""
    W_Q, W_K = w.every_head("w_q", layer), w.every_head("w_k", layer)
    return ((W_Q @ x)[:, None] @ W_K)[:, 0]


def exact_pattern(w: Weights, layer: int, x: Tensor, position: int, at: Tensor) -> tuple[Tensor, Tensor]:
    """For every head (n_heads, d_model) and (n_heads,): pattern · x' + constant is the score the model gives to a
    normed state x' at position at[head], for the normed state x (d_model) at `position`.
    """
    s = w.shape
    q = w.every_head("w_q", layer) @ x  # (n_heads, d_head)
    bias = w.bias("w_q", layer)
    if bias is not None:
        q = q + bias.view(s.n_heads, s.d_head)
    if w.extras.frequencies is not None:
        here, there = rotations(w, torch.tensor([position], device=w.device)), rotations(w, at)
        assert here is not None
        assert there is not None
        cos, sin = there
        q = rotated(rotated(q, here), (cos, -sin))  # turned back as far as the key would be turned
    q = q * w.extras.scales[layer]
    pattern = (q[:, None] @ w.every_head("w_k", layer))[:, 0]
    keys = w.bias("w_k", layer)
    if keys is None:
        return pattern, torch.zeros(s.n_heads, device=w.device)
    return pattern, (q * keys.view(-1, s.d_head).repeat_interleave(w.groups, dim=0)).sum(dim=1)


def messages_of(w: Weights, layer: int, states: Tensor, *, biased: bool) -> Tensor:
    """states (n, d_model) normed -> states W_V W_O of every head (n_heads, n, d_model)."""
    values = states @ w.every_head("w_v", layer).transpose(1, 2)  # (n_heads, n, d_head)
    bias = w.bias("w_v", layer) if biased else None
    if bias is not None:
        values = values + bias.view(-1, 1, w.shape.d_head).repeat_interleave(w.groups, dim=0)
    return values @ w.heads("w_o", layer)


@dataclass(frozen=True)
class NormedVocabulary:
    """Products with every row of a vocabulary after a norm, without making those rows: only their scales differ."""

    W: Tensor  # (d_vocab, d_model)
    mean: Tensor  # (d_vocab,) what a LayerNorm takes away; 0 for RMSNorm
    inverse: Tensor  # (d_vocab,) 1 / its deviation, or 1 / its root mean square

    @classmethod
    def of(cls, w: Weights, W: Tensor) -> "NormedVocabulary":
        mean = torch.zeros(len(W), device=W.device) if w.extras.rms else W.mean(dim=1)
        squares = [  # in parts, so that no second vocabulary is made
            (part - less[:, None]).square().mean(dim=1)
            for part, less in zip(blocks(W, 4096), blocks(mean, 4096), strict=True)
        ]
        return cls(W, mean, (torch.cat(squares) + w.extras.eps).rsqrt())

    def products(self, w: Weights, layer: int, vectors: Tensor) -> Tensor:
        """vectors (n, d_model) with the norm of the layer's attention of every row: (n, d_vocab)."""
        folded = vectors * w.extras.gains["attention"][layer]
        scores = folded @ self.W.T
        if not w.extras.rms:
            scores.addr_(folded.sum(dim=1), self.mean, alpha=-1)
        scores *= self.inverse
        if w.extras.norm_biases:
            scores += (vectors @ w.extras.norm_biases["attention"][layer])[:, None]
        return scores


def patterns(
    w: Weights, record: Record, convention: Convention, k: int, reads: NormedVocabulary, writes: NormedVocabulary
) -> tuple[HeadPattern, ...]:
    assert record.chosen_states is not None
    assert record.chosen_weights is not None
    layer, position, x = record.layer, record.position, record.chosen_states
    count = min(MESSAGES, position + 1)
    picked = record.chosen_weights[:, : position + 1].topk(count, dim=1)  # (n_heads, count)
    every = messages_of(w, layer, x[: position + 1], biased=convention == "exact")  # (n_heads, T, d_model)
    messages = every.gather(1, picked.indices[:, :, None].expand(-1, -1, w.shape.d_model)).flatten(0, 1)
    if convention == "exact":
        pattern, constant = exact_pattern(w, layer, x[position], position, picked.indices[:, 0])
        sought, sent = reads.products(w, layer, pattern) + constant[:, None], messages @ w.W_U.T
    elif convention == "vocabulary":
        pattern = pattern_of(w, layer, x[position])
        sought, sent = reads.products(w, layer, pattern), writes.products(w, layer, messages)
    else:
        pattern = pattern_of(w, layer, x[position])
        sought, sent = w.norm(pattern, "final") @ w.W_E.T, w.norm(messages, "final") @ w.W_U.T
    words = list(scored(sent, k))
    places = zip(picked.indices.tolist(), picked.values.tolist(), strict=True)
    return tuple(
        HeadPattern(
            head=head,
            pattern=looks,
            messages=tuple(
                Message(position=at, weight=weight, tokens=words[head * count + n])
                for n, (at, weight) in enumerate(zip(positions, weights, strict=True))
            ),
        )
        for head, (looks, (positions, weights)) in enumerate(zip(scored(sought, k), places, strict=True))
    )
