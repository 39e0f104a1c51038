"""Writes the files of an index: arrays checked against the layout, and the name of the build they belong to.
A file belongs to the index once the manifest lists the entry that writing it returns."""

from collections.abc import Mapping
from pathlib import Path

from lexiscope.precompute.index.index_files import metadata
from lexiscope.precompute.index.layout import (
    Layout,
    classifier_file,
    classifier_layout,
    misfits,
    neighbours_file,
    neighbours_layout,
    shard_file,
    shard_layout,
    vocabulary_file,
    vocabulary_layout,
)
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.manifest_entries import ClassifierEntry, FileEntry
from lexiscope.precompute.index.tensor_file import Array, write_tensors

Arrays = Mapping[str, Array]


def write_shard(folder: Path, manifest: Manifest, layer: int, arrays: Arrays) -> FileEntry:
    path = folder / shard_file(layer, manifest.generation)
    return _write(path, arrays, shard_layout(manifest.stored), metadata(manifest, layer))


def write_vocabulary(folder: Path, manifest: Manifest, arrays: Arrays) -> FileEntry:
    path = folder / vocabulary_file(manifest.generation)
    return _write(path, arrays, vocabulary_layout(manifest.shape), metadata(manifest))


def write_neighbours(folder: Path, manifest: Manifest, arrays: Arrays) -> FileEntry:
    path = folder / neighbours_file(manifest.generation)
    return _write(path, arrays, neighbours_layout(manifest.shape), metadata(manifest))


def write_classifier(
    folder: Path, manifest: Manifest, arrays: Arrays, labels: tuple[str, ...], subtracted: bool
) -> ClassifierEntry:
    path, dense = folder / classifier_file(manifest.generation), len(arrays.get("dense.norm", ()))
    counts = {"classifier": len(labels)} | ({"dense": dense} if dense else {})
    entry = _write(path, arrays, classifier_layout(manifest.stored, counts, subtracted), metadata(manifest))
    return ClassifierEntry(**entry.model_dump(), labels=labels, dense=dense, subtracted=subtracted)


def _write(path: Path, arrays: Arrays, layout: Layout, about: Mapping[str, str]) -> FileEntry:
    for problem in misfits({name: (array.dtype, array.shape) for name, array in arrays.items()}, layout):
        raise TypeError(f"{path.name}: {problem}")
    sha256, n_bytes = write_tensors(path, arrays, about)
    return FileEntry(file=path.name, bytes=n_bytes, sha256=sha256)
