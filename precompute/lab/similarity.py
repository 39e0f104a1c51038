"""Measure whether the two vectors of a neuron, or of a subhead, have similar lists: Sim_k of matching pairs, and of
pairs shuffled within the layer (appendix B.1, figure 6). This needs the index alone.

This is done for each layer, each lens and each of `ff` (ff_key, ff_value), `vo` (w_v, w_o) and `qk` (w_q, w_k). The n
pairs are numbered head after head, without those in which a vector is zero. Shuffle number s puts the numbers in the
order of numpy's RandomState(seed + s).permutation(n), and compares the first vector of each pair with the second vector
of the next pair in this order, and that of the last pair with that of the first. With seed 0, shuffle 0 is the one that
an index stores.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.errors import NotStored
from lexiscope.precompute.files import damaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import Similarities, SimilaritiesOfLens, SimilarityPart
from lexiscope.precompute.index.layer.shard import NOTABLE, Shard
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.project.similarity import in_common, partners
from lexiscope.precompute.shape import COMPARED, ENDS

SIMILARITY_TOKENS, SHUFFLES = 100, 10
NOTABLE_PERCENT = 15  # percentage of its tokens that two lists must have in common to count

Numbers = dict[str, float]  # the numbers of one layer by field of Similarities
Ids = NDArray[np.integer]


def measure_similarity(index: Index, seed: int, layer_done: Callable[[], None] = lambda: None) -> SimilarityPart:
    """Measure the similarities in all layers that the index has."""
    stored = index.stored
    if not stored.compared:
        raise NotStored(
            f"similarities of {index.manifest.model}: its index stores no two kinds of vectors that belong together. "
            f"`{index.manifest.rebuild_command} --kinds {','.join(index.shape.kinds)} --force` builds it with all"
        )
    k = compared_k(stored)
    by_layer: dict[tuple[str, str], list[Numbers]] = {
        (lens, compared): [{} for _ in range(index.shape.n_layers)]
        for lens in stored.lenses
        for compared in stored.compared
    }
    for layer in index.layers:
        shard = index.shard(layer)
        for (lens, compared), numbers in by_layer.items():
            numbers[layer] = _of_layer(shard, index, compared, lens, k, seed)
        layer_done()
    of_lens = {
        lens: {compared: _similarities(by_layer[lens, compared]) for compared in stored.compared}
        for lens in stored.lenses
    }
    cosine = {"cosine": SimilaritiesOfLens(**of_lens["cosine"])} if "cosine" in of_lens else {}
    return SimilarityPart.model_validate(
        of_lens.get("dot", {}) | {"lenses": cosine, "k": k, "shuffles": SHUFFLES, "seed": seed, "layers": index.layers}
    )


def compared_k(stored: Stored) -> int:
    """Return how many tokens of each list are compared: as many as in the paper, or all if lists are shorter."""
    return min(SIMILARITY_TOKENS, stored.k)


def _similarities(layers: list[Numbers]) -> Similarities:
    columns = {name: tuple(numbers.get(name) for numbers in layers) for name in Similarities.model_fields}
    return Similarities.model_validate(columns)


def _of_layer(shard: Shard, index: Index, compared: str, lens: str, k: int, seed: int) -> Numbers:
    """Measure one layer; return an empty dict if there are not two pairs to shuffle."""
    first, second = COMPARED[compared]
    rows = {kind: np.array(index.shape.rows(kind)) for kind in (first, second)}
    with_norm = np.logical_and(*(shard.all_norms(kind)[rows[kind]] > 0 for kind in (first, second)))
    numbers = {kind: of_kind[with_norm] for kind, of_kind in rows.items()}
    if (n := len(numbers[first])) < 2:
        return {}
    top = shard.first_ids(first, numbers[first], lens, k)
    others = [shard.first_ids(second, numbers[second], lens, k, end) for end in ENDS]
    orders = [partners(n, seed + shuffle) for shuffle in range(SHUFFLES)]
    matched = _Measured(top, others)
    shuffled = [_Measured(top, [other[order] for other in others]) for order in orders]
    if any(measured.common.max() > k for measured in (matched, *shuffled)):
        raise damaged(shard.file.path, f"is damaged: a list of {first} or {second} holds a token twice")
    means = [measured.top for measured in shuffled]
    return {
        "matched": matched.top,
        "shuffled": float(np.mean(means)),
        "shuffled_low": min(means),
        "shuffled_high": max(means),
        "matched_bottom": matched.bottom,
        "shuffled_bottom": float(np.mean([measured.bottom for measured in shuffled])),
        "share_15": matched.share_15,
        "shuffled_15": float(np.mean([measured.share_15 for measured in shuffled])),
        "common_15": matched.common_15,
        "shuffled_common_15": float(np.mean([measured.common_15 for measured in shuffled])),
    }


class _Measured:
    """The similarities of the top lists of n first vectors (n, k) with the top and the bottom lists of n second
    vectors."""

    def __init__(self, top: Ids, others: list[Ids]) -> None:
        self.common = np.stack([in_common(top, other) for other in others], axis=1)  # (n, ends)
        k = top.shape[1]
        similarity = self.common / (2 * k - self.common)
        self.top, self.bottom = similarity.mean(axis=0).tolist()
        self.share_15 = float((similarity.max(axis=1).astype(np.float32) >= NOTABLE).mean())
        self.common_15 = float((100 * self.common[:, 0] >= NOTABLE_PERCENT * k).mean())
