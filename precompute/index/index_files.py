"""Open the files of an index. Each file must belong to this build and hold the arrays of its part; arrays that this
version does not know are ignored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.files import damaged
from lexiscope.precompute.index.layer.checks import LARGEST_COHERENCE, SIGNS, list_error
from lexiscope.precompute.index.layer.lists import VectorLists
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.layout import (
    PARTS,
    Layout,
    Piece,
    chance_layout,
    classifier_layout,
    heads_layout,
    misfits,
    neighbours_layout,
    shard_layout,
    stats_layout,
    vocabulary_layout,
)
from lexiscope.precompute.index.manifest import ClassifierEntry, Manifest
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import FORMAT, Array, Floats, TensorFile
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.shape import ENDS, Shape

KNOWN_METADATA = ("model", "build", "format", "layer", "part")  # a file may have further metadata


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens and the norms of their embeddings, in memory."""

    tokens: TokenTable
    # (d_vocab,) of the embedding, and of the unembedding if it is another matrix
    norms: tuple[Floats, ...]
    centred_norms: tuple[Floats, ...]

    @classmethod
    def of(cls, file: TensorFile, shape: Shape) -> "Vocabulary":
        try:
            tokens = TokenTable(file.array("token.offsets"), file.array("token.bytes"))
        except ValueError as error:
            raise damaged(file.path, f"is damaged: {error}") from None
        sides = ("embedding",) if shape.tied else ("embedding", "unembedding")
        norms, centred = (tuple(file.array(f"{side}.{norm}") for side in sides) for norm in ("norm", "centred_norm"))
        return cls(tokens, norms, centred)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Read the nearest tokens of every token, by cosine of the centred embeddings."""

    file: TensorFile

    def nearest(self, token: int) -> tuple[Array, Floats]:
        """Return ids and scores of the nearest tokens, nearest first."""
        ids, scores = (self.file.block(f"neighbours.{name}", token) for name in ("ids", "scores"))
        if what := list_error(ids, scores, self.file.tensors["neighbours.ids"].shape[0]):
            raise damaged(self.file.path, f"is damaged: the list of tokens nearest to {token} {what}")
        return ids, scores


@dataclass(frozen=True, eq=False)
class ClassifierLists:
    """Read the lists of a classification head, which belongs to no layer."""

    file: TensorFile
    stored: Stored
    entry: ClassifierEntry

    def vector(self, kind: str, index: int, lens: str) -> VectorLists:
        counts, lenses = self.entry.counts, self.stored.lenses
        if kind not in counts:
            raise NotFound(f"kind {kind!r}: the classification head has {', '.join(counts)}")
        if not 0 <= index < counts[kind]:
            raise NotFound(f"{kind} {index}: there are 0 to {counts[kind] - 1}")
        if lens not in lenses:
            raise NotFound(f"lens {lens!r}: there are {', '.join(lenses)}")
        at = index, lenses.index(lens)
        ids, scores = (self.file.block(f"{kind}.{name}", *at) for name in ("ids", "scores"))
        for end, listed, falling in zip(ENDS, ids, scores * SIGNS, strict=True):
            if wrong := list_error(listed, falling, self.stored.shape.d_vocab):
                raise damaged(self.file.path, f"is damaged: {kind} {index} ({lens}, {end}) {wrong}")
        coherences = self.file.block(f"{kind}.coherence", *at).tolist()
        norm = float(self.file.block(f"{kind}.norm", index))
        if any(abs(value) > LARGEST_COHERENCE for value in coherences) or not np.isfinite(norm):
            raise damaged(self.file.path, f"is damaged: the norm or coherence of {kind} {index} is no such number")
        return VectorLists(ids, scores, norm, *coherences)

    def base_norm(self, kind: str, index: int) -> float | None:
        """Return the norm of the base's vector, if this is a difference from a base with such a head."""
        return float(self.file.block(f"{kind}.base_norm", index)) if self.entry.subtracted else None


def metadata(manifest: Manifest, piece: Piece) -> dict[str, str]:
    """Return the metadata of a file: its build, its layer, and its part, except for parts that are as old as format
    3."""
    known = {"model": manifest.model, "build": manifest.build, "format": str(FORMAT)}
    if piece.layer is not None:
        known["layer"] = str(piece.layer)
    return known if PARTS[piece.part].version is None else known | {"part": piece.part}


