"""An index of a chosen size with random lists, for measuring how it is read: valid in every respect but meaning.
Lists of random weights look the same: any token is as likely as any other."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.build.inverted import invert_lists, invert_pairs
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.files import sha256_of
from lexiscope.precompute.index.layout import Piece, number_dtype, shard_layout
from lexiscope.precompute.index.manifest import TOKENIZER, Manifest
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import pack, token_bytes
from lexiscope.precompute.shape import LENSES, MATRICES, Shape

D_VOCAB = 50257
STEPS = (7919, 10007, 15013, 20011, 25013, 30011)  # primes that do not divide the last id: no token twice in a list


def gpt2_shape(n_layers: int, d_model: int, n_heads: int) -> Shape:
    return Shape(
        "gpt2", n_layers, n_heads, n_heads, d_model, d_model // n_heads, 4 * d_model, D_VOCAB, False, True, "learned"
    )


def write_random_index(
    data: Path,
    name: str,
    shape: Shape,
    tokenizer: Path,
    layers: int | None = None,
    k: int = 100,
    pairs: int = 500,
    weights: str = "",
) -> Path:
    """Write the top `layers` of the model (None: all). `weights` is the hash of the weights that the index names."""
    folder = data / name
    folder.mkdir(parents=True)
    (folder / TOKENIZER).write_bytes(tokenizer.read_bytes())
    weights = weights or hashlib.sha256(name.encode()).hexdigest()
    manifest = Manifest(
        model=name,
        source=f"random/{name}",
        revision="",
        weights_sha256=weights,
        tokenizer_sha256=sha256_of(tokenizer),
        shape=shape,
        kinds=shape.kinds,
        k=k,
        pairs=pairs,
    )
    offsets, text = pack(token_bytes(tokenizer, shape.d_vocab))
    ones = np.ones(shape.d_vocab, np.float32)
    arrays: dict[str, NDArray[Any]] = {
        "token.offsets": offsets,
        "token.bytes": text,
        "embedding.norm": ones,
        "embedding.centred_norm": ones,
    }
    manifest = write_piece(folder, manifest, Piece("vocabulary"), arrays)
    for layer in range(shape.n_layers - (layers or shape.n_layers), shape.n_layers):
        manifest = write_piece(folder, manifest, Piece("lists", layer), _layer(shape, k, pairs, layer))
    manifest.save(folder)
    return folder


def _layer(shape: Shape, k: int, pairs: int, seed: int) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(seed)
    hub = (
        shape.d_vocab - 1
    )  # like a hub of the demo: in a tenth of lists, first in a hundredth, in a twentieth of pairs
    arrays: dict[str, NDArray[Any]] = {}
    for name, (dtype, dimensions) in shard_layout(Stored(shape, shape.kinds, LENSES, k, pairs)).items():
        if name.startswith(("inverted", "paired")):
            continue
        if name.endswith(".ids") and dimensions[-1] == 2:
            ids = random.integers(0, hub, dimensions).astype(dtype)
            arrays[name] = np.where(random.random(dimensions) < 1 / 40, hub, ids).astype(dtype)
        elif name.endswith(".ids"):
            start = random.integers(0, hub, dimensions[:-1])[..., None]
            step = random.choice(STEPS, dimensions[:-1])[..., None]
            ids = (start + step * np.arange(k)) % hub
            rank = random.integers(0, k, dimensions[:-1]) * (random.random(dimensions[:-1]) < 9 / 10)
            held = (np.arange(k) == rank[..., None]) & (random.random((*dimensions[:-1], 1)) < 1 / 10)
            arrays[name] = np.where(held, hub, ids).astype(number_dtype(shape.d_vocab))
        elif name.endswith(".count"):
            arrays[name] = np.full(dimensions, pairs, dtype)
        elif name.endswith(".scores"):  # the ends are the last axis but one
            falling = np.linspace(5, 1, dimensions[-1], dtype=np.float32) + random.random((*dimensions[:-1], 1))
            arrays[name] = (falling * np.array([[1], [-1]])).astype(np.float32)
        elif name.endswith(".singular"):
            arrays[name] = np.sort(random.random(dimensions, np.float32))[:, ::-1].copy()
        else:
            arrays[name] = random.random(dimensions, np.float32)
    arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in shape.kinds], shape.d_vocab)
    pair_ids, counts = ({matrix: arrays[f"{matrix}.{part}"] for matrix in MATRICES} for part in ("ids", "count"))
    return arrays | invert_pairs(pair_ids, counts, shape.d_vocab)
