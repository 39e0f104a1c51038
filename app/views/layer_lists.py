"""All lists of a layer's neurons: what the CSV of a layer holds where it is asked for lists, token by token."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from lexiscope.app.views.checks import check_length
from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.layer import ordered_neurons
from lexiscope.app.views.tokens import Token, ViewOfModel, token_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS

Ends: TypeAlias = Literal["top", "bottom", "both"]
VECTORS = ("key", "up", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerListsView(ViewOfModel):
    layer: int
    lens: str
    token: Token | None  # only neurons whose key or value lists it
    neurons: tuple[int, ...]
    vectors: tuple[str, ...]  # of VECTORS, those that are stored
    ends: tuple[str, ...]
    ids: Array  # (neurons, vectors, ends, k)
    scores: Array
    texts: Any  # by token id
    left_out: frozenset[int]  # tokens; the others keep their ranks

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each token of each list."""
        for neuron, of_neuron, scores_of_neuron in zip(self.neurons, self.ids, self.scores, strict=True):
            for vector, of_vector, scores_of_vector in zip(self.vectors, of_neuron, scores_of_neuron, strict=True):
                for end, ids, scores in zip(self.ends, of_vector.tolist(), scores_of_vector.tolist(), strict=True):
                    for rank, (token, score) in enumerate(zip(ids, scores, strict=True), 1):
                        if token in self.left_out:
                            continue
                        entry = {"id": token, "token": self.texts[token]}
                        yield {
                            "neuron": neuron, "vector": vector, "end": end, "rank": rank, "token": entry,
                            "score": score,
                        }  # fmt: skip


def layer_lists_view(
    index: Index,
    layer: int,
    lens: str,
    sort: str,
    token: int | None,
    k: int | None,
    ends: Ends,
    hubs: frozenset[int] = frozenset(),
) -> LayerListsView:
    """The first k of each list, without the hubs that are given; None: all that is stored."""
    check_length(k)
    neurons = ordered_neurons(index, layer, lens, sort, token).tolist()
    vectors = tuple(name for name in VECTORS if f"ff_{name}" in index.stored.kinds)
    which = [(f"ff_{name}", neuron) for neuron in neurons for name in vectors]
    empty = np.empty((0, len(ENDS), index.manifest.k))
    ids, scores = index.shard(layer).vectors(which, lens) if which else (empty, empty)  # (neurons * vectors, E, K)
    chosen = ENDS if ends == "both" else (ends,)
    at = [ENDS.index(end) for end in chosen]
    shape = len(neurons), len(vectors), len(ENDS), ids.shape[-1]
    return LayerListsView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        lens=lens,
        token=None if token is None else token_of(index.tokens, token),
        neurons=tuple(neurons),
        vectors=vectors,
        ends=tuple(chosen),
        ids=ids.reshape(shape)[:, :, at, :k],
        scores=scores.reshape(shape)[:, :, at, :k],
        texts=index.tokens.texts,
        left_out=hubs,
    )
