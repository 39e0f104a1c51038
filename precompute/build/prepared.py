"""A build that is prepared: its index is locked, what is missing is known, and whoever makes a missing piece, here or
on another machine, hands it over to be written. What is written is listed at once, so a build can be killed at any
moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lexiscope.precompute.build.build_folder import (
    BuildFolder,
    generation_after,
    load_current,
    read_build_state,
    with_best_lens,
)
from lexiscope.precompute.build.estimate import Work
from lexiscope.precompute.build.layer import Arrays
from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.options import BuildOptions, as_built, check_size, identify, wanted_layers
from lexiscope.precompute.build.pieces import Piece
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.build.shard_writer import write_classifier, write_neighbours, write_shard, write_vocabulary
from lexiscope.precompute.build.unchanged import changes_text, layers_text
from lexiscope.precompute.device import is_out_of_memory
from lexiscope.precompute.errors import BuildError, first_line
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.manifest_format import read_old_fields
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.classifier_head import ClassifierHead, read_head
from lexiscope.precompute.weights.difference import Difference, Parameters


@dataclass
class PreparedBuild:
    model: Parameters
    options: BuildOptions
    folder: BuildFolder
    manifest: Manifest  # changes with every piece that is written
    head: ClassifierHead | None
    pieces: list[Piece] = field(default_factory=list)  # that were missing, in the order to make them

    @property
    def missing(self) -> list[int]:
        """The layers among the pieces."""
        return [piece for piece in self.pieces if isinstance(piece, int)]

    def work(self, workers: int, unchanged: int = 0) -> Work:
        return Work(self.manifest.stored, len(self.missing), "neighbours" in self.pieces, workers, unchanged)

    def write(self, piece: Piece, arrays: Arrays) -> None:
        """The vocabulary comes first: without it an index cannot be opened."""
        folder, manifest = self.folder.folder, self.manifest
        self.folder.check()
        if isinstance(piece, int):
            manifest = manifest.with_shard(piece, write_shard(folder, manifest, piece, arrays))
        elif piece == "vocabulary":
            manifest = manifest.with_changes(vocabulary=write_vocabulary(folder, manifest, arrays))
        elif piece == "neighbours":
            manifest = manifest.with_changes(neighbours=write_neighbours(folder, manifest, arrays))
        else:
            assert self.head
            entry = write_classifier(folder, manifest, arrays, self.head.labels, self.head.base is not None)
            manifest = manifest.with_changes(classifier=entry)
        self.folder.save(manifest)
        self.manifest = manifest

    def finish(self, progress: Progress) -> None:
        """The index takes its place; for a build whose pieces are all written."""
        folder, n_layers = self.folder.folder, self.model.shape.n_layers
        self.manifest = with_best_lens(folder, self.manifest)
        written = self.folder.finish(self.manifest)
        if self.manifest.minus:
            progress.say(f"{self.manifest.model}: {changes_text(folder, self.manifest)}")
        if self.manifest.kinds is None and self.options.kinds is None:
            progress.say(
                f"{self.manifest.model} stores no directions of heads: add --force to build it anew, with them"
            )
        nothing_done = not (written or self.pieces)
        progress.finish(folder, len(self.manifest.shards), n_layers, nothing_done)
        if self.folder.has_unfinished_rebuild():
            progress.say("A rebuild beside it was stopped: the command with --force that began it goes on with it.")

    def note_changes(self, progress: Progress) -> int:
        """Of a difference, says what changed beside lists, which the manifest has from its next piece on, and in which
        missing layers nothing did; the number of the latter."""
        if not isinstance(self.model, Difference) or not self.missing:
            return 0
        self.manifest = self.manifest.with_changes(embedding_change=self.model.embedding_changes)
        for name, change in self.model.embedding_changes.items():
            if change:
                progress.say(
                    f"{self.manifest.model}: {name} itself changed, |Δ{name}|/|{name}| = {change:.2g}; lists are "
                    f"made with the base's {name}"
                )
        unchanged = tuple(layer for layer in self.missing if self.model.is_unchanged(layer))
        if unchanged:
            progress.say(f"{self.manifest.model}: nothing changed in {layers_text(unchanged)}")
        return len(unchanged)

    def out_of_memory(self, error: BaseException) -> BuildError | None:
        """An error that says what to do, if `error` is that memory ran out."""
        if not is_out_of_memory(error):
            return None
        return BuildError(
            f"not enough memory to build {self.manifest.model} ({first_line(error)}): use smaller lists (--pairs "
            f"{self.manifest.pairs} and --k {self.manifest.k} now) or fewer --threads; finished layers are kept"
        )


@contextmanager
def prepare(
    source: Checkpoint | Difference, data: Path, options: BuildOptions, progress: Progress
) -> Iterator[PreparedBuild]:
    """Locks DATA/<model> until the end of the block, and sees what it lacks."""
    model = describe(source) if isinstance(source, Checkpoint) else source
    checkpoint = model.checkpoint
    wanted = wanted_layers(model, options)
    folder = data / checkpoint.name
    with build_lock(folder):
        minus = f" and from {model.base.checkpoint.source}" if isinstance(model, Difference) else ""
        progress.say(f"{checkpoint.name}: checking the weights from {checkpoint.source}{minus}")
        weights_sha256 = checkpoint.weights_hash()
        current = load_current(folder, weights_sha256, options.force)
        if old := read_old_fields(folder):
            progress.say(f"{folder} has an older format: it is built anew, and its old files go when that is done")
        new = identify(model, weights_sha256, as_built(options, current, old))
        new = new.with_changes(generation=generation_after(old))
        check_size(new)
        manifest, manifest_name = read_build_state(folder, new, current, wanted, options.force)
        build_folder = BuildFolder(folder, manifest_name, model.tokenizer_file())
        head = read_head(model)
        yield PreparedBuild(model, options, build_folder, manifest, head, _missing_pieces(manifest, wanted, head))


def _missing_pieces(manifest: Manifest, wanted: list[int], head: ClassifierHead | None) -> list[Piece]:
    """Upper layers first, which read best; the nearest tokens not before there is a layer to read."""
    pieces: list[Piece] = [layer for layer in reversed(wanted) if layer not in manifest.shards]
    if manifest.neighbours is None:
        pieces.insert(1, "neighbours")
    if head and manifest.classifier is None:
        pieces.insert(0, "classifier")
    if manifest.vocabulary is None:
        pieces.insert(0, "vocabulary")
    return pieces
