"""States and vectors as words: products with W_U or W_E, the largest scores of each row, probabilities.
Which states, and what they mean, is for the panels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from precompute.live import token_kernel
from precompute.live.weights import Weights
from precompute.live.wire import Scored

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
    """The k largest of each row of scores (n, d_vocab); of those with equal scores the smaller id stands first."""
    k = min(k, scores.shape[1])
    if scores.device.type == "cpu":
        ids, values = torch.empty(len(scores), k, dtype=torch.long), torch.empty(len(scores), k)
        token_kernel.first_tokens(scores.numpy(), ids.numpy(), values.numpy())
        return Top(ids, values)
    best = scores.topk(k, dim=1)
    by_id = best.indices.argsort(dim=1)
    ids, values = best.indices.gather(1, by_id), best.values.gather(1, by_id)
    order = values.argsort(dim=1, descending=True, stable=True)
    return Top(ids.gather(1, order), values.gather(1, order))


def count_above(scores: Tensor, bounds: Tensor) -> Tensor:
    """How many of each row of scores (n, d_vocab) are larger than its bound (n,)."""
    if scores.device.type != "cpu":
        return (scores > bounds[:, None]).sum(dim=1)
    counts = torch.empty(len(scores), dtype=torch.long)
    token_kernel.count_above(scores.numpy(), bounds.contiguous().numpy(), counts.numpy())
    return counts


def _sums_of_exponentials(logits: Tensor, highest: Tensor) -> Tensor:
    """(n, d_vocab) and (n, 1) -> (n, 1). On a CPU a few rows at a time, which its cache holds; logits are lost."""
    size = 8 if logits.device.type == "cpu" else len(logits)
    parts = zip(blocks(logits, size), blocks(highest, size), strict=True)
    return torch.cat([part.sub_(most).exp_().sum(dim=1, keepdim=True) for part, most in parts])


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
        rank = 1 + count_above(logits, answer[:, 0])
        highest = top.values[:, :1]
        total = _sums_of_exponentials(logits, highest)
        p, answer_p = (top.values - highest).exp() / total, (answer - highest).exp() / total
        parts.append((top.ids, p, answer_p[:, 0], rank))
        tick(len(x))
    return Likelihoods(*(torch.cat(part) for part in zip(*parts, strict=True)))


def listed(W: Tensor, vectors: Tensor, k: int) -> list[tuple[Scored, ...]]:
    """The k tokens with the largest products of each of vectors (n, d_model) with a vocabulary W (d_vocab, d_model)."""
    return [row for part in blocks(vectors) for row in scored(part @ W.T, k)]


def scored(scores: Tensor, k: int) -> Iterator[tuple[Scored, ...]]:
    """The k tokens with the largest scores of each row of (n, d_vocab)."""
    top = top_tokens(scores, k)
    for ids, values in zip(top.ids.tolist(), top.values.tolist(), strict=True):
        yield tuple(Scored(id=token, score=score) for token, score in zip(ids, values, strict=True))
