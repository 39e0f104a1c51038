"""Make small valid indexes with random lists, by the writers that the build job uses, and a vocabulary full of traps.
The numbers in them mean nothing; tests of the mathematics build real models."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.build.inverted import invert_lists, invert_pairs
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.index.layout import Piece, number_dtype, shard_layout
from lexiscope.precompute.index.manifest import TOKENIZER, Manifest
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import pack
from lexiscope.precompute.shape import LENSES, MATRICES, Shape

HOSTILE = (
    b"<script", b'"></', b"[bold red]", b":smile:", b"{{", b"%s", b"\x1b[31m", b"\x1b]0;title\x07", b"\r\n\t",
    b"\xe2\x80", b" \xf0\x9f\x98", b"\x9f\x98", "שלום".encode(), " مرحبا".encode(), "\u202egnp.exe".encode(),
    "\u0301".encode(), "日本語".encode(), b"        ",
)  # fmt: skip
WORDS = (b" dog", b" dogs", b" Dog", b"dog", b" horse", b" decade", b" decades", b" colour", b" color", b" it", b"'s")
SPECIAL = "<|endoftext|>"
PADDING = 3  # rows of the embedding without a token


def raw_tokens() -> list[bytes]:
    """Return a GPT-2-like vocabulary: all 256 bytes, then longer tokens, a special one, and rows without a token."""
    return [*(bytes([byte]) for byte in range(256)), *HOSTILE, *WORDS, SPECIAL.encode(), *[b""] * PADDING]


D_VOCAB = len(raw_tokens())

GPT2 = Shape(
    architecture="gpt2", n_layers=4, n_heads=2, n_kv_heads=2, d_model=8, d_head=4, d_mlp=6, d_vocab=D_VOCAB,
    gated=False, tied=True, positions="learned",
)  # fmt: skip
LLAMA = Shape(
    architecture="llama", n_layers=3, n_heads=4, n_kv_heads=2, d_model=12, d_head=3, d_mlp=5, d_vocab=D_VOCAB,
    gated=True, tied=False, positions="rotary",
)  # fmt: skip

K, PAIRS = 10, 7


def spell(raw: bytes) -> str:
    """Write a token in GPT-2's byte alphabet, by its published table rather than by the code under test."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return "".join(chr(byte) if byte in visible else chr(256 + hidden.index(byte)) for byte in raw)


def tokenizer_json() -> dict[str, Any]:
    special = raw_tokens().index(SPECIAL.encode())
    vocabulary = {spell(raw): token for token, raw in enumerate(raw_tokens()) if raw and token != special}
    return {
        "version": "1.0",
        "added_tokens": [{"id": special, "content": SPECIAL, "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def make_manifest(shape: Shape = GPT2, model: str = "tiny", k: int = K, pairs: int = PAIRS, **more: Any) -> Manifest:
    hashes = {
        "weights_sha256": hashlib.sha256(model.encode()).hexdigest(),
        "tokenizer_sha256": hashlib.sha256(_tokenizer_bytes()).hexdigest(),
    }
    source, more = f"someone/{model}", {"kinds": shape.kinds, **more}
    return Manifest(model=model, source=source, revision="", shape=shape, k=k, pairs=pairs, **hashes | more)


def vocabulary_arrays(shape: Shape) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(0)
    offsets, data = pack(raw_tokens()[: shape.d_vocab])
    norms = {
        f"{matrix}.{norm}": random.random(shape.d_vocab, np.float32)
        for matrix in (("embedding",) if shape.tied else ("embedding", "unembedding"))
        for norm in ("norm", "centred_norm")
    }
    return {"token.offsets": offsets, "token.bytes": data, **norms}


def shard_arrays(shape: Shape, k: int = K, pairs: int = PAIRS, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Make the arrays of a layer of which everything is stored."""
    return stored_arrays(Stored(shape, shape.kinds, LENSES, k, pairs), seed)


def stored_arrays(stored: Stored, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Make lists of distinct random tokens with scores in order; some pair lists are short or empty; all lists are
    inverted, too."""
    shape, k, pairs = stored.shape, stored.k, stored.pairs
    random = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}
    for name, (dtype, dimensions) in shard_layout(stored).items():
        if name.startswith(("inverted", "paired")):
            continue
        if name.endswith(".ids") and dimensions[-1] != 2:
            shuffled = np.argsort(random.random((*dimensions[:-1], shape.d_vocab)), axis=-1)
            arrays[name] = shuffled[..., :k].astype(number_dtype(shape.d_vocab))
        elif name.endswith(".ids"):
            arrays[name] = random.integers(0, shape.d_vocab, dimensions).astype(dtype)
        elif name.endswith(".count"):
            arrays[name] = random.integers(0, pairs + 1, dimensions).astype(dtype)
            arrays[name][0] = pairs
            arrays[name][-1, -1] = 0
        elif name.endswith(".scores"):  # the ends are the last axis but one
            falling = np.sort(random.random(dimensions, np.float32))[..., ::-1]
            arrays[name] = falling * np.array([[5], [-5]], np.float32)
        elif name.endswith(".singular"):
            arrays[name] = np.sort(random.random(dimensions, np.float32))[..., ::-1].copy()
        else:
            arrays[name] = random.random(dimensions, np.float32)
    for matrix in stored.matrices:
        unused = np.arange(pairs) >= arrays[f"{matrix}.count"][..., None]
        arrays[f"{matrix}.ids"][unused] = 0
        arrays[f"{matrix}.scores"][unused] = 0
    arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in stored.kinds], shape.d_vocab)
    if not pairs:
        return arrays
    ids, counts = ({matrix: arrays[f"{matrix}.{part}"] for matrix in MATRICES} for part in ("ids", "count"))
    return arrays | invert_pairs(ids, counts, shape.d_vocab)


def write_index(folder: Path, manifest: Manifest, layers: tuple[int, ...] | None = None) -> Manifest:
    """Write vocabulary, shards and manifest; the arrays of layer l are those of seed l."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TOKENIZER).write_bytes(_tokenizer_bytes())
    manifest = write_piece(folder, manifest, Piece("vocabulary"), vocabulary_arrays(manifest.shape))
    for layer in range(manifest.shape.n_layers) if layers is None else layers:
        manifest = add_layer(folder, manifest, layer)
    manifest.save(folder)
    return manifest


def add_layer(folder: Path, manifest: Manifest, layer: int) -> Manifest:
    arrays = stored_arrays(manifest.stored, seed=layer)
    return write_piece(folder, manifest, Piece("lists", layer), arrays)


def rewrite_shard(folder: Path, manifest: Manifest, layer: int, arrays: dict[str, NDArray[Any]]) -> None:
    """Replace the arrays of a layer, with a manifest that has their checksum."""
    write_piece(folder, manifest, Piece("lists", layer), arrays).save(folder)


@functools.cache
def _tokenizer_bytes() -> bytes:
    return json.dumps(tokenizer_json()).encode()
