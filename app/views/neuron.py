"""A neuron's page: what it reads (key, and up where neurons are gated) and what it writes (value)."""

from dataclasses import dataclass
from typing import Annotated

from app.views.checks import check_number
from app.views.tokens import OMIT_NONE, PAGE_ONLY, Token, View, tokens_of
from app.views.vectors import Reading, Vector, stored_vectors
from precompute.index.index import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronView(View):
    model: str
    layer: int
    neuron: int
    lens: str
    key: Vector
    value: Vector
    up: Annotated[Vector | None, OMIT_NONE]  # only where neurons are gated
    similarity: float
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    shared: Annotated[list[Token], PAGE_ONLY]  # at the top of key and value, of all that is stored
    opposed: Annotated[list[Token], PAGE_ONLY]  # of these, at the bottom of up


def neuron_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> NeuronView:
    shard, gated = index.shard(layer), index.shape.gated
    check_number(index, "neuron", neuron, index.shape.d_mlp)
    kinds = ("ff_key", "ff_value", "ff_up") if gated else ("ff_key", "ff_value")
    vectors, ids = stored_vectors(index, shard, [(kind, neuron) for kind in kinds], lens, k)  # ids: (V, E, K)
    in_key = set(ids[0, 0].tolist())
    shared = [token for token in ids[1, 0].tolist() if token in in_key]
    below_up = set(ids[2, 1].tolist()) if gated else set()
    return NeuronView(
        model=index.manifest.model,
        layer=layer,
        neuron=neuron,
        lens=lens,
        key=vectors[0],
        value=vectors[1],
        up=vectors[2] if gated else None,
        similarity=shard.similarity(neuron, lens),
        shared=tokens_of(index.tokens, shared),
        opposed=tokens_of(index.tokens, [token for token in shared if token in below_up]),
    )
