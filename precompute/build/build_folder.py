"""The folder that a build writes to: what it holds already, which of it counts, and how a rebuild takes its place."""

import contextlib
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lexiscope.precompute.errors import IndexFault, IndexMissing, OldFormat, OptionsDiffer, ShardDamaged
from lexiscope.precompute.files import PARTIAL, folder_gone, read_regular, sha256_of, write_beside
from lexiscope.precompute.index.hubs import lens_that_reads_best
from lexiscope.precompute.index.index_files import open_classifier, open_neighbours, open_shard, open_vocabulary
from lexiscope.precompute.index.layout import neighbours_file, shard_file, vocabulary_file
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from lexiscope.precompute.index.manifest_entries import FileEntry
from lexiscope.precompute.index.manifest_format import read_old_fields
from lexiscope.precompute.index.tokens import whole_words

NEXT = "manifest.next.json"  # lists the files of a rebuild; gone when it has taken the index's place
ARRIVING = ".arriving"  # a folder: what `lexiscope pull` has not verified yet
# .lxs: format 1
OWN_FILE = re.compile(r"(layer-[0-9]+|vocabulary|neighbours|classifier)(\.g[0-9]+)?\.(safetensors|lxs)")


@dataclass(frozen=True)
class BuildFolder:
    folder: Path
    manifest_name: str  # of the manifest that the build writes: MANIFEST, or NEXT beside it
    tokenizer: Path

    def check(self) -> None:
        """BuildError if the folder is gone: a layer is long work."""
        if not self.folder.is_dir():
            raise folder_gone(self.folder)

    def save(self, manifest: Manifest) -> None:
        """A finished file counts from here on; in an index that is not rebuilt readers see it at once."""
        if self.manifest_name == MANIFEST:
            self._put_tokenizer(manifest)
        manifest.save(self.folder, self.manifest_name)

    def finish(self, manifest: Manifest) -> bool:
        """Put the manifest in its place and remove what it does not list; whether anything had to be written."""
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
        """Remove what an earlier generation, an older format or a killed writer left.

        The manifest of a rebuild goes last: while it is there, a rebuild that was killed knows how far it came.
        """
        rebuilt = _load_rebuilt(self.folder)
        unfinished = rebuilt is not None and rebuilt.generation > manifest.generation
        listed = _files(manifest) | (_files(rebuilt) if rebuilt and unfinished else set())
        for path in self.folder.iterdir():
            if path.suffix == PARTIAL or (OWN_FILE.fullmatch(path.name) and path.name not in listed):
                path.unlink(missing_ok=True)
        shutil.rmtree(self.folder / ARRIVING, ignore_errors=True)
        if not unfinished:
            (self.folder / NEXT).unlink(missing_ok=True)


def load_current(folder: Path, weights_sha256: str, force: bool) -> Manifest | None:
    """The manifest of the index in the folder, if there is one to go on with.

    One that cannot be read is in the way unless it is to be replaced, and so is one of an older format unless it was
    made from the same weights: then nothing is lost that could not be made again.
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
    folder: Path, new: Manifest, current: Manifest | None, wanted: Collection[int], force: bool
) -> tuple[Manifest, str]:
    """`new` with the files that need not be made, and the name its manifest is to have."""
    if force:
        return _rebuild_state(folder, new, current, wanted), NEXT
    if current and current.build != new.build and not current.shards:  # nothing that anybody waited for
        return new.with_changes(generation=current.generation + 1), MANIFEST
    if current is None:
        return _with_unlisted(folder, new, range(new.shape.n_layers)), MANIFEST
    if current.build != new.build:
        raise OptionsDiffer(
            f"{folder} holds another build, from {current.source} ({_difference(current, new)}): add --force to "
            "replace it, or choose another --data DIR"
        )
    known = {"embedding_change": new.embedding_change or current.embedding_change}
    whole = _without_broken(folder, current.with_changes(source=new.source, minus=new.minus, **known), wanted)
    return _with_unlisted(folder, whole, set(range(new.shape.n_layers)) - current.shards.keys()), MANIFEST


def generation_after(old: Mapping[str, Any]) -> int:
    """The generation of an index that replaces one of an older format, by its fields: files of format 1 have names of
    their own, those of later formats differ by their generation."""
    generation = old.get("generation")
    return generation + 1 if "format" in old and type(generation) is int and 0 < generation < 1 << 20 else 1


def with_best_lens(folder: Path, manifest: Manifest) -> Manifest:
    """The manifest of a finished index says which lens reads best in it; the same one while layers are missing."""
    if manifest.reads_best or len(manifest.shards) < manifest.shape.n_layers or manifest.vocabulary is None:
        return manifest
    try:
        tokens = open_vocabulary(folder / manifest.vocabulary.file, manifest).tokens
        shards = [open_shard(folder / entry.file, manifest, layer) for layer, entry in manifest.shards.items()]
    except IndexFault:  # of a layer that was not asked for
        return manifest
    return manifest.with_changes(reads_best=lens_that_reads_best(shards, manifest.stored, whole_words([*tokens])))


def _rebuild_state(folder: Path, new: Manifest, current: Manifest | None, wanted: Collection[int]) -> Manifest:
    """What a killed rebuild of the same build has made, and the index's layers that are not to be rebuilt."""
    generation = current.generation + 1 if current else new.generation
    rebuilt = _load_rebuilt(folder)
    if rebuilt and rebuilt.build == new.build and rebuilt.generation in (generation - 1, generation):
        generation = rebuilt.generation  # that of the index itself if it was killed after taking its place
        new = new.with_changes(
            vocabulary=rebuilt.vocabulary,
            neighbours=rebuilt.neighbours,
            classifier=rebuilt.classifier,
            embedding_change=rebuilt.embedding_change,
            shards=rebuilt.shards,
        )
    own = {layer: entry for layer, entry in new.shards.items() if entry.file == shard_file(layer, generation)}
    every_layer = range(new.shape.n_layers)
    state = _without_broken(folder, new.with_changes(generation=generation, shards=own), every_layer)
    if current:
        state = _with_unlisted(folder, state, every_layer)
        if current.build == new.build:
            kept = {layer: entry for layer, entry in current.shards.items() if layer not in wanted}
            state = state.with_changes(shards=kept | state.shards)
    return state


