"""How coherent a list is (how close its tokens are to each other) and how similar two lists are.

Tokens that are in an unusual share of a layer's lists (hubs) say nothing about a vector and are left out of coherence.
Both figures are of the first DEPTH tokens of a list, whether an index stores fewer or more.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.project.embedding import Embedding, Float32
from precompute.shape import HUB_FACTOR

DEPTH = 100  # tokens of a list that are looked at; the k of the paper's Sim_k
FIRST_TOKENS = 20  # tokens that count for coherence: the first that are not hubs

Ids = NDArray[np.integer]


@dataclass(frozen=True)
class Directions:
    """A vocabulary's tokens to compare with each other."""

    units: torch.Tensor  # (d_vocab, d_model) centred and normalised; zeros for a token without direction
    missing: NDArray[np.bool_]  # (d_vocab,) the tokens without

    @classmethod
    def of(cls, embedding: Embedding) -> "Directions":
        units = embedding.directions()
        return cls(units, ~units.any(dim=1).cpu().numpy())


def hubs(ids: list[Ids], d_vocab: int) -> NDArray[np.bool_]:
    """(lenses, d_vocab) from the lists (n, lenses, ends, depth) of all kinds of one layer."""
    lenses, depth = ids[0].shape[1], ids[0].shape[3]
    lists = sum(kind.shape[0] * kind.shape[2] for kind in ids)
    counts = [sum(np.bincount(kind[:, lens].ravel(), minlength=d_vocab) for kind in ids) for lens in range(lenses)]
    return np.asarray(np.stack(counts) > HUB_FACTOR * depth / d_vocab * lists)


def coherence(ids: Ids, left_out: NDArray[np.bool_], directions: Directions) -> Float32:
    """Mean pairwise cosine of the first tokens of each list, hubs left out: ids (n, k) -> (n,).

    NaN where fewer than two tokens are left; tokens without direction are left out, too. `left_out` (d_vocab,).
    """
    first, weight = _first_tokens(ids, left_out | directions.missing)
    device = directions.units.device
    tokens, weights = torch.from_numpy(first).to(device), torch.from_numpy(weight).to(device)
    total = torch.nn.functional.embedding_bag(tokens, directions.units, mode="sum", per_sample_weights=weights)
    count = weights.sum(1).double()
    # |u_1 + ... + u_m|² = m + sum over ordered pairs of u_i · u_j
    mean = (total.double().square().sum(1) - count) / (count * (count - 1))
    return np.where(count.cpu().numpy() < 2, np.float32(np.nan), mean.float().cpu().numpy())


def pair_coherence(pairs: Ids, left_out: NDArray[np.bool_], source: Directions, target: Directions) -> np.float32:
    """The coherence of a list of pairs (n, 2): the mean of its two sides', of the first different tokens of each."""
    sides = []
    for side, directions in enumerate((source, target)):
        _, first_rank = np.unique(pairs[:, side], return_index=True)
        tokens = pairs[np.sort(first_rank), side][None]
        sides.append(coherence(tokens, left_out, directions)[0] if tokens.size else np.float32(np.nan))
    return np.float32(np.mean(sides))


def similarity(a: Ids, b: Ids) -> Float32:
    """Sim_k: the Jaccard index of two lists of k tokens, (n, k) each -> (n,)."""
    both = np.sort(np.concatenate([a, b], axis=1), axis=1)
    shared = (both[:, 1:] == both[:, :-1]).sum(axis=1)
    return np.asarray(shared / (both.shape[1] - shared), np.float32)


def _first_tokens(ids: Ids, left_out: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Float32]:
    """(n, FIRST_TOKENS) tokens, and 1 for those that are there; missing ones are token 0 with weight 0."""
    kept = ~left_out[ids]
    position = np.cumsum(kept, axis=1) - 1  # among those kept
    row, rank = np.nonzero(kept & (position < FIRST_TOKENS))
    tokens = np.zeros((len(ids), FIRST_TOKENS), np.int64)
    weight = np.zeros((len(ids), FIRST_TOKENS), np.float32)
    tokens[row, position[row, rank]] = ids[row, rank]
    weight[row, position[row, rank]] = 1
    return tokens, weight
