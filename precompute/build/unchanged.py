"""Handle vectors and heads of a difference that did not change, and directions that a head does not have. Their scores
are all 0, so their lists hold the smallest ids and say nothing. Such lists are written, but they do not count for hubs,
coherence, similarity and inverted lists."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.index.index_files import open_shard
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.project.vectors import Ids, Lists

Array = NDArray[Any]
Changed = NDArray[np.bool_]  # (n,) which vectors of a kind changed; in a model, all but directions of length 0


def with_unchanged(lists: Lists, changed: Changed) -> Lists:
    """Make the lists (n, lenses, ends, k) of all vectors of a difference, given the lists of those vectors that
    changed."""
    if changed.all():
        return lists
    sizes = (len(changed), *lists.ids.shape[1:])
    ids, scores = np.empty(sizes, lists.ids.dtype), np.zeros(sizes, lists.scores.dtype)
    ids[~changed] = np.arange(sizes[-1])
    ids[changed], scores[changed] = lists.ids, lists.scores
    return Lists(ids, scores)


def ids_of_changed(ids: Ids, changed: Changed) -> Ids:
    return ids if changed.all() else ids[changed]


def told_apart(ids: Mapping[str, Ids], changed: Mapping[str, Changed], d_vocab: int) -> dict[str, Ids]:
    """Return the lists by kind, with those of unchanged vectors replaced by ids that no token has and no other kind
    uses: unchanged vectors then share nothing with any list."""
    apart = dict(ids)
    for at, (kind, of_kind) in enumerate(ids.items()):
        if not changed[kind].all():
            length = of_kind.shape[-1]
            no_tokens = np.arange(d_vocab + at * length, d_vocab + (at + 1) * length, dtype=of_kind.dtype)
            apart[kind] = np.where(changed[kind][:, None, None, None], of_kind, no_tokens)
    return apart


def counts_of_changed(counts: Array, norms: Array | None) -> Array:
    """Return how many pairs the lists of each head have (n_heads, lenses, presets, ends): 0 if the head did not
    change."""
    return counts if norms is None else np.where((norms > 0)[:, None, None, None], counts, 0).astype(counts.dtype)


def changes_text(folder: Path, manifest: Manifest) -> str:
    """Return a text that says how much of a difference changed, in the layers that are built."""
    changed, total, same = 0, 0, []
    for layer in manifest.shards:
        try:
            shard = open_shard(folder, manifest, layer)
            norms = np.concatenate([shard.all_norms(kind) for kind in manifest.stored.counted_kinds])
        except IndexFault:  # a fault in a layer that was not asked for does not matter here
            continue
        changed += int((norms > 0).sum())
        total += len(norms)
        if not norms.any():
            same.append(layer)
    if total and not changed:
        return "nothing changed: every vector of the tuned model is that of the base"
    text = f"{changed} of {total} vectors changed"
    return f"{text}; nothing in {layers_text(tuple(same))}" if same else text


def layers_text(layers: tuple[int, ...]) -> str:
    return f"layer{'s' if len(layers) > 1 else ''} {ranges(layers)}"
