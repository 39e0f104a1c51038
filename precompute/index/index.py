"""Open an index: its manifest, its vocabulary, and every layer that is built and whole. Other parts are opened when
they are first asked for."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Self

from lexiscope.precompute.errors import IndexFault, NotBuilt, NotFound, NotStored, ShardDamaged, ShardUnreadable
from lexiscope.precompute.files import Stamp, damaged, stamp_of, unreadable
from lexiscope.precompute.index.index_files import ClassifierLists, Neighbours, Vocabulary, open_listed, open_shard
from lexiscope.precompute.index.layer.hubs import (
    Counts,
    hubs_among_nearest,
    hubs_of_lists,
    lens_that_reads_best,
    lists_of_tokens,
)
from lexiscope.precompute.index.layer.lists import Chance, HeadPositions, Moments, are_shares, head_positions
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST, FileEntry, Manifest
from lexiscope.precompute.index.stored import Stored, position
from lexiscope.precompute.index.tensor_file import Array, Floats, TensorFile
from lexiscope.precompute.index.tokens import whole_words
from lexiscope.precompute.rebuild_command import unless_running
from lexiscope.precompute.shape import Shape


class Index:
    """One model's index as it was when it was opened. Files that change afterwards are refused; `refreshed()` opens the
    index anew, together with what was finished since."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        stamp: Stamp | None,
        vocabulary: Vocabulary,
        shards: Mapping[int, Shard],
        faults: Mapping[int, IndexFault],
        neighbours: Neighbours | None = None,
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.tokens = vocabulary.tokens
        self.faults = faults  # errors of layers that the manifest lists and that cannot be used
        self.changed = False  # whether some file was found to be replaced since this index was opened
        self._stamp = stamp  # the stamp of the manifest
        self._entries = manifest.entries()
        # the parts in a version that is known here
        self._known = {piece for piece, entry in self._entries.items() if piece.is_known(entry.file)}
        self._vocabulary = vocabulary
        self._shards = shards
        self._neighbours = neighbours
        self._parts: dict[Piece, TensorFile] = {}  # parts are opened when they are first asked for
        self._hubs: dict[str, frozenset[int]] = {}  # by lens
        self._lists: dict[str, Counts] = {}  # by lens
        self._chances: dict[tuple[str, str], Chance | None] = {}  # by kind and lens
        self.stamps = {  # the stamps of the files of all layers that the manifest lists
            layer: shards[layer].file.stamp if layer in shards else stamp_of(folder / entry.file)
            for layer, entry in manifest.shards.items()
        }
        # The stamps of files that are opened when they are first asked for, and that pages do without.
        self._stamps_beside = {
            entry.file: stamp_of(folder / entry.file)
            for piece, entry in self._entries.items()
            if piece.part in manifest.parts and piece in self._known
        }

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open an index. The error of a layer that is damaged, missing or of another build is in `faults`; the others
        can be read."""
        folder = Path(folder)
        return cls._open(folder if folder.name else folder.absolute(), None)  # messages name the model by its folder

    def refreshed(self) -> Self:
        """Return this index if none of its files has changed, else a new one that keeps unchanged files open."""
        if self._is_current():
            return self
        fresh = self._open(self.folder, self)
        return fresh if self.changed or fresh._state != self._state else self

    def with_faults(self, faults: Mapping[int, IndexFault]) -> Self:
        """Return the same index without these layers, whose errors are given."""
        shards = {layer: shard for layer, shard in self._shards.items() if layer not in faults}
        both = dict(sorted({**self.faults, **faults}.items()))
        return type(self)(self.folder, self.manifest, self._stamp, self._vocabulary, shards, both, self._neighbours)

    @property
    def shape(self) -> Shape:
        return self.manifest.shape

    @property
    def stored(self) -> Stored:
        return self.manifest.stored

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(self._shards)

    @property
    def n_bytes(self) -> int:
        """Return the size of all files that the manifest lists."""
        return sum(entry.bytes for entry in self._entries.values())

    @property
    def centred_norms(self) -> tuple[Floats, ...]:
        """Return |e_t - mean| for each token (d_vocab,), of the embedding, and of the unembedding if it is another
        matrix."""
        return self._vocabulary.centred_norms

    @property
    def norms(self) -> tuple[Floats, ...]:
        """Return |e_t| for each token (d_vocab,), of the embedding, and of the unembedding if it is another matrix."""
        return self._vocabulary.norms

    @cached_property
    def version(self) -> str:
        """Return a text that changes whenever a page may show something else."""
        whole = self._neighbours is not None
        known = (self._stamp, self.manifest.build, self._fault_texts, whole, self._stamps_beside)
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]

    def hubs(self, lens: str) -> frozenset[int]:
        """Return the hubs under a lens: tokens that are in more than HUB_FACTOR times as many lists of vectors as if
        lists were drawn at random, over all kinds and both ends of the layers that are ready. They are counted once."""
        position("lens", lens, self.stored.lenses)
        if lens not in self._hubs:
            self._hubs[lens] = hubs_of_lists(self.usable_shards(), self.stored, lens)
        return self._hubs[lens]

    def lists_of_tokens(self, lens: str) -> Counts:
        """Return how many lists of vectors of the layers that are ready hold each token, (d_vocab,). They are counted
        once."""
        position("lens", lens, self.stored.lenses)
        if lens not in self._lists:
            self._lists[lens] = lists_of_tokens(self.usable_shards(), self.stored, lens)
        return self._lists[lens]

    @cached_property
    def nearest_hubs(self) -> frozenset[int]:
        """Return the tokens that are near to very many others (the hubs among nearest tokens); none if the nearest
        tokens are not built."""
        if not self._neighbours or self._neighbours.file.is_changed():
            return frozenset()
        try:
            return hubs_among_nearest(self._neighbours.file.array("neighbours.ids"))
        except ShardDamaged:
            return frozenset()

    @cached_property
    def best_lens(self) -> str:
        """Return the lens that reads best in this model: the one with the largest share of whole words that are not
        hubs among the first 10 tokens of all lists of vectors; of equal ones, the first. The manifest of a finished
        index names this lens; otherwise it is measured on the layers that are ready."""
        if self.manifest.reads_best:
            return self.manifest.reads_best
        return lens_that_reads_best(self.usable_shards(), self.stored, whole_words([*self.tokens]))

    def shard(self, layer: int) -> Shard:
        if shard := self._shards.get(layer):
            if shard.file.is_changed():
                self.changed = True
                raise _change(shard.file, self.manifest.shards[layer])
            return shard
        if error := self.faults.get(layer):
            raise type(error)(str(error))
        model, n_layers = self.manifest.model, self.shape.n_layers
        if not 0 <= layer < n_layers:
            raise NotFound(f"layer {layer}: {model} has layers 0 to {n_layers - 1}")
        raise NotBuilt(
            f"layer {layer} of {model} is not built yet: {len(self.layers)} of {n_layers} layers are ready "
            f"({ranges(self.layers)}). {unless_running(self.manifest.rebuild_command)}"
        )

    def classifier(self) -> ClassifierLists:
        """Return the lists of the checkpoint's classification head."""
        entry = self.manifest.classifier
        if entry is None:
            raise NotFound(f"{self.manifest.model} has no classification head: its checkpoint holds none")
        return ClassifierLists(self.part("classifier"), self.stored, entry)

    def has_part(self, name: str, layer: int | None = None) -> bool:
        """Return True if the manifest lists this part of a layer, or of the whole model, in a version that is known
        here."""
        return Piece(name, layer) in self._known

    def part(self, name: str, layer: int | None = None) -> TensorFile:
        """Open a part of a layer, or of the whole model. Raise NotStored, with the command that adds the part, if this
        index does not have it, or only in a version that is not known here."""
        piece = Piece(name, layer)
        if not self.has_part(name, layer):
            raise NotStored(
                f"{piece} of {self.manifest.model}: not in this index. `{self.manifest.rebuild_command}` adds it"
            )
        if piece not in self._parts or self._parts[piece].is_changed():
            self._parts[piece] = open_listed(self.folder, self.manifest, piece)
        return self._parts[piece]

    def stats(self, layer: int, array: str, *at: int) -> Array | None:
        """Return the values that an array of the part `stats` (docs/format.md) has at this position. Return None if the
        part is missing, older than the array, or cannot be used: pages are shown without it, and `verify` names the
        error."""
        return self._numbers("stats", layer, array, *at)

    def _numbers(self, part: str, layer: int | None, array: str, *at: int) -> Array | None:
        if not self.has_part(part, layer):
            return None
        try:
            file = self.part(part, layer)
            return file.block(array, *at) if array in file.tensors else None
        except IndexFault:
            return None

    def moments(self, layer: int, kind: str, row: int, lens: str) -> Moments | None:
        """Return how the scores of a vector are distributed over all tokens; None if the index does not store that."""
        at = row, position("lens", lens, self.stored.lenses)
        moments, z = self.stats(layer, f"{kind}.moments", *at), self.stats(layer, f"{kind}.z", *at)
        if moments is None or z is None:
            return None
        numbers = [number if math.isfinite(number) else None for number in moments.tolist() + z.tolist()]
        mean, sd, skew, kurtosis, of_top, of_bottom = numbers
        return {"mean": mean, "sd": sd, "skew": skew, "kurtosis": kurtosis, "z": of_top, "z_bottom": of_bottom}

    def all_z(self, layer: int, kind: str, lens: str) -> Floats | None:
        """Return z of the first token at both ends of every list of a kind, (n, ends), NaN where all scores are equal;
        None if the index does not store that."""
        lens_at, z = position("lens", lens, self.stored.lenses), self.stats(layer, f"{kind}.z")
        return None if z is None else z[:, lens_at]

    def chance(self, kind: str, lens: str) -> Chance | None:
        """Return what z of the first token reaches by chance among vectors of a kind; None if the index does not store
        that, or if no vector of that kind has scores that differ. It is read once."""
        if (kind, lens) not in self._chances:
            line = self._numbers("chance", None, f"{kind}.line", position("lens", lens, self.stored.lenses))
            self._chances[kind, lens] = None if line is None else Chance.of(line)
        return self._chances[kind, lens]

    def positions(self, layer: int, head: int) -> HeadPositions | None:
        """Return where a head looks by position alone; None if the index does not store that, or numbers that are no
        shares."""
        shares = self._numbers("heads", layer, "positions.shares", head)
        by_distance = self._numbers("heads", layer, "positions.by_distance", head)
        if shares is None or by_distance is None or not (are_shares(shares) and are_shares(by_distance)):
            return None
        return head_positions(self.shape, shares, by_distance)

    def neighbours(self, token: int) -> tuple[Array, Floats] | None:
        """Return ids and scores of the nearest tokens, by cosine of the centred embeddings; None if they are not built,
        or if their file has changed."""
        self.tokens.raw(token)  # raises NotFound if there is no such token
        if self._neighbours and self._neighbours.file.is_changed():
            self.changed = True
            return None
        return self._neighbours.nearest(token) if self._neighbours else None

    def usable_shards(self) -> list[Shard]:
        """Return the layers whose files are still as they were when this index was opened."""
        shards: list[Shard] = []
        for layer in self.layers:
            with suppress(IndexFault):
                shards.append(self.shard(layer))
        return shards

    @property
    def _fault_texts(self) -> list[tuple[int, str]]:
        return sorted((layer, str(error)) for layer, error in self.faults.items())

    @property
    def _state(self) -> object:
        nearest = self._neighbours.file.stamp if self._neighbours else None
        return self._stamp, self.stamps, nearest, self._stamps_beside, self._fault_texts

    def _is_current(self) -> bool:
        """Return True if no file has changed, which takes one stat of each. A file that the system refused to read
        counts as changed, because it may be readable now."""
        refused = any(isinstance(error, ShardUnreadable) for error in self.faults.values())
        if self.changed or refused or (self.manifest.neighbours and not self._neighbours):
            return False
        stamps = {MANIFEST: self._stamp, **self._stamps_beside}
        stamps |= {entry.file: self.stamps[layer] for layer, entry in self.manifest.shards.items()}
        if self._neighbours:
            stamps[self._neighbours.file.path.name] = self._neighbours.file.stamp
        return all(stamp_of(self.folder / name) == stamp for name, stamp in stamps.items())

    @classmethod
    def _open(cls, folder: Path, before: "Index | None") -> Self:
        """Open the index, and try again if a rebuild replaces the manifest or its files meanwhile."""
        while True:
            if before and stamp_of(folder / MANIFEST) == before._stamp:
                manifest, stamp = before.manifest, before._stamp
            else:
                manifest, stamp = Manifest.load_stamped(folder)
            try:
                index = cls._open_files(folder, manifest, stamp, before)
            except IndexFault:
                if stamp_of(folder / MANIFEST) == stamp:
                    raise
                continue
            if not index.faults or stamp_of(folder / MANIFEST) == stamp:
                return index

    @classmethod
    def _open_files(cls, folder: Path, manifest: Manifest, stamp: Stamp | None, before: "Index | None") -> Self:
        same_build = before is not None and before.manifest.build == manifest.build
        if before and same_build and before.manifest.vocabulary == manifest.vocabulary:
            vocabulary = before._vocabulary  # kept with the texts and searches that were made of its tokens
        else:
            vocabulary = Vocabulary.of(open_listed(folder, manifest, Piece("vocabulary")), manifest.shape)
        shards: dict[int, Shard] = {}
        faults: dict[int, IndexFault] = {}
        for layer, entry in manifest.shards.items():
            kept = before._shards.get(layer) if before and same_build else None
            if kept and before and before.manifest.shards[layer] == entry and _is_there(kept.file):
                shards[layer] = kept
                continue
            try:
                shards[layer] = open_shard(folder, manifest, layer)
            except IndexFault as error:
                faults[layer] = error.bare()
        return cls(folder, manifest, stamp, vocabulary, shards, faults, _open_neighbours(folder, manifest))


def ranges(numbers: tuple[int, ...]) -> str:
    """Write numbers as ranges: (0, 1, 2, 5) becomes "0-2, 5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs) or "none"


def _open_neighbours(folder: Path, manifest: Manifest) -> Neighbours | None:
    """Open the nearest tokens. Return None if they are not built or cannot be used: pages are shown without them, and
    `verify` names the error."""
    with suppress(IndexFault):
        if manifest.neighbours:
            return Neighbours(open_listed(folder, manifest, Piece("neighbours")))
    return None


def _is_there(file: TensorFile) -> bool:
    return stamp_of(file.path) == file.stamp


def _change(file: TensorFile, entry: FileEntry) -> ShardDamaged:
    """Return the error about a file that has changed since it was opened."""
    try:
        n_bytes = file.path.stat().st_size
    except OSError as error:
        return unreadable(file.path, error)
    if n_bytes != entry.bytes:
        change = f"has {n_bytes} bytes, the manifest says {entry.bytes}: it changed while it was served"
        return damaged(file.path, change)
    return ShardDamaged(f"{file.path} was replaced while it was served. Ask again: it is checked and opened anew")
