"""Compute how many heads would reach a mean rank by chance.

By chance a token's rank is any number from 1 to d_vocab, each as likely as the others, and the ranks of a head's pairs
are independent of each other. Of all d_vocab ** n ways in which n ranks can come out,

    sum over k of (-1) ** k * C(n, k) * C(total - k * d_vocab, n)

have a sum of at most `total` (inclusion and exclusion over the k ranks that are larger than d_vocab). Real heads rank
some tokens high whatever they read, so a head should at least do better than this; shuffled targets are a stricter
comparison.
"""

from collections.abc import Sequence
from math import comb


def chance_of_sum(total: int, n: int, d_vocab: int) -> float:
    """Return the probability that n ranks out of 1 to d_vocab have at most this sum."""
    terms = (comb(n, k) * comb(max(total - k * d_vocab, 0), n) for k in range(n + 1))
    ways = sum(-term if k % 2 else term for k, term in enumerate(terms))
    return ways / int(d_vocab**n)


def expected_heads(ranks: Sequence[int], d_vocab: int, n_heads: int) -> float:
    """Return how many of n_heads heads would have the mean of these ranks, or a smaller one, by chance."""
    return n_heads * chance_of_sum(sum(ranks), len(ranks), d_vocab)
