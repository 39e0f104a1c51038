"""Read the lists of one layer, of a kind of vectors or of the pairs of heads, as numpy columns with a row for each
entry; and the moments of lists, with a row for each vector and lens.

Lists that say nothing have no rows: those of vectors and heads that did not change in a difference, and those of
directions that a head does not have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.files import damaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.checks import SIGNS, list_error, unsound
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.layout import MOMENTS, NEURON_PAIRS
from lexiscope.precompute.index.stored import position
from lexiscope.precompute.shape import DIRECTION_KINDS, ENDS, PRESETS

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Named:
    """A column of texts, held as positions in `names`: a name or a token is in memory once, however many rows have
    it."""

    numbers: Array
    names: Sequence[str]
    # True: names are the vocabulary, in which several tokens may have the same text; False: names are few.
    tokens: bool = False


Column: TypeAlias = Array | Named | None  # None: this list has no such number
Columns: TypeAlias = Mapping[str, Column]  # all of one length, except None


def vector_columns(
    index: Index, kind: str, layer: int, lenses: Sequence[str], ends: Sequence[str] = ENDS, k: int | None = None
) -> Columns:
    """Return the first k entries of every list of a kind. The column `head` is None for neurons; for a vector that
    heads share, it is the first of them."""
    shape, shard = index.shape, index.shard(layer)
    lens_at, end_at = _positions("lens", lenses, index.stored.lenses), _positions("end", ends, ENDS)
    ids, scores = (shard.array(f"{kind}.{part}")[:, lens_at] for part in ("ids", "scores"))  # (n, lenses, 2, k)
    bad = unsound(ids, scores * SIGNS, shape.d_vocab)
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise _damaged(shard, f"{kind} {at[0]}", ids[at], scores[at] * SIGNS[at[-1]], shape.d_vocab)
    numbers = np.arange(len(ids), dtype=np.uint32)
    if index.stored.difference or kind in DIRECTION_KINDS:
        numbers = numbers[shard.all_norms(kind) > 0]
    ids, scores = (part[numbers][:, :, end_at, :k] for part in (ids, scores))  # (n, lenses, ends, k)
    vector, lens, end, rank = _axes(ids.shape)
    heads, in_head = _heads(index, kind, len(shard.all_norms(kind)))
    return {
        "layer": np.full(ids.size, layer, np.uint16),
        "head": None if heads is None else heads[numbers][vector],
        "index": in_head[numbers][vector],
        "lens": Named(lens.astype(np.int8), lenses),
        "end": Named(end.astype(np.int8), ends),
        "rank": (rank + 1).astype(np.uint16),
        "token_id": ids.reshape(-1).astype(np.uint32),
        "token": Named(ids.reshape(-1), index.tokens.texts, tokens=True),
        "score": scores.reshape(-1),
    }


def pair_columns(
    index: Index,
    matrix: str,
    layer: int,
    lenses: Sequence[str],
    presets: Sequence[str] = PRESETS,
    ends: Sequence[str] = ENDS,
    k: int | None = None,
) -> Columns:
    """Return the first k pairs of every head's lists."""
    shard, stored, d_vocab = index.shard(layer), index.stored, index.shape.d_vocab
    lens_at, preset_at = _positions("lens", lenses, stored.lenses), _positions("preset", presets, PRESETS)
    end_at = _positions("end", ends, ENDS)
    chosen: Any = (slice(None), *np.ix_(lens_at, preset_at, end_at))
    ids, scores, counts = (
        shard.array(f"{matrix}.{part}")[chosen] for part in ("ids", "scores", "count")
    )  # counts: (n_heads, lenses, presets, ends); ids have two more axes (pairs, 2), scores one
    if counts.size and counts.max() > stored.pairs:
        raise damaged(shard.file.path, f"is damaged: {matrix} claims {counts.max()} pairs in a list")
    if stored.difference:
        counts = np.where((shard.heads.all_matrix_norms(matrix)[0] > 0)[:, None, None, None], counts, 0)
    there = np.arange(stored.pairs) < counts[..., None]  # (n_heads, lenses, presets, ends, pairs)
    signs = SIGNS[end_at]
    bad = unsound(ids, scores * signs, d_vocab, there)
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        falling = (scores[at] * signs[at[-1]])[: counts[at]]
        raise _damaged(shard, f"{matrix} of head {at[0]}", ids[at][: counts[at]], falling, d_vocab)
    there[..., stored.pairs if k is None else k :] = False
    head, lens, preset, end, rank = (axis[there.reshape(-1)] for axis in _axes(there.shape))
    first, second = ids[there].T
    return {
        "layer": np.full(len(head), layer, np.uint16),
        "head": head.astype(np.uint16),
        "lens": Named(lens.astype(np.int8), lenses),
        "preset": Named(preset.astype(np.int8), presets),
        "end": Named(end.astype(np.int8), ends),
        "rank": (rank + 1).astype(np.uint32),
        "from_id": first.astype(np.uint32),
        "from": Named(first, index.tokens.texts, tokens=True),
        "to_id": second.astype(np.uint32),
        "to": Named(second, index.tokens.texts, tokens=True),
        "score": scores[there],
    }


