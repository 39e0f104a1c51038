"""Prepare a build: lock its index, and find out what is missing. Each finished piece, made here or elsewhere, is
written and listed at once, so that a build can be killed at any moment."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from lexiscope.precompute.build.build_folder import (
    BuildFolder,
    all_pieces,
    generation_after,
    load_current,
    missing_pieces,
    read_build_state,
    with_best_lens,
)
from lexiscope.precompute.build.estimate import Work
from lexiscope.precompute.build.layer import Arrays
from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.options import BuildOptions, as_built, check_size, identify, wanted_layers, wanted_parts
from lexiscope.precompute.build.pieces import Task
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.build.unchanged import changes_text, layers_text
from lexiscope.precompute.device import is_out_of_memory
from lexiscope.precompute.errors import BuildError, first_line
from lexiscope.precompute.index.layout import PARTS, Piece
from lexiscope.precompute.index.manifest import Manifest, read_old_fields
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
    tasks: list[Task] = field(default_factory=list)  # the missing pieces, in the order to make them

    @property
    def missing(self) -> list[int]:
        """Return the layers whose lists are missing."""
        return [
            piece.layer for task in self.tasks for piece in task if piece.part == "lists" and piece.layer is not None
        ]

    @property
    def added(self) -> str:
        """Return a text about parts that are missing beside layers with lists, such as "stats of layers 0-11"."""
        pieces = {piece for task in self.tasks for piece in task}
        layers = {part: tuple(at for at in self.manifest.shards if Piece(part, at) in pieces) for part in PARTS}
        added = [f"{part} of {layers_text(of)}" for part, of in layers.items() if of]
        return ", ".join(added + [str(piece) for piece in pieces if piece.part == "chance" and self.manifest.shards])

    def work(self, workers: int, unchanged: int = 0) -> Work:
        pieces = [piece for task in self.tasks for piece in task]
        stats = sum(piece.part == "stats" for piece in pieces)
        return Work(self.manifest.stored, len(self.missing), Piece("neighbours") in pieces, workers, unchanged, stats)

    def write(self, made: Mapping[Piece, Arrays]) -> None:
        """Write pieces (files of the index) and list them in the manifest. The vocabulary is written first, because an
        index cannot be opened without it."""
        self.folder.check()
        manifest = self.manifest
        for piece, arrays in made.items():
            about: dict[str, Any] = {}
            if piece.part == "classifier":
                assert self.head
                dense = len(arrays.get("dense.norm", ()))
                about = {"labels": self.head.labels, "dense": dense, "subtracted": self.head.base is not None}
            manifest = write_piece(self.folder.folder, manifest, piece, arrays, **about)
        self.folder.save(manifest)
        self.manifest = manifest

    def finish(self, progress: Progress) -> None:
        """Let the new index replace the old one, once all pieces are written."""
        folder, n_layers = self.folder.folder, self.model.shape.n_layers
        self.manifest = with_best_lens(folder, self.manifest)
        written = self.folder.finish(self.manifest)
        if self.manifest.minus:
            progress.say(f"{self.manifest.model}: {changes_text(folder, self.manifest)}")
        if self.manifest.kinds is None and self.options.kinds is None:
            progress.say(
                f"{self.manifest.model} stores no directions of heads: add --force to build it anew, with them"
            )
        nothing_done = not (written or self.tasks)
        progress.finish(folder, len(self.manifest.shards), n_layers, nothing_done)
        if self.folder.has_unfinished_rebuild():
            progress.say("A rebuild beside it was stopped: the command with --force that began it goes on with it.")

    def note_changes(self, progress: Progress) -> int:
        """Report how much the embedding of a difference changed, which the manifest records from its next piece on, and
        in which missing layers nothing changed; return the number of these layers."""
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
        """Return an error that says what to do, if `error` means that memory ran out."""
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
    """Lock the index in DATA/<model> until the end of the block, and find out which of its files are missing."""
    model = describe(source) if isinstance(source, Checkpoint) else source
    checkpoint = model.checkpoint
    layers = wanted_layers(model, options)
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
        head = read_head(model)
        parts = {"vocabulary", *wanted_parts(options)}  # an index cannot be opened without its vocabulary
        if not head:
            parts.discard("classifier")
        if isinstance(model, Difference):
            parts.discard("heads")  # what was subtracted runs in no model, so it looks nowhere
        pieces = [piece for piece in all_pieces(new) if piece.part in parts and piece.layer in (None, *layers)]
        manifest, manifest_name = read_build_state(folder, new, current, pieces, options.force)
        build_folder = BuildFolder(folder, manifest_name, model.tokenizer_file())
        yield PreparedBuild(model, options, build_folder, manifest, head, _tasks(missing_pieces(manifest, pieces)))


def _tasks(pieces: list[Piece]) -> list[Task]:
    """Group the pieces of each layer into one task, because they are made together."""
    groups = groupby(pieces, lambda piece: (piece.layer, None if piece.layer is not None else piece.part))
    return [tuple(of_task) for _, of_task in groups]
