"""A model's page: what is worth reading in it, and maps of its layers, heads and neurons by coherence.
The choice of what is worth reading is in worth_reading.py."""

import random
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from app.library.fault_text import for_visitors
from app.views.page_types import HeadCell, LayerRow, ModelView, Provenance
from app.views.parts import finite, place_of, token_views
from app.views.worth_reading import worth_reading
from precompute.errors import IndexFault, NotBuilt, NotFound
from precompute.index.index import Index
from precompute.index.shard_reader import Shard
from precompute.rebuild_command import unless_running
from precompute.shape import LENSES, MATRICES, PRESETS

STEPS = 10  # of the histogram of coherences, from 0 to 1

_made: WeakKeyDictionary[Index, dict[tuple[str, str], ModelView]] = WeakKeyDictionary()
_making = Lock()


def model_view(index: Index, lens: str = "dot", preset: str = "all") -> ModelView:
    """Kept as long as the index is: it looks at all layers, and everybody starts here."""
    place_of("lens", lens, LENSES)
    place_of("preset", preset, PRESETS)
    with _making:
        views = _made.setdefault(index, {})
        if (lens, preset) not in views:
            views[lens, preset] = _model_view(index, lens, preset)
        return views[lens, preset]


def random_neuron(index: Index) -> tuple[int, int]:
    if not index.layers:
        manifest = index.manifest
        raise NotBuilt(f"no layer of {manifest.model} is ready yet. {unless_running(manifest.source)}")
    return random.choice(index.layers), random.randrange(index.shape.d_mlp)


def _model_view(index: Index, lens: str, preset: str) -> ModelView:
    manifest, shape = index.manifest, index.shape
    rows: list[LayerRow] = []
    whole: dict[int, Shard] = {}
    for layer in reversed(range(shape.n_layers)):
        try:
            shard = index.shard(layer)
            rows.append(_row(index, shard, lens, preset))
            whole[layer] = shard
        except IndexFault as fault:
            rows.append(_blank(layer, for_visitors(fault, index.folder.parent)))
        except NotFound:
            rows.append(_blank(layer, None))
    neurons, agreeing, heads = worth_reading(index, whole, lens)
    return ModelView.of(
        model=manifest.model,
        lens=lens,
        preset=preset,
        architecture=shape.architecture,
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
    return Provenance.of(
        name=manifest.name,
        source=manifest.source,
        revision=manifest.revision,
        origin=manifest.origin,
        weights_sha256=manifest.weights_sha256,
        build=manifest.build,
        k=manifest.k,
        pairs=manifest.pairs,
    )


def _blank(layer: int, fault: str | None) -> LayerRow:
    return LayerRow.of(layer=layer, ready=False, fault=fault, coherence=(), vo=(), qk=())


def _row(index: Index, shard: Shard, lens: str, preset: str) -> LayerRow:
    coherence = shard.all_coherences("ff_value", lens)
    steps = np.clip(coherence[np.isfinite(coherence)] * STEPS, 0, STEPS - 1).astype(np.int64)
    cells = {matrix: _cells(index, shard, matrix, lens, preset) for matrix in MATRICES}
    counts = np.bincount(steps, minlength=STEPS).tolist()
    return LayerRow.of(layer=shard.layer, ready=True, fault=None, coherence=tuple(counts), **cells)


def _cells(index: Index, shard: Shard, matrix: str, lens: str, preset: str) -> tuple[HeadCell, ...]:
    """Only the first two pairs of each head are read: there may be a thousand heads."""
    ids, scores, counts = shard.first_pairs(matrix, lens, preset, 2)
    columns = (ids[:, 0], scores[:, 0], counts, shard.all_pair_coherences(matrix, lens, preset))
    cells: list[HeadCell] = []
    for head, (pair, score, count, coherence) in enumerate(zip(*map(np.ndarray.tolist, columns), strict=True)):
        cell: HeadCell = {"head": head, "coherence": finite(coherence), "first": None}
        if count:
            first, second = token_views(index.tokens, pair)
            cell["first"] = {"from": first, "to": second, "score": score}
        cells.append(cell)
    return tuple(cells)
