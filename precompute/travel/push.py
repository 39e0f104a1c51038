"""Publishes an index in a dataset repository of the Hugging Face Hub. Every commit brings a few layers together with
the manifest that lists them, so that nobody finds a file missing; what is there already is not sent again."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete

from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.errors import BuildError, ForeignIndex, IndexFault, OptionsDiffer
from lexiscope.precompute.files import damaged, read_regular, unreadable
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.index.lab_record import LAB, LabRecord
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from lexiscope.precompute.index.manifest_entries import FileEntry
from lexiscope.precompute.index.manifest_format import MAX_BYTES
from lexiscope.precompute.index.origin import public_source
from lexiscope.precompute.travel.card import CARD, card
from lexiscope.precompute.travel.foreign_manifest import parse_manifest
from lexiscope.precompute.travel.hub_errors import in_words
from lexiscope.precompute.travel.on_hub import DATASET, IndexOnHub

COMMIT_BYTES = 2_000_000_000  # of layers that one commit brings, unless a single one has more
COMMIT_LAYERS = 8
LONGEST_CARD = 1 << 20  # bytes
BESIDES = {CARD, ".gitattributes", ".gitignore", "LICENSE", "LICENSE.md", "LICENSE.txt"}  # what any repository may have


class PushProgress(Progress):
    to_do = "to push, upper layers first"


@dataclass(frozen=True)
class PushOptions:
    private: bool = False  # of a repository that is made
    revision: str | None = None  # a branch, which is made if it is not there
    message: str | None = None
    force: bool = False


def push(index: Index, repository: str, options: PushOptions, progress: Progress) -> str:
    """Returns the commit at which all layers of the index are there."""
    for fault in index.faults.values():
        raise fault
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
        manifest = self._still_there(theirs) if theirs and goes_on else self.ours.with_changes(shards={})
        manifest = manifest.with_changes(reads_best=None)
        replaced = None if goes_on else theirs
        missing = [layer for layer in reversed(self.ours.shards) if layer not in manifest.shards]
        n_layers = manifest.shape.n_layers
        self.progress.start(manifest.model, n_layers, len(manifest.shards), len(missing))
        for layers in [*_batches(self.ours, missing)] or [[]]:
            for layer in layers:
                manifest = manifest.with_shard(layer, self.ours.shards[layer])
            if len(manifest.shards) == n_layers:
                best = self.ours.reads_best or (theirs.reads_best if theirs and goes_on else None)
                manifest = manifest.with_changes(reads_best=best)
            self._send(manifest, layers, replaced)
            replaced = None
        self.progress.stop()
        self.progress.say(
            f"{self.repository} has {len(manifest.shards)} of {n_layers} layers of {manifest.model} at commit "
            f"{self.commit[:12]}: `lexiscope pull {self.repository}` takes them elsewhere"
        )
        return self.commit

    def _published(self) -> Manifest | None:
        """The manifest that is there; OptionsDiffer or ForeignIndex for something that is in the way."""
        content = self.there.read(MANIFEST, MAX_BYTES)
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

    def _send(self, manifest: Manifest, layers: list[int], replaced: Manifest | None) -> None:
        """One commit: these layers, whatever else is new or has changed, and the manifest that lists it all."""
        additions: list[CommitOperationAdd] = []
        for entry in (manifest.vocabulary, manifest.neighbours, manifest.classifier):
            if entry and entry in self.ours.files.values() and not self._is_there(entry):
                additions.append(self._upload(entry))
        for layer in layers:
            additions.append(self._upload(manifest.shards[layer]))
            self.progress.layer_done(layer)
        for name, content in self._small_files(manifest).items():
            if not self.there.holds(name, content):
                additions.append(CommitOperationAdd(name, content))
        deletions = _files(replaced) - _files(manifest) if replaced else set()
        operations: list[Any] = [*additions, *(CommitOperationDelete(name) for name in sorted(deletions))]
        if not operations:
            return
        what = f"layers {ranges(tuple(layers))}" if layers else "what has changed"
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
        """Their manifest without files that somebody removed; ours has its own instead, where it has one."""

        def kept(entry: FileEntry | None, own: FileEntry | None) -> FileEntry | None:
            return entry if entry and self._is_there(entry) else own

        return theirs.with_changes(
            generation=max(theirs.generation, self.ours.generation),
            vocabulary=kept(theirs.vocabulary, self.ours.vocabulary),
            neighbours=kept(theirs.neighbours, self.ours.neighbours),
            classifier=kept(theirs.classifier, self.ours.classifier),
            shards={layer: entry for layer, entry in theirs.shards.items() if self._is_there(entry)},
        )

    def _is_there(self, entry: FileEntry) -> bool:
        file = self.there.files.get(entry.file)
        if file is None or file.size != entry.bytes:
            return False
        return file.lfs is None or file.lfs.sha256 == entry.sha256

    def _upload(self, entry: FileEntry) -> CommitOperationAdd:
        """Sends a file, which no commit holds yet; a damaged one is not sent."""
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
    """Without the folders of this machine that its sources may tell of; `build` does not depend on them."""
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


def _batches(manifest: Manifest, layers: list[int]) -> Iterator[list[int]]:
    """The layers of each commit."""
    batch: list[int] = []
    n_bytes = 0
    for layer in layers:
        size = manifest.shards[layer].bytes
        if batch and (len(batch) == COMMIT_LAYERS or n_bytes + size > COMMIT_BYTES):
            yield batch
            batch, n_bytes = [], 0
        batch.append(layer)
        n_bytes += size
    if batch:
        yield batch


def _files(manifest: Manifest) -> set[str]:
    return {entry.file for entry in manifest.files.values()}
