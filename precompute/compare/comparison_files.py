"""Manage the folder of a comparison: find the files in it that can be used, and add files to it."""

from collections.abc import Mapping
from pathlib import Path

from lexiscope.precompute.errors import IndexFault, IndexMissing, OptionsDiffer, ShardDamaged
from lexiscope.precompute.files import PARTIAL, sha256_of
from lexiscope.precompute.index.comparison import open_comparison_file
from lexiscope.precompute.index.comparison_record import KERNEL, ComparisonRecord, comparison_file
from lexiscope.precompute.index.layout import misfits
from lexiscope.precompute.index.manifest import FileEntry
from lexiscope.precompute.index.stitching import STITCHING
from lexiscope.precompute.index.tensor_file import Array, write_tensors
from lexiscope.precompute.shape import SIDES

_OWN_FILES = {comparison_file(name) for name in (*SIDES, KERNEL)}


def read_state(folder: Path, new: ComparisonRecord, force: bool) -> ComparisonRecord:
    """Return the record `new` with the files that exist and need not be made, and save it; raise OptionsDiffer if the
    folder holds another comparison.

    With `force`, existing files are not used, and stitching runs that were made from other weights are removed.
    """
    try:
        current = ComparisonRecord.load_stamped(folder)[0]
    except IndexMissing:
        current = None
    except IndexFault:
        if not force:
            raise
        current = None
        (folder / STITCHING).unlink(missing_ok=True)
    if current and current.build != new.build:
        if not force:
            raise OptionsDiffer(
                f"{folder} holds another comparison, {_difference(current, new)}: add --force to replace it, or "
                "compare elsewhere with --data DIR"
            )
        (folder / STITCHING).unlink(missing_ok=True)
    record = new if force else new.with_files(_whole_files(folder, new, current.files if current else {}))
    if current and not force:
        record = record.model_copy(update={"chance": current.chance})
    if record != current:
        record.save(folder)
    remove_unlisted(folder, record)
    return record


def add_file(folder: Path, record: ComparisonRecord, name: str, arrays: Mapping[str, Array]) -> ComparisonRecord:
    """Write the file of a kind of vectors, or of the kernel, and list it in the record; only listed files are used."""
    path = folder / comparison_file(name)
    layout = record.layout(name)
    for error in misfits({array: (values.dtype, values.shape) for array, values in arrays.items()}, layout):
        raise TypeError(f"{path.name}: {error}")
    sha256, n_bytes = write_tensors(path, arrays, record.metadata)
    record = record.with_files({**record.files, name: FileEntry(file=path.name, bytes=n_bytes, sha256=sha256)})
    record.save(folder)
    return record


def remove_unlisted(folder: Path, record: ComparisonRecord) -> None:
    """Remove files that the record does not list, which a killed job or another comparison left."""
    listed = {entry.file for entry in record.files.values()}
    for path in folder.iterdir():
        if path.suffix == PARTIAL or (path.name in _OWN_FILES and path.name not in listed):
            path.unlink(missing_ok=True)


def _whole_files(folder: Path, new: ComparisonRecord, listed: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
    """Return the files that can be used: those that the record lists, and those that were finished but not yet listed
    when the job was killed."""
    files: dict[str, FileEntry] = {}
    for name in (*new.kinds, KERNEL):
        try:
            n_bytes = open_comparison_file(folder, new, name).n_bytes
        except ShardDamaged:
            continue
        entry = listed.get(name)
        if entry is None or entry.bytes != n_bytes:
            path = folder / comparison_file(name)
            entry = FileEntry(file=path.name, bytes=n_bytes, sha256=sha256_of(path))
        files[name] = entry
    return files


def _difference(current: ComparisonRecord, new: ComparisonRecord) -> str:
    """Return a text that names the first difference between two comparisons."""
    for side in ("a", "b"):
        old_model, new_model = getattr(current, side), getattr(new, side)
        if old_model.weights_sha256 != new_model.weights_sha256:
            return f"made when {new_model.model} had other weights, from {old_model.source}"
        if old_model != new_model.model_copy(update={"source": old_model.source}):
            return f"made from another {new_model.model}, from {old_model.source}"
    return f"made from {current.tokens} common tokens, not {new.tokens}"
