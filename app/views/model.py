"""A model's page: what is worth reading in it, and maps of its layers, heads and neurons by coherence."""

import random
from dataclasses import dataclass
from threading import Lock
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.library.card import architecture_name
from app.library.fault_text import for_visitors
from app.views.checks import finite
from app.views.tokens import TokenPair, View, token_pairs
from app.views.vectors import NOT_STORED
from app.views.worth_reading import HeadCard, NeuronCard, worth_reading
from precompute.errors import IndexFault, NotBuilt, NotFound
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.index.origin import public_source
from precompute.index.shard_reader import Shard, position
from precompute.rebuild_command import unless_running
from precompute.shape import PRESETS

STEPS = 10  # of the histogram of coherences, from 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the lists come from: a link shows the same lists as long as this is the same."""

    name: str  # what others call the model; "" if that is not known
    source: str
    revision: str
    origin: str  # the same for people
    weights_sha256: str
    build: str
    k: int
    pairs: Annotated[int, Field(description="Entries of a list of pairs; 0 where none are stored")]
    kinds: Annotated[tuple[str, ...], Field(description="The kinds of vectors that are stored")]
    lenses: Annotated[tuple[str, ...], Field(description="The lenses under which lists are stored")]


class HeadCell(TypedDict):
    head: int
    coherence: float | None
    first: TokenPair | None  # the best pair


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    layer: int
    ready: bool
    fault: str | None = None
    coherence: tuple[int, ...] = ()  # of its neurons' values: how many in each of ten equal steps from 0 to 1
    vo: tuple[HeadCell, ...] = ()  # empty unless ready; all are where the index does not store them (provenance)
    qk: tuple[HeadCell, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView(View):
    model: str
    lens: str
    preset: str  # of the pairs in the maps
    architecture: str  # the model_type of its config.json
    architecture_name: str  # what people call it
    causal: bool  # False: an encoder
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    provenance: Provenance
    rows: tuple[LayerRow, ...]  # top layer first
    neurons: Annotated[tuple[NeuronCard, ...] | None, NOT_STORED]  # most coherent values
    agreeing: Annotated[tuple[NeuronCard, ...] | None, NOT_STORED]  # key and value most alike; tokens of the value
    heads: Annotated[tuple[HeadCard, ...] | None, NOT_STORED]


_views: WeakKeyDictionary[Index, dict[tuple[str, str], ModelView]] = WeakKeyDictionary()
_views_lock = Lock()


def model_view(index: Index, lens: str = "dot", preset: str = "all") -> ModelView:
    """Kept as long as the index is: it looks at all layers, and everybody starts here."""
    check_lens(index, lens)
    position("preset", preset, PRESETS)
    with _views_lock:
        views = _views.setdefault(index, {})
        if (lens, preset) not in views:
            views[lens, preset] = _read_model(index, lens, preset)
        return views[lens, preset]


def random_neuron(index: Index) -> tuple[int, int]:
    check_kinds(index, *(kind for kind in index.shape.kinds if kind.startswith("ff_")))
    if not index.layers:
        manifest = index.manifest
        raise NotBuilt(f"no layer of {manifest.model} is ready yet. {unless_running(manifest.source)}")
    return random.choice(index.layers), random.randrange(index.shape.d_mlp)


def _read_model(index: Index, lens: str, preset: str) -> ModelView:
    manifest, shape = index.manifest, index.shape
    rows: list[LayerRow] = []
    whole: dict[int, Shard] = {}
    for layer in reversed(range(shape.n_layers)):
        try:
            shard = index.shard(layer)
            rows.append(_row(index, shard, lens, preset))
            whole[layer] = shard
        except IndexFault as fault:
            fault_text = for_visitors(fault, index.folder.parent)
            rows.append(LayerRow(layer=layer, ready=False, fault=fault_text))
        except NotFound:
            rows.append(LayerRow(layer=layer, ready=False))
    neurons, agreeing, heads = worth_reading(index, whole, lens)
    return ModelView(
        model=manifest.model,
        lens=lens,
        preset=preset,
        architecture=shape.architecture,
        architecture_name=architecture_name(shape),
        causal=shape.causal,
        d_model=shape.d_model,
        d_head=shape.d_head,
        d_mlp=shape.d_mlp,
        d_vocab=shape.d_vocab,
        n_layers=shape.n_layers,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        provenance=provenance(index),
        rows=tuple(rows),
        neurons=neurons,
        agreeing=agreeing,
        heads=heads,
    )


def provenance(index: Index) -> Provenance:
    manifest = index.manifest
    return Provenance(
        name=manifest.name,
        source=public_source(manifest.source, manifest.revision),
        revision=manifest.revision,
        origin=manifest.origin,
        weights_sha256=manifest.weights_sha256,
        build=manifest.build,
        k=manifest.k,
        pairs=manifest.pairs,
        kinds=manifest.stored.kinds,
        lenses=manifest.stored.lenses,
    )


def _row(index: Index, shard: Shard, lens: str, preset: str) -> LayerRow:
    coherence = shard.all_coherences("ff_value", lens) if "ff_value" in index.stored.kinds else np.empty(0)
    steps = np.clip(coherence[np.isfinite(coherence)] * STEPS, 0, STEPS - 1).astype(np.int64)
    cells = {matrix: _cells(index, shard, matrix, lens, preset) for matrix in index.stored.matrices}
    counts = tuple(np.bincount(steps, minlength=STEPS).tolist()) if "ff_value" in index.stored.kinds else ()
    return LayerRow(layer=shard.layer, ready=True, coherence=counts, vo=cells.get("vo", ()), qk=cells.get("qk", ()))


def _cells(index: Index, shard: Shard, matrix: str, lens: str, preset: str) -> tuple[HeadCell, ...]:
    """A cell of each head. Only its first two pairs are read: there may be a thousand heads."""
    ids, scores, counts = shard.first_pairs(matrix, lens, preset, 2)
    firsts = token_pairs(index.tokens, ids[:, 0].tolist(), scores[:, 0].tolist())
    coherences = shard.all_pair_coherences(matrix, lens, preset).tolist()
    return tuple(
        {"head": head, "coherence": finite(coherence), "first": first if count else None}
        for head, (first, count, coherence) in enumerate(zip(firsts, counts.tolist(), coherences, strict=True))
    )
