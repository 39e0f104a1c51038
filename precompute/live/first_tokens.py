"""Find the first tokens of vectors exactly: those that a full sort of float64 scores, rounded once to float32, would
give. float32 products propose tokens, float64 decides; ties are ordered by the smaller id.

While an index does not have a layer yet, the words of that layer's vectors on a page are computed here: each answer
names the vectors of which a page shows words. The words of vectors in other layers are stored in the index.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.live import token_kernel
from lexiscope.precompute.live.proposals import error_of_products, proposals
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS, scored
from lexiscope.precompute.live.wire.answers import ActiveNeuron, FirstTokens, ScoredToken
from lexiscope.precompute.live.wire.fields import End, Lens, Unbuilt, unpack_tokens
from lexiscope.precompute.live.words import Vocabulary
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import SIDES, Shape

FIRST_TOKENS_MADE = 25  # how many first tokens a list has


def exact_lists(
    vocabulary: Vocabulary, vectors: Float64, lens: Lens, k: int, end: End = "top",
    check: Callable[[], None] = lambda: None, only: NDArray[np.bool_] | None = None,
) -> list[list[ScoredToken]]:  # fmt: skip
    """Return for each of the vectors (n, d_model) the k tokens with the largest scores or, at the bottom end, with the
    most negative ones.

    A token's score is v · e, and under the lens cosine v · (e - mean) / |e - mean|. Where `only` (d_vocab,) is given,
    other tokens than those it flags are left out. `check` is called between products; an error that it raises ends the
    work.
    """
    lists: list[list[ScoredToken]] = []
    sign = 1.0 if end == "top" else -1.0
    W = vocabulary.W
    left_out = None if only is None else torch.from_numpy(~only).to(W.device)
    k = k if only is None else min(k, int(only.sum()))
    if not k:
        return [[] for _ in vectors]
    share, least = error_of_products(W.shape[1])
    size = vocabulary.norm + least  # (d_vocab,): the error of a score is proportional to it
    if lens == "cosine":
        size = (size + float(np.linalg.norm(vocabulary.mean))) * vocabulary.inverse
    for start in range(0, len(vectors), PRODUCT_ROWS):
        check()
        block = np.ascontiguousarray(sign * vectors[start : start + PRODUCT_ROWS])
        shifts, lengths = block @ vocabulary.mean, np.linalg.norm(block, axis=1) + least
        scores = torch.from_numpy(block).float().to(W.device) @ W.T  # (block, d_vocab)
        if lens == "cosine":
            scores.sub_(torch.from_numpy(shifts).float().to(W.device)[:, None]).mul_(vocabulary.inverse)
        if left_out is not None:
            scores.masked_fill_(left_out, -torch.inf)
        for row, length in enumerate(lengths.tolist()):
            near = proposals(scores[row], size, share * length, k).cpu().numpy()
            exact = token_kernel.dots(block, vocabulary.embedding.rows, np.full(len(near), row), near)
            if lens == "cosine":
                exact = (exact - shifts[row]) * vocabulary.exact_inverse[near]
            rounded = exact.astype(np.float32)
            best = np.lexsort((near, -rounded))[:k]
            values = sign * rounded[best] + np.float32(0)  # + 0 turns -0 into 0
            lists.append(scored(near[best].tolist(), values.tolist()))
    return lists


@dataclass(frozen=True)
class ListEnd:
    """One end of the token list of a vector: the top (largest scores) or the bottom (most negative ones)."""

    kind: str
    layer: int
    index: int
    end: End = "top"


def first_tokens(
    vectors: Callable[[str, int], Tensor], reads: Vocabulary, writes: Vocabulary, unbuilt: Unbuilt | None,
    wanted: Iterable[ListEnd],
) -> list[FirstTokens]:  # fmt: skip
    """Return the first tokens at those `wanted` ends of lists whose layers the index does not have yet, each once.

    `vectors` returns all vectors of a kind in a layer, (count, d_model); they are compared with W_E (`reads`) or W_U
    (`writes`).
    """
    if unbuilt is None:
        return []
    missing = [each for each in dict.fromkeys(wanted) if each.layer in unbuilt.layers]
    only = unpack_tokens(unbuilt.only, len(reads.W))
    found: list[FirstTokens] = []
    ends: tuple[End, ...] = ("top", "bottom")
    for side, vocabulary in (("reads", reads), ("writes", writes)):
        for end in ends:
            some = [each for each in missing if SIDES[each.kind] == side and each.end == end]
            if not some:
                continue
            rows = np.stack([vectors(each.kind, each.layer)[each.index].cpu().numpy() for each in some])
            lists = exact_lists(vocabulary, rows.astype(np.float64), unbuilt.lens, FIRST_TOKENS_MADE, end, only=only)
            found += [
                FirstTokens(
                    kind=each.kind,
                    layer=each.layer,
                    index=each.index,
                    end=end,
                    tokens=[token["id"] for token in tokens],
                )
                for each, tokens in zip(some, lists, strict=True)
            ]
    return found


def first_tokens_cost(shape: Shape, unbuilt: Unbuilt | None) -> float:
    """Return how many multiplications the first tokens of a shown vector take on average: they are computed only in
    layers that the index does not have yet."""
    return shape.d_vocab * shape.d_model * len(unbuilt.layers) / shape.n_layers if unbuilt else 0.0


def ends_of_neuron(neuron: ActiveNeuron, *, up: bool = False) -> Iterable[ListEnd]:
    """Yield the ends of lists that a page shows for a neuron: one of its key, one of its value and, with `up`, both of
    its up vector."""
    layer, number = neuron["layer"], neuron["neuron"]
    yield ListEnd("ff_key", layer, number)
    yield ListEnd("ff_value", layer, number, neuron["end"])
    if up:
        yield ListEnd("ff_up", layer, number, "top")
        yield ListEnd("ff_up", layer, number, "bottom")


def promoted_end(coefficient: float) -> End:
    """Return the end of a value's list that holds the tokens promoted by a neuron with this coefficient: the bottom if
    the coefficient is negative."""
    return "top" if coefficient >= 0 else "bottom"
