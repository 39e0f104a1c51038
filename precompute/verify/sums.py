"""Check the files of an index against the checksums in its manifest, without the weights."""

from collections.abc import Iterator

from lexiscope.precompute.errors import LexiscopeError, ShardDamaged
from lexiscope.precompute.files import sha256_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.index_files import check_piece
from lexiscope.precompute.index.manifest import TOKENIZER

Result = tuple[str, LexiscopeError | None]  # what was checked, and its error


def check_sums(index: Index) -> Iterator[Result]:
    """Compare every file of the index with the checksums in its manifest, also files of parts that this version does
    not know."""
    manifest = index.manifest
    for piece, entry in manifest.entries().items():
        first_error: LexiscopeError | None = index.faults.get(piece.layer or 0) if piece.part == "lists" else None
        try:
            if piece.is_known(entry.file) and not first_error:
                check_piece(index.folder / entry.file, manifest, piece)
            entry.check_sum(index.folder)
        except LexiscopeError as error:
            first_error = first_error or error
        yield entry.file, first_error
    path = index.folder / TOKENIZER
    try:
        why = "" if sha256_of(path) == manifest.tokenizer_sha256 else "is not the model's tokenizer"
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    remedy = f"Run `{manifest.rebuild_command}` again to replace it"
    yield TOKENIZER, ShardDamaged(f"{path} {why}. {remedy}") if why else None
