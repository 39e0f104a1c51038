"""Pairs to heads: which heads turn a source word into its target, by the target's rank among all tokens.
Exact: float32 products count, and whatever is too close to tell is counted in float64.

For each head, source W_V W_O is compared with the vocabulary, as the stored VO lists compare pairs. A source of several
pieces is the mean of their embeddings, a target is its first piece. Lens cosine: embeddings centred and normalised on
both sides (a source of several pieces after taking the mean).
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from precompute.live import token_kernel
from precompute.live.proposals import error_of_products
from precompute.live.through_heads import head_outputs
from precompute.live.vocabulary import BLOCK, count_above, find_close
from precompute.live.weights import Weights
from precompute.live.wire import HeadRelation, PairUsed, RelationAnswer, RelationAsk
from precompute.live.words import Words
from precompute.project.embedding import Float64


def relation(w: Weights, words: Words, ask: RelationAsk, check: Callable[[], None] = lambda: None) -> RelationAnswer:
    """`check` is called between products; what it raises ends the search."""
    used = tuple(
        PairUsed(
            source=pair.source,
            source_tokens=words.tokens(pair.source),
            target=pair.target,
            target_tokens=words.tokens(pair.target),
        )
        for pair in ask.pairs
    )
    sources = np.stack([_source(words, pair, ask.lens) for pair in used])  # (pairs, d_model)
    targets = torch.tensor([pair.target_tokens[0] for pair in used])
    outputs = torch.from_numpy(
        np.concatenate([head_outputs(w, "vo", layer, sources) for layer in range(w.shape.n_layers)])
    )  # (all heads, pairs, d_model)
    ranks = _ranks(words, outputs.flatten(0, 1), targets.repeat(len(outputs)), ask.lens, check)
    by_head = (column.view(len(outputs), -1).tolist() for column in ranks)
    heads = [_head(*divmod(n, w.shape.n_heads), *row) for n, row in enumerate(zip(*by_head, strict=True))]
    heads.sort(key=lambda head: (head.rank, -head.score, head.layer, head.head))
    return RelationAnswer(pairs=used, heads=tuple(heads))


def _head(layer: int, head: int, scores: list[float], above: list[int], below: list[int]) -> HeadRelation:
    n = len(scores)
    return HeadRelation(
        layer=layer,
        head=head,
        rank=1 + sum(above) / n,
        score=sum(scores) / n,
        ranks=tuple(1 + count for count in above),
        scores=tuple(scores),
        rank_from_bottom=1 + sum(below) / n,
    )


def _source(words: Words, pair: PairUsed, lens: str) -> Float64:
    word = words.reads.word(pair.source_tokens)
    return word if lens == "dot" else words.reads.direction(word, pair.source)


def _ranks(
    words: Words, outputs: Tensor, targets: Tensor, lens: str, check: Callable[[], None]
) -> tuple[Tensor, Tensor, Tensor]:
    """outputs (n, d_model) float64, targets (n,) -> each target's score, and how many tokens have more and less."""
    vocabulary = words.writes
    W, device = vocabulary.W, vocabulary.W.device
    inverse = torch.from_numpy(vocabulary.exact_inverse)
    share, least = error_of_products(W.shape[1])
    mean_norm = float(np.linalg.norm(vocabulary.mean))
    slack = (vocabulary.norm + mean_norm + least) * share
    if lens == "cosine":
        slack = slack * vocabulary.inverse

    def exact(rows: Tensor, tokens: Tensor) -> Tensor:
        products = torch.from_numpy(
            token_kernel.dots(outputs.numpy(), vocabulary.embedding.rows, rows.numpy(), tokens.numpy())
        )
        return (products - shifts[rows]) * inverse[tokens] if lens == "cosine" else products

    shifts = outputs @ torch.from_numpy(vocabulary.mean)  # (n,)
    scores = exact(torch.arange(len(outputs)), targets)
    above, below = torch.zeros(len(outputs), dtype=torch.long), torch.zeros(len(outputs), dtype=torch.long)
    for start in range(0, len(outputs), BLOCK):
        check()
        some = slice(start, start + BLOCK)
        product = outputs[some].float().to(device) @ W.T  # (block, d_vocab)
        if lens == "cosine":
            product.sub_(shifts[some, None].float().to(device)).mul_(vocabulary.inverse)
        product.sub_(scores[some, None].float().to(device))
        lengths = torch.linalg.vector_norm(outputs[some], dim=1).float().to(device) + least
        error = 2 * lengths * slack.max()
        above[some] = count_above(product, error).cpu()
        close = find_close(product, error)
        below[some] = product.shape[1] - above[some] - torch.bincount(close[:, 0], minlength=len(product))
        rows, tokens = close[:, 0] + start, close[:, 1].contiguous()
        difference = exact(rows, tokens) - scores[rows]  # of the target itself exactly 0
        above.index_add_(0, rows, (difference > 0).long())
        below.index_add_(0, rows, (difference < 0).long())
    return scores, above, below
