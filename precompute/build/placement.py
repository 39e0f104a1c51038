"""Where a build goes: what the folder of an index holds already, which of it counts, and how a rebuild takes its place.
Making what is missing is for build.py, reading an index for index.py."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from precompute.errors import IndexFault, IndexMissing, OptionsDiffer, ShardDamaged
from precompute.files import PARTIAL, damaged, folder_gone, read_regular, sha256_of, write_beside
from precompute.index.container import Container
from precompute.index.layout import (
    check_arrays,
    neighbours_file,
    shard_file,
    vocabulary_file,
    vocabulary_layout,
)
from precompute.index.manifest import MANIFEST, TOKENIZER, FileEntry, Manifest
from precompute.index.neighbours import check_neighbours
from precompute.index.shard_reader import Shard
from precompute.index.tokens import TokenTable

Check = Callable[[Container, Manifest], object]  # ShardDamaged if the file is not one for this index

NEXT = "manifest.next.json"  # lists the files of a rebuild; gone when it has taken the index's place


@dataclass(frozen=True)
class Place:
    folder: Path
    name: str  # of the manifest that the build writes: MANIFEST, or NEXT beside it
    tokenizer: Path

    def check(self) -> None:
        """BuildError if the folder is gone: a layer is long work."""
        if not self.folder.is_dir():
            raise folder_gone(self.folder)

    def save(self, manifest: Manifest) -> None:
        """A finished file counts from here on; in an index that is not rebuilt readers see it at once."""
        if self.name == MANIFEST:
            self._put_tokenizer(manifest)
        manifest.save(self.folder, self.name)

    def finish(self, manifest: Manifest) -> bool:
        """Put the manifest in its place and remove what it does not list; whether anything had to be written."""
        new_tokenizer = self._put_tokenizer(manifest)
        new_manifest = _content(self.folder / MANIFEST) != manifest.to_json()
        if new_manifest:
            manifest.save(self.folder)
        self._tidy(manifest)
        return new_tokenizer or new_manifest

    def unfinished_rebuild(self) -> bool:
        return (self.folder / NEXT).exists()

    def _put_tokenizer(self, manifest: Manifest) -> bool:
        path = self.folder / TOKENIZER
        with contextlib.suppress(OSError):
            if sha256_of(path) == manifest.tokenizer_sha256:
                return False
        write_beside(path, [read_regular(self.tokenizer)])
        return True

    def _tidy(self, manifest: Manifest) -> None:
        """Removes what an earlier generation or a killed writer left. A reader that has it mapped keeps it.

        The manifest of a rebuild goes last: while it is there, a rebuild that was killed knows how far it came.
        """
        rebuilt = _load_rebuilt(self.folder)
        unfinished = rebuilt is not None and rebuilt.generation > manifest.generation
        listed = _files(manifest) | (_files(rebuilt) if rebuilt and unfinished else set())
        for path in self.folder.iterdir():
            if path.suffix == PARTIAL or (path.suffix == ".lxs" and path.name not in listed):
                path.unlink(missing_ok=True)
        if not unfinished:
            (self.folder / NEXT).unlink(missing_ok=True)


def load_current(folder: Path, force: bool) -> Manifest | None:
    """The manifest of the index in the folder; one that cannot be read is in the way unless it is to be replaced."""
    try:
        return Manifest.load(folder)
    except IndexMissing:
        return None
    except IndexFault:
        if force:
            return None
        raise


def what_is_there(
    folder: Path, new: Manifest, current: Manifest | None, wanted: Collection[int], force: bool
) -> tuple[Manifest, str]:
    """`new` with the files that need not be made, and the name its manifest is to have."""
    if force:
        return _rebuild(folder, new, current, wanted), NEXT
    if current is None:
        return _adopt(folder, new, range(new.shape.n_layers)), MANIFEST
    if current.build != new.build:
        raise OptionsDiffer(
            f"{folder} holds another build, from {current.source} ({_difference(current, new)}): add --force to "
            "replace it, or build elsewhere with --data DIR"
        )
    found = _whole(folder, replace(current, source=new.source), wanted)
    return _adopt(folder, found, set(range(new.shape.n_layers)) - current.shards.keys()), MANIFEST


def _rebuild(folder: Path, new: Manifest, current: Manifest | None, wanted: Collection[int]) -> Manifest:
    """What a killed rebuild of the same build has made, and the index's layers that are not to be rebuilt."""
    generation = current.generation + 1 if current else 1
    rebuilt = _load_rebuilt(folder)
    if rebuilt and rebuilt.build == new.build and rebuilt.generation in (generation - 1, generation):
        generation = rebuilt.generation  # that of the index itself if it was killed after taking its place
        new = replace(new, vocabulary=rebuilt.vocabulary, neighbours=rebuilt.neighbours, shards=rebuilt.shards)
    made = {layer: entry for layer, entry in new.shards.items() if entry.file == shard_file(layer, generation)}
    everything = range(new.shape.n_layers)
    found = _whole(folder, replace(new, generation=generation, shards=made), everything)
    if current:
        found = _adopt(folder, found, everything)
        if current.build == new.build:
            kept = {layer: entry for layer, entry in current.shards.items() if layer not in wanted}
            found = replace(found, shards=dict(sorted((kept | dict(found.shards)).items())))
    return found


