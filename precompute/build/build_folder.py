"""Manage the folder that a build writes to: find what it holds already and can be used, and let a rebuild replace the
index in it."""

import contextlib
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lexiscope.precompute.errors import IndexFault, IndexMissing, OldFormat, OptionsDiffer, ShardDamaged
from lexiscope.precompute.files import PARTIAL, folder_gone, read_regular, sha256_of, write_beside
from lexiscope.precompute.index.index_files import Vocabulary, check_piece, open_listed, open_shard
from lexiscope.precompute.index.layer.hubs import lens_that_reads_best
from lexiscope.precompute.index.layout import OWN_FILE, PARTS, Piece
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, FileEntry, Manifest, read_old_fields
from lexiscope.precompute.index.tokens import whole_words

NEXT = "manifest.next.json"  # lists the files of a rebuild; removed when the rebuild has taken the index's place
ARRIVING = ".arriving"  # a folder with files that `lexiscope pull` has not verified yet


@dataclass(frozen=True)
class BuildFolder:
    folder: Path
    manifest_name: str  # the name of the manifest that the build writes: MANIFEST, or NEXT beside it
    tokenizer: Path

    def check(self) -> None:
        """Raise BuildError if the folder is gone, before time is spent on a layer that could not be written."""
        if not self.folder.is_dir():
            raise folder_gone(self.folder)

    def save(self, manifest: Manifest) -> None:
        """Save the manifest; from then on the files that it lists belong to the index. Readers of an index that is not
        being rebuilt see them at once."""
        if self.manifest_name == MANIFEST:
            self._put_tokenizer(manifest)
        manifest.save(self.folder, self.manifest_name)

    def finish(self, manifest: Manifest) -> bool:
        """Give the manifest its final name and remove the files that it does not list; return True if anything was
        written."""
        new_tokenizer = self._put_tokenizer(manifest)
        new_manifest = _content(self.folder / MANIFEST) != manifest.to_json()
        if new_manifest:
            manifest.save(self.folder)
        self._tidy(manifest)
        return new_tokenizer or new_manifest

    def has_unfinished_rebuild(self) -> bool:
        return (self.folder / NEXT).exists()

    def _put_tokenizer(self, manifest: Manifest) -> bool:
        path = self.folder / TOKENIZER
        with contextlib.suppress(OSError):
            if sha256_of(path) == manifest.tokenizer_sha256:
                return False
        write_beside(path, [read_regular(self.tokenizer)])
        return True

    def _tidy(self, manifest: Manifest) -> None:
        """Remove files that an earlier generation of the index, an older format or a killed writer left.

        The manifest of a rebuild is removed last: while it exists, a killed rebuild can be continued.
        """
        rebuilt = _load_rebuilt(self.folder)
        unfinished = rebuilt is not None and rebuilt.generation > manifest.generation
        listed = manifest.file_names | (rebuilt.file_names if rebuilt and unfinished else set())
        for path in self.folder.iterdir():
            if path.suffix == PARTIAL or (OWN_FILE.fullmatch(path.name) and path.name not in listed):
                path.unlink(missing_ok=True)
        shutil.rmtree(self.folder / ARRIVING, ignore_errors=True)
        if not unfinished:
            (self.folder / NEXT).unlink(missing_ok=True)


def load_current(folder: Path, weights_sha256: str, force: bool) -> Manifest | None:
    """Return the manifest of the index in the folder, if there is one that this build can continue.

    A manifest that cannot be read is an error unless it is to be replaced. A manifest of an older format is an error
    unless it was made from the same weights, because then everything can be made again.
    """
    try:
        return Manifest.load(folder)
    except IndexMissing:
        return None
    except OldFormat as error:
        if force or read_old_fields(folder).get("weights_sha256") == weights_sha256:
            return None
        raise OptionsDiffer(
            f"{error}, but it was made from other weights than these: add --force to replace it"
        ) from None
    except IndexFault:
        if force:
            return None
        raise


