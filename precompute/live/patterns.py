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
ALL_MESSAGES = 24  # of a head that was asked about


def pattern_of(w: Weights, layer: int, x: Tensor) -> Tensor:
    """x (d_model) normed -> x W_Q W_Kᵀ of every head (n_heads, d_model)."""
    W_Q, W_K = w.every_head("w_q", layer), w.every_head("w_k", layer)
    return ((W_Q @ x)[:, None] @ W_K)[:, 0]


def exact_pattern(w: Weights, layer: int, x: Tensor, position: int, at: Tensor) -> tuple[Tensor, Tensor]:
    """Pattern (n_heads, d_model) and constant (n_heads,) of every head: pattern · x' + constant is the score that the
    model gives to a normed state x' at position at[head], for the normed state x (d_model) at `position`.
    """
    s = w.shape
    q = w.every_head("w_q", layer) @ x  # (n_heads, d_head)
    bias = w.bias("w_q", layer)
    if bias is not None:
        q = q + bias.view(s.n_heads, s.d_head)
    if w.run.frequencies is not None:
        here, there = rotations(w, torch.tensor([position], device=w.device)), rotations(w, at)
        assert here is not None
        assert there is not None
        cos, sin = there
        q = rotated(rotated(q, here), (cos, -sin))  # turned back as far as the key would be turned
    q = q * w.run.scales[layer]
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
        mean = torch.zeros(len(W), device=W.device) if w.run.rms else W.mean(dim=1)
        squares = [  # in blocks, so that no second vocabulary is made
            (rows - centre[:, None]).square().mean(dim=1)
            for rows, centre in zip(blocks(W, 4096), blocks(mean, 4096), strict=True)
        ]
        return cls(W, mean, (torch.cat(squares) + w.run.eps).rsqrt())

    def products(self, w: Weights, layer: int, vectors: Tensor) -> Tensor:
        """vectors (n, d_model) with the norm of the layer's attention of every row: (n, d_vocab)."""
        folded = vectors * w.run.gains["attention"][layer]
        scores = folded @ self.W.T
        if not w.run.rms:
            scores.addr_(folded.sum(dim=1), self.mean, alpha=-1)
        scores *= self.inverse
        if w.run.norm_biases:
            scores += (vectors @ w.run.norm_biases["attention"][layer])[:, None]
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
    every = messages_of(w, layer, x[: position + 1], biased=convention == "exact")  # (n_heads, T, d_model)
    most = [ALL_MESSAGES if head == chosen else MESSAGES for head in range(w.shape.n_heads)]
    picked = [
        weights[: position + 1].topk(min(n, position + 1))
        for weights, n in zip(record.chosen_weights, most, strict=True)
    ]
    messages = torch.cat([every[head, best.indices] for head, best in enumerate(picked)])
    if convention == "exact":
        at = torch.stack([best.indices[0] for best in picked])
        pattern, constant = exact_pattern(w, layer, x[position], position, at)
        sought, sent = reads.products(w, layer, pattern) + constant[:, None], messages @ w.W_U.T
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