def stats_columns(index: Index, layer: int, lenses: Sequence[str]) -> Columns:
    """Return the moments of all lists of a layer, and what else is stored of their vectors, NaN where it is not.
    `z_top` and `z_bottom` are those of the first token at either end; `line95` and `line99` those that z reaches by
    chance."""
    file, kinds, cosines = index.part("stats", layer), index.stored.kinds, index.stats(layer, "ff.cosines")
    neurons = [kind for kind in kinds if kind.startswith("ff_")]
    lens_at = _positions("lens", lenses, index.stored.lenses)
    moments, z = (
        np.concatenate([file.array(f"{kind}.{name}")[:, lens_at] for kind in kinds]) for name in ("moments", "z")
    )  # (vectors of all kinds, lenses, 4) and (vectors of all kinds, lenses, 2)
    of_kind = np.repeat(np.arange(len(kinds), dtype=np.int8), [index.shape.count(kind) for kind in kinds])
    places = [_heads(index, kind, index.shape.count(kind)) for kind in kinds]
    heads = np.concatenate([np.zeros(len(at), np.uint16) if head is None else head for head, at in places])
    has_no_head = np.concatenate([np.full(len(at), head is None) for head, at in places])
    vector, lens = _axes(z.shape[:2])
    chance = [[index.chance(kind, lens) for lens in lenses] for kind in kinds]
    found = np.array(
        [[(c.line95, c.line99) if c else (np.nan,) * 2 for c in of_kind] for of_kind in chance], np.float32
    )

    def of_vectors(known: Mapping[str, Array | None]) -> Array:
        """Return a number of each vector, in a row for each lens; NaN of kinds without numbers."""
        made = [known.get(kind) for kind in kinds]
        unknown = [np.full(index.shape.count(kind), np.nan, np.float32) for kind in kinds]
        return np.concatenate([no if some is None else some for some, no in zip(made, unknown, strict=True)])[vector]

    return {
        "layer": np.full(len(vector), layer, np.uint16),
        "kind": Named(of_kind[vector], kinds),
        "head": np.ma.array(heads, mask=has_no_head)[vector],
        "index": np.concatenate([at for _, at in places])[vector],
        "lens": Named(lens.astype(np.int8), lenses),
        **{name: moments[vector, lens, at] for at, name in enumerate(MOMENTS)},
        **{f"z_{end}": z[vector, lens, at] for at, end in enumerate(ENDS)},
        **{f"line{share}": found[of_kind[vector], lens, at] for at, share in enumerate((95, 99))},
        "unembedding": of_vectors({kind: index.stats(layer, f"{kind}.unembedding") for kind in kinds}),
        **{
            f"cos_{one[3:]}_{other[3:]}": of_vectors({} if cosines is None else dict.fromkeys(neurons, cosines[:, at]))
            for at, (one, other) in enumerate(NEURON_PAIRS)
        },
    }


def _positions(what: str, names: Sequence[str], known: Sequence[str]) -> list[int]:
    return [position(what, name, known) for name in names]


def _axes(shape: tuple[int, ...]) -> list[Array]:
    """Return one array for each axis: for every entry of an array of this shape, in order, its position along that
    axis."""
    return [np.broadcast_to(axis, shape).reshape(-1) for axis in np.ogrid[tuple(map(slice, shape))]]


def _heads(index: Index, kind: str, n: int) -> tuple[Array | None, Array]:
    """Return, for every vector of a kind, its head (None for neurons) and its number in that head."""
    if kind.startswith("ff_"):
        return None, np.arange(n, dtype=np.uint32)
    heads, numbers = np.array([index.shape.head_and_subhead(kind, row) for row in range(n)]).T
    return heads.astype(np.uint16), numbers.astype(np.uint32)


def _damaged(shard: Shard, what: str, ids: Array, falling: Array, d_vocab: int) -> Exception:
    return damaged(shard.file.path, f"is damaged: {what} {list_error(ids, falling, d_vocab)}")
