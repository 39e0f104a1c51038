"""Make small indexes with hubs: tokens with which most of their lists begin."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.build.inverted import invert_lists
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.shape import ENDS, Shape
from tests.support.synthetic import D_VOCAB, GPT2, make_manifest, raw_tokens, rewrite_shard, stored_arrays, write_index

WORDS = [token for token, raw in enumerate(raw_tokens()) if re.fullmatch(rb" [A-Za-z]{3,}", raw)]
DOG, BYTE = WORDS[0], 200  # a word, and a token that nobody can read


def crowded(
    manifest: Manifest, layer: int, tokens: dict[str, tuple[int, ...]], share: float
) -> dict[str, NDArray[Any]]:
    """Make the arrays of a layer in which, under these lenses, a share of the lists begin with these tokens."""
    arrays, random = stored_arrays(manifest.stored, seed=layer), np.random.default_rng(layer)
    for kind, (lens_at, lens) in product(manifest.stored.kinds, enumerate(manifest.stored.lenses)):
        ids = arrays[f"{kind}.ids"]
        for at in np.ndindex(len(ids), len(ENDS)):
            row = ids[at[0], lens_at, at[1]]
            if random.random() < share:
                first = list(tokens.get(lens, ()))
                row[:] = [*first, *(token for token in row.tolist() if token not in first)][: len(row)]
    return arrays | invert_lists([arrays[f"{kind}.ids"] for kind in manifest.stored.kinds], D_VOCAB)


def make(folder: Path, tokens: dict[str, tuple[int, ...]], share: float, shape: Shape = GPT2, **more: Any) -> Index:
    manifest = write_index(folder, make_manifest(shape, **more))
    for layer in range(shape.n_layers):
        rewrite_shard(folder, manifest, layer, crowded(manifest, layer, tokens, share))
        manifest = Manifest.load(folder)
    return Index.open(folder)


def write_crowded_neighbours(folder: Path, hub: int) -> tuple[Manifest, dict[str, NDArray[Any]]]:
    """Write an index with random nearest tokens, of which one is near to most others."""
    manifest, random = write_index(folder, make_manifest(), layers=(0,)), np.random.default_rng(0)
    ids = np.argsort(random.random((D_VOCAB, D_VOCAB)), axis=1)[:, :20]
    ids[: int(0.8 * D_VOCAB), 3] = hub
    scores = np.tile(np.linspace(1, 0, 20, dtype=np.float32), (D_VOCAB, 1))
    arrays: dict[str, NDArray[Any]] = {"neighbours.ids": ids.astype(np.uint16), "neighbours.scores": scores}
    write_piece(folder, manifest, Piece("neighbours"), arrays).save(folder)
    return manifest, arrays
