"""The panel `patterns`: at one position, what every head of a layer looks for and what it would pass on, as words.
Patterns and messages are McCormick's names: h W_Q W_Kᵀ of the position, and h W_V W_O of those it attends to.

h is what the layer's attention reads: the stream through the layer's own norm. Three conventions of comparing:
- final: the model's final norm is applied to pattern or message, then W_E (patterns) or W_U (messages).
- vocabulary: every token's embedding goes through the layer's own norm, and is multiplied with pattern or message.
- exact: what the model computes. Biases and the position that looks count, and scores are scaled: the score of a token
  is the attention score it would get if its bare embedding stood where the head looks most (learned positions are no
  part of it). Messages are taken with W_U as they are: times the weights, over all positions and heads, they sum (with
  w_o's bias) to what attention writes, before any norm of that.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from precompute.live.records import Record
from precompute.live.run import Rotation, rotated
from precompute.live.vocabulary import blocks, scored
from precompute.live.weights import Weights
from precompute.live.wire import Convention, HeadPattern, Message

MESSAGES = 3  # of the positions a head attends to most
ALL_MESSAGES = 24  # of a head that was asked about


def pattern_of(w: Weights, layer: int, x: Tensor) -> Tensor:
    """x (d_model) normed -> x W_Q W_Kᵀ of every head (n_heads, d_model)."""
    W_Q, W_K = w.every_head("w_q", layer), w.every_head("w_k", layer)
    return ((W_Q @ x)[:, None] @ W_K)[:, 0]


def exact_query(w: Weights, layer: int, x: Tensor, position: int, at: Tensor, rotation: Rotation | None) -> Tensor:
    """q (n_heads, d_head) of the state x (d_model) at `position`, as heads read it: its product with a key that is not
    turned is the score that the model gives to that key at position at[head].
    """
    s = w.shape
    q = w.every_head("w_q", layer) @ x  # (n_heads, d_head)
    bias = w.bias("w_q", layer)
    if bias is not None:
        q = q + bias.view(s.n_heads, s.d_head)
    q = w.normed_queries(q, layer)
    if rotation is not None:
        cos, sin = rotation
        here, there = (cos[position], sin[position]), (cos[at], sin[at])
        q = rotated(rotated(q, here), (there[0], -there[1]))  # turned back as far as the key would be turned
    return q * w.scale(layer)


def exact_pattern(
    w: Weights, layer: int, x: Tensor, position: int, at: Tensor, rotation: Rotation | None
) -> tuple[Tensor, Tensor]:
    """Pattern (n_heads, d_model) and constant (n_heads,) of every head: pattern · x' + constant is the score that the
    model gives to a state x' at position at[head]; without a soft cap, and without the divisor of a norm of keys.
    """
    s, q, norm = w.shape, exact_query(w, layer, x, position, at, rotation), w.key_norm(layer)
    if norm is not None:
        q = q * norm.gain
        q = q - q.mean(dim=1, keepdim=True) if norm.centres else q
    pattern = (q[:, None] @ w.every_head("w_k", layer))[:, 0]
    keys = w.bias("w_k", layer)
    if keys is None:
        return pattern, torch.zeros(s.n_heads, device=w.device)
    return pattern, (q * keys.view(-1, s.d_head).repeat_interleave(w.groups, dim=0)).sum(dim=1)


def key_divisors(w: Weights, layer: int) -> Tensor:
    """What a norm of keys multiplies the score of every token's bare embedding with: (n_heads, d_vocab), or (1, 1)."""
    norm = w.key_norm(layer)
    if norm is None:
        return torch.ones(1, 1, device=w.device)
    divisors = []
    for e in blocks(w.W_E, 4096):
        read = w.norm(w.model.stream_of(w.net, e), "attention", layer)
        keys = functional.linear(read, w.vectors("w_k", layer), w.bias("w_k", layer)).view(len(e), -1, w.shape.d_head)
        keys = keys - keys.mean(dim=2, keepdim=True) if norm.centres else keys
        divisors.append((keys.square().mean(dim=2) + norm.eps).rsqrt())
    return torch.cat(divisors).T.repeat_interleave(w.groups, dim=0)


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
    square: Tensor  # (d_vocab,) mean square of what is left

    @classmethod
    def of(cls, w: Weights, W: Tensor) -> "NormedVocabulary":
        mean = W.mean(dim=1) if w.norm_numbers("attention").centres else torch.zeros(len(W), device=W.device)
        squares = [  # in blocks, so that no second vocabulary is made
            (rows - centre[:, None]).square().mean(dim=1)
            for rows, centre in zip(blocks(W, 4096), blocks(mean, 4096), strict=True)
        ]
        return cls(W, mean, torch.cat(squares))

    def products(self, w: Weights, layer: int, vectors: Tensor) -> Tensor:
        """vectors (n, d_model) with every row, through the norm that the layer's attention reads: (n, d_vocab)."""
        norm, scale = w.norm_numbers("attention", layer), w.embedding_scale
        folded = vectors * norm.gain
        scores = folded @ self.W.T
        if norm.centres:
            scores.addr_(folded.sum(dim=1), self.mean, alpha=-1)
        scores *= (self.square + norm.eps / scale**2).rsqrt()  # a scale before a norm is only less of its eps
        if norm.bias is not None:
            scores += (vectors @ norm.bias)[:, None]
        return scores


def patterns(
    w: Weights,
    record: Record,
    convention: Convention,
    k: int,
    chosen: int | None,
    reads: NormedVocabulary,
    writes: NormedVocabulary,
) -> tuple[HeadPattern, ...]:
    """The pattern of every head of the layer, with more messages of the `chosen` one."""
    assert record.chosen_states is not None
    assert record.chosen_weights is not None
    layer, position, x = record.layer, record.position, record.chosen_states
    seen = position + 1 if w.shape.causal else len(x)
    every = messages_of(w, layer, x[:seen], biased=convention == "exact")  # (n_heads, seen, d_model)
    most = [ALL_MESSAGES if head == chosen else MESSAGES for head in range(w.shape.n_heads)]
    picked = [weights[:seen].topk(min(n, seen)) for weights, n in zip(record.chosen_weights, most, strict=True)]
    messages = torch.cat([every[head, best.indices] for head, best in enumerate(picked)])
    if convention == "exact":
        at = torch.stack([best.indices[0] for best in picked])
        pattern, constant = exact_pattern(w, layer, x[position], position, at, record.chosen_rotation)
        sought, sent = reads.products(w, layer, pattern) + constant[:, None], messages @ w.W_U.T
        sought = w.capped(sought * key_divisors(w, layer), layer)
    elif convention == "vocabulary":
        pattern = pattern_of(w, layer, x[position])
        sought, sent = reads.products(w, layer, pattern), writes.products(w, layer, messages)
    else:
        pattern = pattern_of(w, layer, x[position])
        sought, sent = w.norm(pattern, "final") @ w.W_E.T, w.norm(messages, "final") @ w.W_U.T
    words = scored(sent, k)
    return tuple(
        HeadPattern(
            head=head,
            pattern=looks,
            messages=tuple(
                Message(position=there, weight=weight, tokens=next(words))
                for there, weight in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ),
        )
        for head, (looks, best) in enumerate(zip(scored(sought, k), picked, strict=True))
    )
