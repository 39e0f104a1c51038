"""Find the heads that turn source words into target words, by the rank of each target among all tokens. Ranks are
exact: they are counted from float32 products, and tokens whose scores are too close for float32 are compared in
float64.

For each head, source W_V W_O is multiplied with the vocabulary, as for the stored lists of VO pairs; with `qk` it is
source W_Q W_Kᵀ, where the source is the query's word and the target the key's. A source of several pieces is the mean
of their embeddings (the module source says what else may be read of it); of a target of several pieces, the first
counts. Under the lens cosine, embeddings are centred and set to length one on both sides (a source of several pieces
after taking the mean).

A small rank says little by itself. So beside each head's mean rank are
- shuffled: the mean rank of other pairs' targets for the same sources (of at most SHUFFLES pairs, the next ones in the
  list; targets that are equal to the pair's own do not count). A head that promotes all targets for every source has a
  small one, too. If there is no other target, RANDOM_WORDS words are used, which are the same for all asks.
- identity: the mean rank of the source itself, by its first piece. A head that copies everything has a small one.
- chance: how many heads would reach such a mean rank if ranks were drawn at random (see the module chance).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.live import token_kernel
from lexiscope.precompute.live.by_words.chance import expected_heads
from lexiscope.precompute.live.by_words.source import Source
from lexiscope.precompute.live.by_words.through_heads import head_outputs, ids_of, mean_vector, word_used
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.proposals import error_of_products
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS, count_around
from lexiscope.precompute.live.wire.answers import Baseline, HeadRelation, PairUsed, RelationAnswer
from lexiscope.precompute.live.wire.asks import RelationAsk
from lexiscope.precompute.live.wire.grammar import WordPair
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import Float64

SHUFFLES = 10  # other pairs' targets that a source is compared with
RANDOM_WORDS = 20  # random words to compare with where there are no other pairs' targets
OWN, ITSELF, OTHERS = 0, 1, 2  # columns of the targets of a source; others from there on

Ids = NDArray[np.int64]


def relation(
    w: LoadedParameters, words: Words, ask: RelationAsk, source: Source, word_tokens: Ids,
    check: Callable[[], None] = lambda: None,
) -> RelationAnswer:  # fmt: skip
    """Rank the targets of all pairs in every head. `word_tokens` are the tokens that are words; `check` is called
    between products, and an error that it raises ends the work."""
    used = [pair_used(words, pair) for pair in ask.pairs]
    x = np.stack([mean_vector(source, [pair["source"]]) for pair in used])  # (pairs, d_model)
    targets = Targets.of(used, word_tokens)
    outputs = torch.from_numpy(
        np.concatenate([head_outputs(w, ask.matrix, layer, source.into(layer, x)) for layer in range(w.shape.n_layers)])
    )  # (all heads, pairs, d_model)
    vocabulary = words.writes if ask.matrix == "vo" else words.reads
    ids = torch.from_numpy(targets.ids).repeat(len(outputs), 1)
    scores, above, below = (
        column.view(len(outputs), len(used), -1).numpy()
        for column in count_ranks(vocabulary, outputs.flatten(0, 1), ids, ask.lens, check)
    )  # (all heads, pairs, targets) each
    silent = ~outputs.any(dim=-1).numpy()  # a head that gives 0 for a source, such as an unchanged one of a difference
    above[silent] = below[silent] = (len(vocabulary.W) - 1) // 2  # all tokens tie, so each has the rank in the middle
    heads = [
        _head(*divmod(n, w.shape.n_heads), scores[n, :, OWN], 1 + above[n], 1 + below[n], targets, w)
        for n in range(len(outputs))
    ]
    heads.sort(key=lambda head: (head["rank"], -head["score"], head["layer"], head["head"]))
    return {"pairs": used, "heads": heads, "shuffled_with": targets.shuffled_with}


@dataclass(frozen=True)
class Targets:
    """The tokens whose ranks are computed for each source."""

    ids: Ids  # (pairs, targets): the pair's own target, the source itself, then others
    counted: NDArray[np.bool_]  # (pairs, others): False for entries that only fill up a row
    shuffled_with: Baseline

    @classmethod
    def of(cls, pairs: list[PairUsed], word_tokens: Ids) -> "Targets":
        own = [pair["ranked"]["id"] for pair in pairs]
        n = len(own)
        shuffled_with: Baseline = "pairs"
        others = [[own[(at + step) % n] for step in range(1, n) if own[(at + step) % n] != own[at]] for at in range(n)]
        others = [tokens[:SHUFFLES] for tokens in others]
        if not all(others):
            drawn = np.random.default_rng(0).permutation(word_tokens).tolist()
            known = {token for pair in pairs for side in (pair["source"], pair["target"]) for token in ids_of(side)}
            others, shuffled_with = [[token for token in drawn if token not in known][:RANDOM_WORDS]] * n, "words"
        longest = max(map(len, others))
        rows = [
            [own[at], ids_of(pairs[at]["source"])[0], *tokens, *[own[at]] * (longest - len(tokens))]
            for at, tokens in enumerate(others)
        ]
        counted = np.array([[column < len(tokens) for column in range(longest)] for tokens in others])
        return cls(np.array(rows, np.int64), counted, shuffled_with)

    def shuffled(self, numbers: NDArray[Any]) -> Float64:
        """Return the mean over all sources of the mean number of other pairs' targets, from numbers (..., pairs,
        targets)."""
        others = (numbers[..., OTHERS:] * self.counted).sum(axis=-1) / self.counted.sum(axis=1)
        return np.asarray(others.mean(axis=-1))


def _head(
    layer: int, head: int, scores: Float64, ranks: NDArray[np.int64], from_bottom: NDArray[np.int64], targets: Targets,
    w: LoadedParameters,
) -> HeadRelation:  # fmt: skip
    """Summarise one head, from the scores (pairs,) of the targets and from ranks from the top and from the bottom,
    (pairs, targets) each."""
    n_heads, d_vocab = w.shape.n_layers * w.shape.n_heads, w.shape.d_vocab
    own, own_from_bottom = ranks[:, OWN].tolist(), from_bottom[:, OWN].tolist()
    return HeadRelation(
        layer=layer,
        head=head,
        rank=float(np.mean(own)),
        score=float(scores.mean()),
        ranks=own,
        scores=scores.tolist(),
        rank_from_bottom=float(np.mean(own_from_bottom)),
        shuffled=float(targets.shuffled(ranks)),
        identity=float(ranks[:, ITSELF].mean()),
        chance=expected_heads(own, d_vocab, n_heads),
        shuffled_from_bottom=float(targets.shuffled(from_bottom)),
        identity_from_bottom=float(from_bottom[:, ITSELF].mean()),
        chance_from_bottom=expected_heads(own_from_bottom, d_vocab, n_heads),
    )


def pair_used(words: Words, pair: WordPair) -> PairUsed:
    target = word_used(words, pair.target)
    return {"source": word_used(words, pair.source), "target": target, "ranked": {**target["tokens"][0]}}


def count_ranks(
    vocabulary: Vocabulary, outputs: Tensor, targets: Tensor, lens: str, check: Callable[[], None]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the score of each target, and how many tokens have larger and smaller scores, (n, m) each, for vectors
    `outputs` (n, d_model), float64, and tokens `targets` (n, m)."""
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

    n, m = targets.shape
    shifts = outputs @ torch.from_numpy(vocabulary.mean)  # (n,)
    scores = exact(torch.arange(n).repeat_interleave(m), targets.flatten()).view(n, m)
    above, below = torch.zeros(n, m, dtype=torch.long), torch.zeros(n, m, dtype=torch.long)
    for start in range(0, n, PRODUCT_ROWS):
        check()
        some = slice(start, start + PRODUCT_ROWS)
        product = outputs[some].float().to(device) @ W.T  # (block, d_vocab)
        if lens == "cosine":
            product.sub_(shifts[some, None].float().to(device)).mul_(vocabulary.inverse)
        lengths = torch.linalg.vector_norm(outputs[some], dim=1) + least
        error = (2 * lengths * float(slack.max()))[:, None]
        more, close, several = count_around(product, scores[some] - error, scores[some] + error)
        above[some], below[some] = more, product.shape[1] - more - close  # if only one token is close, it is the target
        rows, columns, tokens = (part.contiguous() for part in several.T)
        difference = exact(rows + start, tokens) - scores[rows + start, columns]  # exactly 0 for the target itself
        above[some].index_put_((rows, columns), (difference > 0).long(), accumulate=True)
        below[some].index_put_((rows, columns), (difference < 0).long(), accumulate=True)
    return scores, above, below