def _without_broken(folder: Path, manifest: Manifest, layers: Iterable[int]) -> Manifest:
    """Forgets those of the files that cannot be used, so that they are made again; of layers only these."""

    def is_whole(entry: FileEntry | None, layer: int | str) -> bool:
        return entry is not None and _usable_bytes(folder / entry.file, manifest, layer) == entry.bytes

    broken = {layer for layer in manifest.shards.keys() & set(layers) if not is_whole(manifest.shards[layer], layer)}
    return manifest.with_changes(
        vocabulary=manifest.vocabulary if is_whole(manifest.vocabulary, "vocabulary") else None,
        neighbours=manifest.neighbours if is_whole(manifest.neighbours, "neighbours") else None,
        classifier=manifest.classifier if is_whole(manifest.classifier, "classifier") else None,
        shards={layer: entry for layer, entry in manifest.shards.items() if layer not in broken},
    )


def _with_unlisted(folder: Path, manifest: Manifest, layers: Iterable[int]) -> Manifest:
    """Lists files that are whole but were not listed when the build was killed, or that another machine made."""

    def entry(name: str, layer: int | str) -> FileEntry | None:
        n_bytes = _usable_bytes(folder / name, manifest, layer)
        return FileEntry(file=name, bytes=n_bytes, sha256=sha256_of(folder / name)) if n_bytes else None

    generation = manifest.generation
    manifest = manifest.with_changes(
        vocabulary=manifest.vocabulary or entry(vocabulary_file(generation), "vocabulary"),
        neighbours=manifest.neighbours or entry(neighbours_file(generation), "neighbours"),
    )
    for layer in layers:
        if layer not in manifest.shards and (found := entry(shard_file(layer, generation), layer)):
            manifest = manifest.with_shard(layer, found)
    return manifest


def _usable_bytes(path: Path, manifest: Manifest, layer: int | str) -> int | None:
    """The length of a file that the index could use, by all that opening it tells; its sum is for `lexiscope verify`.

    `layer` is a layer's number, `vocabulary`, `neighbours` or `classifier`.
    """
    try:
        if isinstance(layer, int):
            return open_shard(path, manifest, layer).file.n_bytes
        if layer == "vocabulary":
            return open_vocabulary(path, manifest).n_bytes
        if layer == "classifier":
            return open_classifier(path, manifest, manifest.classifier).file.n_bytes if manifest.classifier else None
        return open_neighbours(path, manifest).file.n_bytes
    except ShardDamaged:  # and not NewerFormat: what a newer version wrote is not ours to replace
        return None


def _load_rebuilt(folder: Path) -> Manifest | None:
    try:
        return Manifest.load(folder, NEXT)
    except IndexFault:
        return None


def _files(manifest: Manifest) -> set[str]:
    return {entry.file for entry in manifest.files.values()}


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _difference(current: Manifest, new: Manifest) -> str:
    """The first thing that tells two builds apart, what a user chose before what follows from it."""
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
    """A hash is cut, a list of kinds is not."""
    text = str(value) or "none"
    return text if len(text) <= 40 or "," in text else f"{text[:12]}…"
