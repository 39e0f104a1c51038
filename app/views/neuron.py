"""A neuron's page: what it reads (key, and up where neurons are gated) and what it writes (value)."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from app.views.checks import check_number
from app.views.difference import minus_of
from app.views.labels import LABELS, ShownLabel
from app.views.matches import Matches
from app.views.notes import neuron_note
from app.views.similarity import End, Shuffled, agreement
from app.views.tokens import NOTE, OMIT_NONE, PAGE_ONLY, Token, ViewOfModel
from app.views.vectors import NOT_STORED, Reading, Vector, stored_vectors
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens

AGREES: Any = Field(description="The end of the value that is more similar to the key's top; null where neither is")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronView(ViewOfModel):
    layer: int
    neuron: int
    lens: str
    key: Annotated[Vector | None, NOT_STORED]
    value: Annotated[Vector | None, NOT_STORED]
    up: Annotated[Vector | None, OMIT_NONE] = None  # only where neurons are gated, and it is stored
    similarity: Annotated[float | None, NOT_STORED]  # of the key's top with the value's top
    similarity_bottom: Annotated[float | None, NOT_STORED]  # and with its bottom
    reading: Annotated[Reading | None, OMIT_NONE] = None  # if asked for
    agrees: Annotated[End | None, AGREES]
    shared: Annotated[list[Token], Field(description="At the key's top and that end of the value, of all stored")]
    along: Annotated[list[Token], Field(description="Of these, at the top of up")]
    opposed: Annotated[list[Token], Field(description="Of these, at the bottom of up")]
    shuffled: Annotated[Shuffled | None, NOT_STORED]
    matches: Annotated[Matches | None, OMIT_NONE] = None  # in models that it is compared with, if asked for
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    telling: Annotated[bool, PAGE_ONLY] = False  # whether the similarity is large enough to say what it means
    note: Annotated[str, NOTE] = ""


def neuron_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> NeuronView:
    of_model = [kind for kind in ("ff_key", "ff_value", "ff_up") if kind in index.shape.kinds]
    check_lens(index, lens)
    check_kinds(index, *of_model)
    shard = index.shard(layer)
    check_number(index, "neuron", neuron, index.shape.d_mlp)
    kinds = [kind for kind in of_model if kind in index.stored.kinds]
    lists, all_ids = stored_vectors(index, shard, [(kind, neuron) for kind in kinds], lens, k)
    vectors, ids = dict(zip(kinds, lists, strict=True)), dict(zip(kinds, all_ids, strict=True))  # ids: (E, K)
    agreed = None
    if index.stored.similarity and not (vectors["ff_key"].unchanged or vectors["ff_value"].unchanged):
        lists_of_both = ids["ff_key"], ids["ff_value"]
        agreed = agreement(index, shard, "ff", shard.similarity(neuron, lens), lens, *lists_of_both)
    shared = agreed.shared if agreed else []
    in_up = [set(end.tolist()) for end in ids["ff_up"]] if "ff_up" in ids else [set(), set()]
    along, opposed = ([token for token in shared if token["id"] in end] for end in in_up)
    return NeuronView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        neuron=neuron,
        lens=lens,
        key=vectors.get("ff_key"),
        value=vectors.get("ff_value"),
        up=vectors.get("ff_up"),
        similarity=agreed.top if agreed else None,
        similarity_bottom=agreed.bottom if agreed else None,
        agrees=agreed.end if agreed else None,
        shared=shared,
        along=along,
        opposed=opposed,
        shuffled=agreed.shuffled if agreed else None,
        telling=agreed is not None and agreed.is_telling,
        note=neuron_note(index.shape),
    )
