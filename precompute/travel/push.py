"""Publish an index in a dataset repository of the Hugging Face Hub. Every commit brings a few layers together with the
manifest that lists them, so that nobody finds a file missing; files that are there already are not sent again."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete

from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.errors import BuildError, ForeignIndex, IndexFault, OptionsDiffer
from lexiscope.precompute.files import damaged, read_regular, unreadable
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.index.lab_record import LAB, LabRecord
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST, MOST_MANIFEST_BYTES, TOKENIZER, FileEntry, Manifest
from lexiscope.precompute.index.origin import public_source
from lexiscope.precompute.travel.card import CARD, card
from lexiscope.precompute.travel.foreign_manifest import parse_manifest
from lexiscope.precompute.travel.on_hub import DATASET, IndexOnHub, in_words

COMMIT_BYTES = 2_000_000_000  # bytes of layers in one commit, unless a single layer has more
COMMIT_LAYERS = 8
LONGEST_CARD = 1 << 20  # bytes
# Files that any repository may have.
BESIDES = {CARD, ".gitattributes", ".gitignore", "LICENSE", "LICENSE.md", "LICENSE.txt"}


class PushProgress(Progress):
    to_do = "to push, upper layers first"


@dataclass(frozen=True)
class PushOptions:
    private: bool = False  # whether a new repository is private
    revision: str | None = None  # a branch, which is created if it does not exist
    message: str | None = None
    force: bool = False


def push(index: Index, repository: str, options: PushOptions, progress: Progress) -> str:
    """Publish the index, and return the commit that completes it."""
    for error in index.faults.values():
        raise error
    if not index.layers:
        raise BuildError(f"no layer of {index.manifest.model} is ready yet: there is nothing to push")
    with in_words(repository, options.revision, index.folder, writing=True):
        return _Push(index, repository, options, progress).run()


class _Push:
    def __init__(self, index: Index, repository: str, options: PushOptions, progress: Progress) -> None:
        self.api = huggingface_hub.HfApi()
        self.repository, self.options, self.progress = repository, options, progress
        self.folder = index.folder
        self.ours = _for_others(index.manifest)
        self.tokenizer = _tokenizer(index)
        self.api.create_repo(repository, repo_type=DATASET, private=options.private or None, exist_ok=True)
        if options.revision:
            self.api.create_branch(repository, branch=options.revision, repo_type=DATASET, exist_ok=True)
        self.there = IndexOnHub(repository, options.revision)
        self.commit = self.there.commit

    def run(self) -> str:
        theirs = self._published()
        goes_on = theirs is not None and theirs.build == self.ours.build and not self.options.force
        manifest = self._still_there(theirs) if theirs and goes_on else self.ours.only(self._of_model())
        manifest = manifest.with_changes(reads_best=None)
        replaced = None if goes_on else theirs
        entries, there = self.ours.entries(), manifest.entries()
        missing = [piece for piece in entries if piece.layer is not None and piece not in there]
        n_layers = manifest.shape.n_layers
        of_lists = sum(piece.part == "lists" for piece in missing)
        added = sorted({piece.part for piece in missing if piece.layer in manifest.shards})
        self.progress.start(manifest.model, n_layers, len(manifest.shards), of_lists, " and ".join(added))
        for pieces in [*_batches(entries, missing)] or [[]]:
            manifest = manifest.with_entries({piece: entries[piece] for piece in pieces})
            if len(manifest.shards) == n_layers:
                best = self.ours.reads_best or (theirs.reads_best if theirs and goes_on else None)
                manifest = manifest.with_changes(reads_best=best)
            self._send(manifest, pieces, replaced)
            replaced = None
        self.progress.stop()
        self.progress.say(
            f"{self.repository} has {len(manifest.shards)} of {n_layers} layers of {manifest.model} at commit "
            f"{self.commit[:12]}: `lexiscope pull {self.repository}` takes them elsewhere"
        )
        return self.commit

    def _of_model(self) -> list[Piece]:
        """Return the files of our index that belong to no layer: they are sent with the first commit."""
        return [piece for piece in self.ours.entries() if piece.layer is None]

    def _published(self) -> Manifest | None:
        """Return the published manifest, if there is one; raise OptionsDiffer or ForeignIndex if something else is in
        the way."""
        content = self.there.read(MANIFEST, MOST_MANIFEST_BYTES)
        if content is None:
            if others := sorted(self.there.files.keys() - BESIDES):
                raise ForeignIndex(
                    f"{self.repository} holds other things than an index ({', '.join(others[:3])}): give a repository "
                    "of its own, which is made if it is not there"
                )
            return None
        try:
            theirs = parse_manifest(content, self.there.where)
        except (ForeignIndex, IndexFault):
            if self.options.force:
                return None
            raise
        if theirs.build != self.ours.build and not self.options.force:
            raise OptionsDiffer(
                f"{self.there.where} holds another index ({theirs.model}, build {theirs.build}, not {self.ours.build} "
                f"of {self.ours.model}): add --force to replace it, or push to another repository"
            )
        return theirs

    def _send(self, manifest: Manifest, pieces: list[Piece], replaced: Manifest | None) -> None:
        """Make one commit: these pieces, everything else that is new or has changed, and the manifest that lists all of
        them."""
        additions: list[CommitOperationAdd] = []
        for piece in self._of_model():
            entry = manifest.entries().get(piece)
            if entry and entry in self.ours.entries().values() and not self._is_there(entry):
                additions.append(self._upload(entry))
        for piece in pieces:
            additions.append(self._upload(manifest.entries()[piece]))
            if piece.part == "lists" and piece.layer is not None:
                self.progress.layer_done(piece.layer)
        for name, content in self._small_files(manifest).items():
            if not self.there.holds(name, content):
                additions.append(CommitOperationAdd(name, content))
        deletions = replaced.file_names - manifest.file_names if replaced else set()
        operations: list[Any] = [*additions, *(CommitOperationDelete(name) for name in sorted(deletions))]
        if not operations:
            return
        layers = tuple({piece.layer for piece in pieces if piece.layer is not None})
        what = f"layers {ranges(layers)}" if layers else "what has changed"
        done = self.api.create_commit(
            self.repository,
            operations,
            commit_message=self.options.message or f"{manifest.model}: {what}",
            repo_type=DATASET,
            revision=self.options.revision,
            parent_commit=self.commit,
        )
        self.commit = done.oid
        self.there = IndexOnHub(self.repository, self.commit)

    def _still_there(self, theirs: Manifest) -> Manifest:
        """Return the published manifest without files that somebody removed, and with our entries for pieces of the
        whole model that it lacks. Pieces that it has only in an older version are sent again."""
        entries, ours = theirs.entries(), self.ours.entries()
        there = {
            piece: entry
            for piece, entry in entries.items()
            if self._is_there(entry) and not (piece in ours and piece.is_older(entry.file))
        }
        generation = max(theirs.generation, self.ours.generation)
        own = {piece: ours[piece] for piece in self._of_model()}
        return theirs.only(()).with_changes(generation=generation).with_entries(own | there)

    def _is_there(self, entry: FileEntry) -> bool:
        file = self.there.files.get(entry.file)
        if file is None or file.size != entry.bytes:
            return False
        return file.lfs is None or file.lfs.sha256 == entry.sha256

    def _upload(self, entry: FileEntry) -> CommitOperationAdd:
        """Send the content of a file, before any commit lists it; raise ShardDamaged if the file is damaged."""
        entry.check_sum(self.folder)
        addition = CommitOperationAdd(entry.file, self.folder / entry.file)
        self.api.preupload_lfs_files(
            self.repository, [addition], repo_type=DATASET, revision=self.options.revision, free_memory=False
        )
        return addition

    def _small_files(self, manifest: Manifest) -> dict[str, bytes]:
        files = {MANIFEST: manifest.to_json(), TOKENIZER: self.tokenizer}
        record = LabRecord.load(self.folder)
        if record and record.is_of(manifest):
            files[LAB] = read_regular(self.folder / LAB)
        before = self.there.read(CARD, LONGEST_CARD)
        text = card(manifest, self.repository, None if before is None else before.decode("utf-8", "replace"))
        return files | {CARD: text.encode()}


def _for_others(manifest: Manifest) -> Manifest:
    """Return the manifest without paths of this machine in its sources; `build` does not depend on them."""
    changes: dict[str, Any] = {"source": public_source(manifest.source, manifest.revision)}
    if minus := manifest.minus:
        changes["minus"] = minus.model_copy(update={"source": public_source(minus.source, minus.revision)})
    return manifest.with_changes(**changes)


def _tokenizer(index: Index) -> bytes:
    path = index.folder / TOKENIZER
    try:
        content = read_regular(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if hashlib.sha256(content).hexdigest() != index.manifest.tokenizer_sha256:
        raise damaged(path, "is not the model's tokenizer")
    return content


def _batches(entries: Mapping[Piece, FileEntry], pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces (files) of each commit: those of some layers, upper layers first; the pieces of a layer stay
    together."""
    batch: list[Piece] = []
    n_bytes = 0
    for layer in sorted({piece.layer for piece in pieces if piece.layer is not None}, reverse=True):
        of_layer = [piece for piece in pieces if piece.layer == layer]
        size = sum(entries[piece].bytes for piece in of_layer)
        if batch and (len({piece.layer for piece in batch}) == COMMIT_LAYERS or n_bytes + size > COMMIT_BYTES):
            yield batch
            batch, n_bytes = [], 0
        batch += of_layer
        n_bytes += size
    if batch:
        yield batch
