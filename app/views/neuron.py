"""A neuron's page: what it reads (key, and up where neurons are gated) and what it writes (value)."""

from dataclasses import dataclass
from typing import Annotated

from app.views.checks import check_number
from app.views.notes import neuron_note
from app.views.tokens import OMIT_NONE, PAGE_ONLY, Token, View, tokens_of
from app.views.vectors import NOT_STORED, Reading, Vector, stored_vectors
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronView(View):
    model: str
    layer: int
    neuron: int
    lens: str
    key: Annotated[Vector | None, NOT_STORED]
    value: Annotated[Vector | None, NOT_STORED]
    up: Annotated[Vector | None, OMIT_NONE]  # only where neurons are gated, and it is stored
    similarity: Annotated[float | None, NOT_STORED]
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    shared: Annotated[list[Token], PAGE_ONLY]  # at the top of key and value, of all that is stored
    opposed: Annotated[list[Token], PAGE_ONLY]  # of these, at the bottom of up
    note: Annotated[str, PAGE_ONLY]


def neuron_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> NeuronView:
    of_model = [kind for kind in ("ff_key", "ff_value", "ff_up") if kind in index.shape.kinds]
    check_lens(index, lens)
    check_kinds(index, *of_model)
    shard = index.shard(layer)
    check_number(index, "neuron", neuron, index.shape.d_mlp)
    kinds = [kind for kind in of_model if kind in index.stored.kinds]
    lists, all_ids = stored_vectors(index, shard, [(kind, neuron) for kind in kinds], lens, k)
    vectors, ids = dict(zip(kinds, lists, strict=True)), dict(zip(kinds, all_ids, strict=True))  # ids: (E, K)
    both = index.stored.similarity
    in_key = set(ids["ff_key"][0].tolist()) if both else set()
    shared = [token for token in ids["ff_value"][0].tolist() if token in in_key] if both else []
    below_up = set(ids["ff_up"][1].tolist()) if "ff_up" in ids else set()
    return NeuronView(
        model=index.manifest.model,
        layer=layer,
        neuron=neuron,
        lens=lens,
        key=vectors.get("ff_key"),
        value=vectors.get("ff_value"),
        up=vectors.get("ff_up"),
        similarity=shard.similarity(neuron, lens) if both else None,
        shared=tokens_of(index.tokens, shared),
        opposed=tokens_of(index.tokens, [token for token in shared if token in below_up]),
        note=neuron_note(index.shape),
    )
