"""An index whose files may vanish, shrink or be replaced while it is served: each is looked at before it is read.
Which indexes there are, and when to look for new layers, is for library.py."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from app.library.file_array import FileShard, unmapped
from precompute.errors import IndexFault, ShardDamaged, ShardUnreadable
from precompute.files import damaged, unreadable
from precompute.index.container import Container
from precompute.index.index import Index, open_neighbours, open_shard
from precompute.index.manifest import FileEntry, Manifest
from precompute.index.shard_reader import Array, Floats, Shard

Stamp: TypeAlias = tuple[int, int, int, int] | None  # size, inode and times of a file; None if there is none


class LiveIndex(Index):
    """A snapshot like every index: what has changed since is refused by `shard`, and found by `current`."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        signature: tuple[int, ...],
        vocabulary: Container,
        shards: Mapping[int, Shard],
        faults: Mapping[int, IndexFault],
        neighbours: Container | None = None,
    ) -> None:
        # Token texts are needed by every page, also while the file is being replaced: a megabyte in memory.
        copies = {name: array.copy() for name, array in vocabulary.arrays.items()}
        in_memory = replace(vocabulary, arrays=copies)
        faults = dict(faults)
        opened: dict[int, FileShard] = {}
        for layer, shard in shards.items():
            try:
                opened[layer] = FileShard(shard)
            except IndexFault as fault:
                faults[layer] = fault.bare()
        self._beside = os.fspath(folder / manifest.neighbours.file) if manifest.neighbours else ""
        self._beside_stamp = stamp_of(self._beside)
        if neighbours:
            try:
                neighbours, self._beside_stamp = unmapped(neighbours)
            except IndexFault:
                neighbours = None  # pages do without
        super().__init__(folder, manifest, signature, in_memory, opened, faults, neighbours)
        self.changed = False  # some file was found to be another one than when this was opened
        self._paths = {layer: os.fspath(folder / entry.file) for layer, entry in manifest.shards.items()}
        self._stamps = {layer: stamp_of(path) for layer, path in self._paths.items()}
        self._stamps |= {layer: shard.stamp for layer, shard in opened.items()}

    @cached_property
    def version(self) -> str:
        """Another one whenever a page may show something else."""
        faults = sorted((layer, str(fault)) for layer, fault in self.faults.items())
        known = (self._signature, self.manifest.build, faults, bool(self._neighbours))
        return sha256(repr(known).encode()).hexdigest()[:16]

    def shard(self, layer: int) -> Shard:
        shard = super().shard(layer)
        assert isinstance(shard, FileShard)
        if stamp_of(shard.descriptor) != self._stamps[layer]:
            self.changed = True
            raise _changed(Path(self._paths[layer]), self.manifest.shards[layer])
        return shard

    def neighbours(self, token: int) -> tuple[Array, Floats] | None:
        if stamp_of(self._beside) != self._beside_stamp:
            self.changed = True
            return None
        return super().neighbours(token)

    def current(self) -> "LiveIndex":
        """This index if no file of it has changed, else all of it opened anew."""
        same = stamp_of(self._beside) == self._beside_stamp and all(map(self._unchanged, self._paths))
        if same and not self.changed and not self.stale() and not self._recovered():
            return self
        fresh = LiveIndex.open(self.folder)
        if fresh.manifest.build == self.manifest.build and fresh.manifest.vocabulary == self.manifest.vocabulary:
            fresh.tokens = self.tokens  # with the texts and the searches that were made of them
        fresh._distrust(self)
        return fresh

    def _unchanged(self, layer: int) -> bool:
        return stamp_of(self._paths[layer]) == self._stamps[layer]

    def _recovered(self) -> bool:
        """Whether a file that could not be read can be now, unchanged as it is: the system had refused it."""
        if self.manifest.neighbours and not self._neighbours and open_neighbours(self.folder, self.manifest):
            return True
        for layer, fault in self.faults.items():
            if isinstance(fault, ShardUnreadable):
                with suppress(IndexFault):
                    open_shard(self.folder, self.manifest, layer)
                    return True
        return False

    def _distrust(self, before: "LiveIndex") -> None:
        """A file that was touched since it was first opened must prove that it is still the one that was built."""
        shards, faults = dict(self._shards), dict(self.faults)
        for layer, entry in self.manifest.shards.items():
            if layer not in shards or before.manifest.shards.get(layer) != entry:
                continue
            known = before.faults.get(layer)
            try:
                if before._stamps[layer] != self._stamps[layer] or isinstance(known, ShardUnreadable):
                    entry.check_sum(self.folder)
                elif known:
                    raise known.bare()
            except IndexFault as fault:
                faults[layer] = fault.bare()
                del shards[layer]
        self._shards, self.faults = shards, faults


def stamp_of(path: str | Path | int) -> Stamp:
    """Of a file by its path; or by the descriptor it is open under, which tells, too, when it was replaced."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _changed(path: Path, entry: FileEntry) -> ShardDamaged:
    try:
        n_bytes = path.stat().st_size
    except OSError as error:
        return unreadable(path, error)
    if n_bytes != entry.bytes:
        return damaged(path, f"has {n_bytes} bytes, the manifest says {entry.bytes}: it changed while it was served")
    return ShardDamaged(f"{path} was replaced while it was served. Ask again: it is checked and opened anew")
