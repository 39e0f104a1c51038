"""Write the files of an index: arrays that fit the layout of their part, with metadata that name the build they belong
to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lexiscope.precompute.index.index_files import layout_of, metadata
from lexiscope.precompute.index.layout import Piece, misfits
from lexiscope.precompute.index.manifest import ClassifierEntry, FileEntry, Manifest
from lexiscope.precompute.index.tensor_file import Array, write_tensors


def write_piece(folder: Path, manifest: Manifest, piece: Piece, arrays: Mapping[str, Array], **about: Any) -> Manifest:
    """Write the file of a piece and return a manifest that lists it; the file belongs to the index once that manifest
    is saved. `about` holds further fields of the file's entry, which a classification head has."""
    path = folder / piece.file(manifest.generation)
    kind_of_entry = ClassifierEntry if piece.part == "classifier" else FileEntry
    entry = kind_of_entry(file=path.name, bytes=1, sha256="0" * 64, **about)
    layout = layout_of(manifest.with_entry(piece, entry), piece, path.name)
    described = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    unknown = (f"its array {name} is unknown" for name in sorted(arrays.keys() - layout.keys()))
    for error in (*unknown, *misfits(described, layout)):
        raise TypeError(f"{path.name}: {error}")
    sha256, n_bytes = write_tensors(path, arrays, metadata(manifest, piece))
    return manifest.with_entry(piece, entry.model_copy(update={"bytes": n_bytes, "sha256": sha256}))
