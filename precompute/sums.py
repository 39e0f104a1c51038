"""Checks the files of an index against the checksums in its manifest: needs numpy alone.
Whether the lists in them are right is for verify.py."""

from collections.abc import Iterator

from precompute.errors import LexiscopeError, ShardDamaged
from precompute.files import sha256_of
from precompute.index import Index
from precompute.manifest import TOKENIZER

Result = tuple[str, LexiscopeError | None]  # what was checked, and what is wrong with it


def check_sums(index: Index) -> Iterator[Result]:
    """Every file of the index against the manifest."""
    manifest = index.manifest
    entries = [(None, manifest.vocabulary), *manifest.shards.items()]
    for layer, entry in entries:
        if entry is not None:
            fault: LexiscopeError | None = None if layer is None else index.faults.get(layer)
            try:
                entry.check_sum(index.folder)
            except LexiscopeError as wrong_sum:
                fault = fault or wrong_sum
            yield entry.file, fault
    path = index.folder / TOKENIZER
    try:
        wrong = "" if sha256_of(path) == manifest.tokenizer_sha256 else "is not the model's tokenizer"
    except OSError as error:
        wrong = f"cannot be read ({error.strerror})"
    remedy = f"Run `lexiscope precompute {manifest.model}` again to replace it"
    yield TOKENIZER, ShardDamaged(f"{path} {wrong}. {remedy}") if wrong else None