def _whole(folder: Path, manifest: Manifest, layers: Iterable[int]) -> Manifest:
    """Forgets those of the files that cannot be used, so that they are made again; of layers only these."""

    def whole(entry: FileEntry, check: Check) -> bool:
        found = _usable(folder / entry.file, manifest, check)
        return found is not None and found.n_bytes == entry.bytes

    if manifest.vocabulary and not whole(manifest.vocabulary, _check_vocabulary):
        manifest = replace(manifest, vocabulary=None)
    if manifest.neighbours and not whole(manifest.neighbours, check_neighbours):
        manifest = replace(manifest, neighbours=None)
    listed = manifest.shards.keys() & set(layers)
    broken = {layer for layer in listed if not whole(manifest.shards[layer], _check_layer(layer))}
    return replace(manifest, shards={n: entry for n, entry in manifest.shards.items() if n not in broken})


def _adopt(folder: Path, manifest: Manifest, layers: Iterable[int]) -> Manifest:
    """Lists files that are whole but were not listed when the build was killed, or that another machine made."""

    def entry(name: str, check: Check) -> FileEntry | None:
        found = _usable(folder / name, manifest, check)
        return FileEntry(name, found.n_bytes, sha256_of(found.path)) if found else None

    if manifest.vocabulary is None and (made := entry(vocabulary_file(manifest.generation), _check_vocabulary)):
        manifest = manifest.with_vocabulary(made)
    if manifest.neighbours is None and (made := entry(neighbours_file(manifest.generation), check_neighbours)):
        manifest = manifest.with_neighbours(made)
    for layer in layers:
        if layer in manifest.shards:
            continue
        if made := entry(shard_file(layer, manifest.generation), _check_layer(layer)):
            manifest = manifest.with_shard(layer, made)
    return manifest


def _usable(path: Path, manifest: Manifest, check: Check) -> Container | None:
    """A file that the index could use, by all that opening it tells; its sum is for `lexiscope verify`."""
    try:
        container = Container.open(path)
        check(container, manifest)
    except ShardDamaged:  # and not NewerFormat: what a newer version wrote is not ours to replace
        return None
    return container


def _check_layer(layer: int) -> Check:
    return lambda container, manifest: Shard.of(container, manifest, layer)


def _check_vocabulary(container: Container, manifest: Manifest) -> None:
    if container.about != {"model": manifest.model, "build": manifest.build}:
        raise damaged(container.path, "belongs to another build")
    check_arrays(container, vocabulary_layout(manifest.shape))
    try:
        TokenTable(container.arrays["token.offsets"], container.arrays["token.bytes"])
    except ValueError as error:
        raise damaged(container.path, f"is damaged: {error}") from None


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
    names = ("model", "k", "pairs", "revision", "lenses", "presets", "format_version")
    shape = {field.name: getattr(manifest.shape, field.name) for field in fields(manifest.shape)}
    values: dict[str, object] = {name: getattr(manifest, name) for name in names}
    return values | shape | {"weights' hash": manifest.weights_sha256, "tokenizer's hash": manifest.tokenizer_sha256}


def _short(value: object) -> str:
    text = str(value) or "none"
    return text if len(text) <= 40 else f"{text[:12]}…"
