"""Writes the files of an index: arrays checked against the layout, and the name of the build they belong to.
What is in the arrays is for the projection; which files to write, and when, for the build job."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from precompute.index.container import About, write_container
from precompute.index.layout import (
    Layout,
    misfits,
    neighbours_file,
    neighbours_layout,
    shard_file,
    shard_layout,
    vocabulary_file,
    vocabulary_layout,
)
from precompute.index.manifest import FileEntry, Manifest


def write_shard(folder: Path, manifest: Manifest, layer: int, arrays: Mapping[str, NDArray[Any]]) -> FileEntry:
    """Write one layer; it belongs to the index once the manifest lists the entry this returns."""
    layout = shard_layout(manifest.shape, manifest.k, manifest.pairs)
    about: About = {"model": manifest.model, "build": manifest.build, "layer": layer}
    return _write(folder / shard_file(layer, manifest.generation), arrays, layout, about)


def write_vocabulary(folder: Path, manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> FileEntry:
    about: About = {"model": manifest.model, "build": manifest.build}
    return _write(folder / vocabulary_file(manifest.generation), arrays, vocabulary_layout(manifest.shape), about)


def write_neighbours(folder: Path, manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> FileEntry:
    about: About = {"model": manifest.model, "build": manifest.build}
    return _write(folder / neighbours_file(manifest.generation), arrays, neighbours_layout(manifest.shape), about)


def _write(path: Path, arrays: Mapping[str, NDArray[Any]], layout: Layout, about: About) -> FileEntry:
    described = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    for problem in misfits(described, layout):
        raise TypeError(f"{path.name}: {problem}")
    sha256, n_bytes = write_container(path, arrays, about)
    return FileEntry(path.name, n_bytes, sha256)
