"""Checks the files of an index against the checksums in its manifest, without the weights."""

from collections.abc import Iterator

from lexiscope.precompute.errors import LexiscopeError, ShardDamaged
from lexiscope.precompute.files import sha256_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.index_files import open_classifier, open_neighbours
from lexiscope.precompute.index.manifest import TOKENIZER

Result = tuple[str, LexiscopeError | None]  # what was checked, and what is wrong with it


def check_sums(index: Index) -> Iterator[Result]:
    """Every file of the index against the manifest."""
    manifest = index.manifest
    layers = {f"layer {layer}": fault for layer, fault in index.faults.items()}
    for what, entry in manifest.files.items():
        fault: LexiscopeError | None = layers.get(what)
        try:
            if entry is manifest.neighbours:
                open_neighbours(index.folder / entry.file, manifest)
            if manifest.classifier and entry is manifest.classifier:
                open_classifier(index.folder / entry.file, manifest, manifest.classifier)
            entry.check_sum(index.folder)
        except LexiscopeError as wrong_sum:
            fault = fault or wrong_sum
        yield entry.file, fault
    path = index.folder / TOKENIZER
    try:
        wrong = "" if sha256_of(path) == manifest.tokenizer_sha256 else "is not the model's tokenizer"
    except OSError as error:
        wrong = f"cannot be read ({error.strerror})"
    remedy = f"Run `{manifest.rebuild_command}` again to replace it"
    yield TOKENIZER, ShardDamaged(f"{path} {wrong}. {remedy}") if wrong else None
