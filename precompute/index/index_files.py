"""Opens the files of an index: each must be of this build and hold exactly the arrays of its layout."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lexiscope.precompute.files import damaged
from lexiscope.precompute.index.classifier_reader import ClassifierLists
from lexiscope.precompute.index.layout import (
    Layout,
    classifier_layout,
    misfits,
    neighbours_layout,
    shard_layout,
    vocabulary_layout,
)
from lexiscope.precompute.index.list_checks import fault
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.manifest_entries import ClassifierEntry
from lexiscope.precompute.index.shard_reader import Shard
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import FORMAT, Array, Floats, TensorFile
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.shape import ENDS


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens and the norms of their embeddings, in memory."""

    n_bytes: int  # of the file
    tokens: TokenTable
    centred_norms: tuple[Floats, ...]  # (d_vocab,) of the embedding, and of the unembedding where it is another


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest tokens of every token, by cosine of the centred embeddings."""

    file: TensorFile

    def nearest(self, token: int) -> tuple[Array, Floats]:
        """Ids and scores, nearest first."""
        ids, scores = (self.file.block(f"neighbours.{part}", token) for part in ("ids", "scores"))
        if what := fault(ids, scores, self.file.tensors["neighbours.ids"].shape[0]):
            raise damaged(self.file.path, f"is damaged: the list of tokens nearest to {token} {what}")
        return ids, scores


def metadata(manifest: Manifest, layer: int | None = None) -> dict[str, str]:
    """What every file of a build says of itself; a shard says its layer, too."""
    known = {"model": manifest.model, "build": manifest.build, "format": str(FORMAT)}
    return known if layer is None else known | {"layer": str(layer)}


def open_shard(path: Path, manifest: Manifest, layer: int) -> Shard:
    file = _open(path, metadata(manifest, layer), shard_layout(manifest.stored))
    _check_bounds(file, manifest.stored)
    return Shard(file, manifest.stored, layer)


def open_vocabulary(path: Path, manifest: Manifest) -> Vocabulary:
    file = _open(path, metadata(manifest), vocabulary_layout(manifest.shape))
    try:
        tokens = TokenTable(file.array("token.offsets"), file.array("token.bytes"))
    except ValueError as error:
        raise damaged(path, f"is damaged: {error}") from None
    sides = ("embedding",) if manifest.shape.tied else ("embedding", "unembedding")
    return Vocabulary(file.n_bytes, tokens, tuple(file.array(f"{side}.centred_norm") for side in sides))


def open_neighbours(path: Path, manifest: Manifest) -> Neighbours:
    return Neighbours(_open(path, metadata(manifest), neighbours_layout(manifest.shape)))


def open_classifier(path: Path, manifest: Manifest, entry: ClassifierEntry) -> ClassifierLists:
    layout = classifier_layout(manifest.stored, entry.counts, entry.subtracted)
    return ClassifierLists(_open(path, metadata(manifest), layout), manifest.stored, entry)


def _open(path: Path, expected: dict[str, str], layout: Layout) -> TensorFile:
    file = TensorFile(path)
    if file.metadata != expected:
        layer = file.metadata.get("layer")
        if layer and file.metadata == expected | {"layer": layer} and "layer" in expected:
            raise damaged(path, f"is layer {layer}, not layer {expected['layer']}")
        raise damaged(path, f"belongs to another build: {dict(file.metadata)!a} instead of {expected}")
    arrays = {name: (tensor.dtype, tensor.shape) for name, tensor in file.tensors.items()}
    for problem in misfits(arrays, layout):
        raise damaged(path, f"does not fit the manifest: {problem}")
    return file


def _check_bounds(file: TensorFile, stored: Stored) -> None:
    """ShardDamaged unless the inverted lists of each lens and end begin where the ones before end, and end with their
    arrays: a few numbers, which are zeros where a file has its length and its header but not what was written."""
    for lists, others in (("inverted", "vector"), ("paired", "place"))[: 2 if stored.pairs else 1]:
        n_entries, n_others = (file.tensors[f"{lists}.{part}"].shape[0] for part in ("rank", others))
        length = file.tensors[f"{lists}.offsets"].shape[-1]  # d_vocab + 1
        starts = np.arange(len(stored.lenses) * len(ENDS))[:, None] * length + (0, length - 1)
        bounds = [int.from_bytes(file.read(f"{lists}.offsets", at, at + 1), "little") for at in starts.ravel().tolist()]
        if n_entries != n_others or [0, *bounds[1::2]] != [*bounds[::2], n_entries]:
            raise damaged(file.path, f"is damaged: {lists}.offsets do not fit its {n_entries} entries")
