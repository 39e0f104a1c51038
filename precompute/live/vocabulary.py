"""States and vectors as words: products with W_U or W_E, the largest scores of each row, probabilities.
Which states, and what they mean, is for the panels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from precompute.live.weights import Weights
from precompute.live.wire import Scored

GROUP = 64  # tokens whose largest score is looked at first
BLOCK = 256  # rows per product: their scores are d_vocab * BLOCK * 4 bytes

Tick = Callable[[float], None]  # so many rows of a product with the vocabulary are done


def blocks(rows: Tensor, size: int = BLOCK) -> Iterator[Tensor]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@dataclass(frozen=True)
class Top:
    ids: Tensor  # (n, k)
    values: Tensor  # (n, k), falling


def top_tokens(scores: Tensor, k: int) -> Top:
    """The k largest of each row of scores (n, d_vocab); of those with equal scores the smaller id stands first.

    Every one of them is in one of the k groups with the largest maxima, so most of a row is read only once.
    """
    n, d_vocab = scores.shape
    k, groups = min(k, d_vocab), d_vocab // GROUP
    if groups <= 2 * k:
        best = scores.topk(k, dim=1)
        return _ordered(best.indices, best.values)
    largest = scores[:, : groups * GROUP].reshape(n, groups, GROUP).amax(dim=2)  # (n, groups)
    chosen = largest.topk(k, dim=1).indices
    inside = torch.arange(GROUP, device=scores.device)
    ids = (chosen[:, :, None] * GROUP + inside).flatten(1)  # (n, k * GROUP)
    rest = torch.arange(groups * GROUP, d_vocab, device=scores.device)
    ids = torch.cat((ids, rest.expand(n, -1)), dim=1)
    best = scores.gather(1, ids).topk(k, dim=1)
    return _ordered(ids.gather(1, best.indices), best.values)


def _ordered(ids: Tensor, values: Tensor) -> Top:
    by_id = ids.argsort(dim=1)
    ids, values = ids.gather(1, by_id), values.gather(1, by_id)
    order = values.argsort(dim=1, descending=True, stable=True)
    return Top(ids.gather(1, order), values.gather(1, order))


@dataclass(frozen=True)
class Likelihoods:
    """What a stream means at n places, by the model's own last step."""

    ids: Tensor  # (n, k)
    p: Tensor  # (n, k), falling
    answer: Tensor  # (n,) probability of the answer
    rank: Tensor  # (n,) of the answer: 1 and how many tokens have more


def likelihoods(w: Weights, stream: Tensor, k: int, answers: Tensor | None, tick: Tick = lambda _: None) -> Likelihoods:
    """stream (n, d_model) through the final norm and W_U.

    Without `answers` (n,) the answer at a place is its own first token.
    """
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for start in range(0, len(stream), BLOCK):
        x = w.norm(stream[start : start + BLOCK], "final")
        logits = x @ w.W_U.T  # (block, d_vocab)
        top = top_tokens(logits, k)
        wanted = top.ids[:, :1] if answers is None else answers[start : start + BLOCK, None]
        answer = logits.gather(1, wanted)
        rank = 1 + (logits > answer).sum(dim=1)
        highest = top.values[:, :1]
        total = logits.sub_(highest).exp_().sum(dim=1, keepdim=True)
        p, answer_p = (top.values - highest).exp() / total, (answer - highest).exp() / total
        parts.append((top.ids, p, answer_p[:, 0], rank))
        tick(len(x))
    return Likelihoods(*(torch.cat(part) for part in zip(*parts, strict=True)))


def listed(scores: Tensor, k: int) -> Iterator[tuple[Scored, ...]]:
    """The k tokens with the largest scores of each row of (n, d_vocab)."""
    top = top_tokens(scores, k)
    for ids, values in zip(top.ids.tolist(), top.values.tolist(), strict=True):
        yield tuple(Scored(id=token, score=score) for token, score in zip(ids, values, strict=True))