def layout_of(manifest: Manifest, piece: Piece, file: str) -> Layout:
    """Return the arrays that a piece has in a file of this name, which tells the version of its part; the arrays of a
    classification head depend on its entry in the manifest."""
    return LAYOUTS[piece.part](manifest, piece.version_in(file))


def _head_layout(manifest: Manifest, _: int | None) -> Layout:
    head = manifest.classifier
    return classifier_layout(manifest.stored, head.counts, head.subtracted) if head else {}


# The arrays of each part, by its manifest and the version in the name of its file.
LAYOUTS: Mapping[str, Callable[[Manifest, int | None], Layout]] = {
    "vocabulary": lambda manifest, _: vocabulary_layout(manifest.shape),
    "classifier": _head_layout,
    "neighbours": lambda manifest, _: neighbours_layout(manifest.shape),
    "chance": lambda manifest, _: chance_layout(manifest.stored),
    "lists": lambda manifest, _: shard_layout(manifest.stored),
    "stats": lambda manifest, version: stats_layout(manifest.stored, version),
    "heads": lambda manifest, version: heads_layout(manifest.shape, version),
}


def open_piece(path: Path, manifest: Manifest, piece: Piece) -> TensorFile:
    """Open a file; raise ShardDamaged unless it holds this piece (a part of one layer, or of the whole model) of this
    build."""
    file, expected = TensorFile(path), metadata(manifest, piece)
    entry = manifest.entries().get(piece)
    name = entry.file if entry else path.name  # a file that has just arrived has another name than its entry says
    said = {name: file.metadata[name] for name in KNOWN_METADATA if name in file.metadata}
    if said != expected:
        layer = said.get("layer")
        if layer and "layer" in expected and said == expected | {"layer": layer}:
            raise damaged(path, f"is layer {layer}, not layer {expected['layer']}")
        raise damaged(path, f"belongs to another build: {said!a} instead of {expected}")
    arrays = {name: (tensor.dtype, tensor.shape) for name, tensor in file.tensors.items()}
    for error in misfits(arrays, layout_of(manifest, piece, name)):
        raise damaged(path, f"does not fit the manifest: {error}")
    if piece.part == "lists":
        _check_bounds(file, manifest.stored)
    return file


def open_listed(folder: Path, manifest: Manifest, piece: Piece) -> TensorFile:
    """Open a file that the manifest lists; raise ShardDamaged also if it has another length."""
    entry = manifest.entries()[piece]
    path = folder / entry.file
    file = open_piece(path, manifest, piece)
    if file.n_bytes != entry.bytes:
        raise damaged(path, f"has {file.n_bytes} bytes, the manifest says {entry.bytes}: it belongs to another build")
    return file


def open_shard(folder: Path, manifest: Manifest, layer: int) -> Shard:
    return Shard(open_listed(folder, manifest, Piece("lists", layer)), manifest.stored, layer)


def check_piece(path: Path, manifest: Manifest, piece: Piece) -> int:
    """Return the length of a file if the index can use it; raise ShardDamaged for every error that opening it can
    find."""
    file = open_piece(path, manifest, piece)
    if piece.part == "vocabulary":
        Vocabulary.of(file, manifest.shape)
    return file.n_bytes


def _check_bounds(file: TensorFile, stored: Stored) -> None:
    """Raise ShardDamaged unless, for each lens and end, the inverted lists begin where the lists before them end, and
    the last ones end with their arrays. These few numbers are zeros in a file that has its length and its header but
    not its content."""
    for lists, others in (("inverted", "vector"), ("paired", "place"))[: 2 if stored.pairs else 1]:
        n_entries, n_others = (file.tensors[f"{lists}.{name}"].shape[0] for name in ("rank", others))
        length = file.tensors[f"{lists}.offsets"].shape[-1]  # d_vocab + 1
        starts = np.arange(len(stored.lenses) * len(ENDS))[:, None] * length + (0, length - 1)
        bounds = [int.from_bytes(file.read(f"{lists}.offsets", at, at + 1), "little") for at in starts.ravel().tolist()]
        if n_entries != n_others or [0, *bounds[1::2]] != [*bounds[::2], n_entries]:
            raise damaged(file.path, f"is damaged: {lists}.offsets do not fit its {n_entries} entries")