def read_build_state(
    folder: Path, new: Manifest, current: Manifest | None, wanted: Collection[Piece], force: bool
) -> tuple[Manifest, str]:
    """Return the manifest `new` with the files that need not be made again, and the file name under which it is to be
    saved."""
    if force:
        return _rebuild_state(folder, new, current, wanted), NEXT
    if current and current.build != new.build and not current.shards:  # the index has no layers that could be lost
        return new.with_changes(generation=current.generation + 1), MANIFEST
    if current is None:
        return _with_unlisted(folder, new, all_pieces(new)), MANIFEST
    if current.build != new.build:
        raise OptionsDiffer(
            f"{folder} holds another build, from {current.source} ({_difference(current, new)}): add --force to "
            "replace it, or choose another --data DIR"
        )
    known = {"embedding_change": new.embedding_change or current.embedding_change}
    whole = _without_broken(folder, current.with_changes(source=new.source, minus=new.minus, **known), wanted)
    return _with_unlisted(folder, whole, set(all_pieces(new)) - current.entries().keys()), MANIFEST


def all_pieces(manifest: Manifest) -> list[Piece]:
    """Return every piece (file) that an index can have, of all parts that this version knows; not every model has all
    of them."""
    layers = range(manifest.shape.n_layers)
    return [Piece(part.name, layer) for part in PARTS.values() for layer in (layers if part.of_layers else (None,))]


def in_order(pieces: Collection[Piece]) -> list[Piece]:
    """Sort pieces into the order in which they are made or fetched: what all layers share, then upper layers first,
    whose lists read best. Nearest tokens and lines of chance come after the first layer, so that a layer can be read
    soon."""
    top = max((piece.layer for piece in pieces if piece.layer is not None), default=None)

    def turn(piece: Piece) -> tuple[int, int, int]:
        late = piece.part in ("neighbours", "chance")
        when = 2 if late else 0 if piece.layer is None else 1 if piece.layer == top else 3
        return when, -(piece.layer or 0), [*PARTS].index(piece.part)

    return sorted(pieces, key=turn)


def missing_pieces(manifest: Manifest, wanted: Collection[Piece]) -> list[Piece]:
    """Return the wanted pieces that the manifest does not list, or lists only in an older version, in the order to make
    them."""
    entries = manifest.entries()
    return in_order([piece for piece in wanted if piece not in entries or piece.is_older(entries[piece].file)])


def generation_after(old: Mapping[str, Any]) -> int:
    """Return the generation number of an index that replaces one of an older format, whose manifest has these fields.
    Files of format 1 have names of their own, those of later formats differ by their generation."""
    generation = old.get("generation")
    return generation + 1 if "format" in old and type(generation) is int and 0 < generation < 1 << 20 else 1


def with_best_lens(folder: Path, manifest: Manifest) -> Manifest:
    """Return the manifest with the name of the lens (dot or cosine) whose lists read best, if all layers are built;
    otherwise return it unchanged."""
    if manifest.reads_best or len(manifest.shards) < manifest.shape.n_layers or manifest.vocabulary is None:
        return manifest
    try:
        tokens = Vocabulary.of(open_listed(folder, manifest, Piece("vocabulary")), manifest.shape).tokens
        shards = [open_shard(folder, manifest, layer) for layer in manifest.shards]
    except IndexFault:  # a fault in a layer that was not asked for does not matter here
        return manifest
    return manifest.with_changes(reads_best=lens_that_reads_best(shards, manifest.stored, whole_words([*tokens])))


def _rebuild_state(folder: Path, new: Manifest, current: Manifest | None, wanted: Collection[Piece]) -> Manifest:
    """Return the manifest of a rebuild: it lists what a killed rebuild of the same build has made, and what the index
    has and is not to be rebuilt."""
    generation = current.generation + 1 if current else new.generation
    rebuilt = _load_rebuilt(folder)
    if rebuilt and rebuilt.build == new.build and rebuilt.generation in (generation - 1, generation):
        # The generation of the index itself, if the rebuild was killed after taking its place.
        generation = rebuilt.generation
        own = {piece: entry for piece, entry in rebuilt.entries().items() if _is_of(piece, entry, generation)}
        new = new.with_changes(embedding_change=rebuilt.embedding_change).with_entries(own)
    state = _without_broken(folder, new.with_changes(generation=generation), all_pieces(new))
    if current:
        state = _with_unlisted(folder, state, all_pieces(new))
        if current.build == new.build:
            kept = {piece: entry for piece, entry in current.entries().items() if piece not in wanted}
            state = state.with_changes(**current.model_extra or {}).with_entries(kept | state.entries())
    return state


def _is_of(piece: Piece, entry: FileEntry, generation: int) -> bool:
    return piece.is_known(entry.file) and entry.file == piece.file(generation)


def _without_broken(folder: Path, manifest: Manifest, pieces: Collection[Piece]) -> Manifest:
    """Return the manifest without those of these pieces, and of what all layers share, whose files cannot be used: they
    are made again. Parts that are not known here are kept."""

    def is_whole(piece: Piece, entry: FileEntry) -> bool:
        looked_at = piece.is_known(entry.file) and (piece.layer is None or piece in pieces)
        return not looked_at or _usable_bytes(folder / entry.file, manifest, piece) == entry.bytes

    return manifest.only({piece for piece, entry in manifest.entries().items() if is_whole(piece, entry)})


def _with_unlisted(folder: Path, manifest: Manifest, pieces: Collection[Piece]) -> Manifest:
    """Return the manifest with files added that are whole but not listed, because the build was killed or another
    machine made them. The file of a classification head is made again, because its entry holds more than the file
    tells."""
    found: dict[Piece, FileEntry] = {}
    for piece in pieces:
        path = folder / piece.file(manifest.generation)
        if piece.part == "classifier" or piece in manifest.entries():
            continue
        if n_bytes := _usable_bytes(path, manifest, piece):
            found[piece] = FileEntry(file=path.name, bytes=n_bytes, sha256=sha256_of(path))
    return manifest.with_entries(found)


def _usable_bytes(path: Path, manifest: Manifest, piece: Piece) -> int | None:
    """Return the length of a file that the index can use, judged by opening it; `verify` compares checksums."""
    try:
        return check_piece(path, manifest, piece)
    except ShardDamaged:  # a NewerFormat passes, because a file of a newer version is not ours to replace
        return None


def _load_rebuilt(folder: Path) -> Manifest | None:
    try:
        return Manifest.load(folder, NEXT)
    except IndexFault:
        return None


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _difference(current: Manifest, new: Manifest) -> str:
    """Return the first difference between two builds: options that a user chose are named before what follows from
    them."""
    before, after = _identity(current), _identity(new)
    name = next(name for name in before if before[name] != after[name])
    return f"its {name} is {_short(before[name])}, not {_short(after[name])}"


def _identity(manifest: Manifest) -> Mapping[str, object]:
    names = ("model", "k", "pairs", "revision", "presets", "format")
    values: dict[str, object] = {name: getattr(manifest, name) for name in names}
    values |= {name: ",".join(getattr(manifest.stored, name)) for name in ("kinds", "lenses")}
    hashes = {"weights' hash": manifest.weights_sha256, "tokenizer's hash": manifest.tokenizer_sha256}
    minus = manifest.minus
    values["base"] = minus.model if minus else ""
    hashes |= {"base's revision": minus.revision if minus else "", "base's hash": minus.weights_sha256 if minus else ""}
    return values | asdict(manifest.shape) | hashes


def _short(value: object) -> str:
    """Return the value as text for a message: a hash is cut short, a list of kinds is not."""
    text = str(value) or "none"
    return text if len(text) <= 40 or "," in text else f"{text[:12]}…"
