"""Takes an index from where it was published, one missing layer after the other, upper ones first. A layer that has
arrived is listed at once, as in a build, so the job can be killed at any moment and a server shows what is there."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lexiscope.precompute.build.build_folder import (
    BuildFolder,
    generation_after,
    load_current,
    read_build_state,
    with_best_lens,
)
from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.errors import AlteredFile, DiskFull, ForeignIndex, NotFound, TravelError
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.index.index_files import open_classifier, open_neighbours, open_shard, open_vocabulary
from lexiscope.precompute.index.lab_record import LAB
from lexiscope.precompute.index.layout import classifier_file, neighbours_file, shard_file, vocabulary_file
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.manifest_entries import FileEntry
from lexiscope.precompute.index.manifest_format import read_old_fields
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.travel.arrivals import Arrivals
from lexiscope.precompute.travel.foreign_manifest import read_manifest
from lexiscope.precompute.travel.in_folder import IndexInFolder
from lexiscope.precompute.travel.published import PublishedIndex
from lexiscope.precompute.travel.pulled_record import PulledRecord


class PullProgress(Progress):
    to_do = "to fetch, upper layers first"


@dataclass(frozen=True)
class PullOptions:
    revision: str = ""  # of a repository, as it was asked for
    layers: tuple[int, ...] | None = None  # None: all that are published
    force: bool = False  # replace an index of another build


def pull(
    published: PublishedIndex,
    asked: str,
    data: Path,
    options: PullOptions,
    progress: Progress,
    is_reserved: Callable[[str], bool],
) -> Path:
    """Makes or completes DATA/<model>; returns that folder. `asked` is what a user called the published index."""
    theirs = read_manifest(published, is_reserved)
    wanted = _wanted_layers(theirs, options, published.where)
    folder = data / theirs.model
    if isinstance(published, IndexInFolder) and folder.exists() and folder.samefile(published.folder):
        raise TravelError(f"{folder} is the very index that is to be pulled: give another --data DIR")
    progress.say(f"{theirs.model}: {len(theirs.shards)} of {theirs.shape.n_layers} layers are in {published.where}")
    with build_lock(folder):
        manifest, manifest_name = _state(folder, theirs, wanted, options.force)
        missing = [layer for layer in reversed(wanted) if layer not in manifest.shards]
        _check_room(folder, manifest, theirs, missing)
        record = PulledRecord(
            asked=asked, revision=options.revision, commit=published.commit, build=theirs.build, complete=False
        )
        complete = record.model_copy(update={"complete": True})
        if not (was_complete := PulledRecord.load(folder) == complete):
            record.save(folder)
        try:
            arrivals = Arrivals(published, folder)
            build_folder = BuildFolder(folder, manifest_name, arrivals.take_tokenizer(theirs))
            progress.start(manifest.model, manifest.shape.n_layers, len(manifest.shards), len(missing))
            now = _fetch(manifest, theirs, missing, arrivals, build_folder, progress)
        except (AlteredFile, ForeignIndex):
            PulledRecord.forget(folder)  # at the next try there may be a better commit
            raise
        if len(now.shards) == now.shape.n_layers and now.reads_best is None:
            now = with_best_lens(folder, now.with_changes(reads_best=theirs.reads_best))
        if (options.force or not (folder / LAB).exists()) and (left_out := arrivals.take_lab(now)):
            progress.say(left_out)
        written = build_folder.finish(now)
        if not was_complete:
            complete.save(folder)
        progress.finish(folder, len(now.shards), now.shape.n_layers, nothing_done=not written and now == manifest)
    return folder


def _wanted_layers(theirs: Manifest, options: PullOptions, where: str) -> list[int]:
    layers = [*theirs.shards] if options.layers is None else sorted({*options.layers})
    if absent := [layer for layer in layers if layer not in theirs.shards]:
        raise NotFound(
            f"layer {absent[-1]} of {theirs.model} is not in {where}: it has {ranges(tuple(theirs.shards))} of "
            f"{theirs.shape.n_layers} layers"
        )
    return layers


def _state(folder: Path, theirs: Manifest, wanted: list[int], force: bool) -> tuple[Manifest, str]:
    """The manifest with the files that are here already, and the name it is to have: as at the start of a build."""
    current = load_current(folder, theirs.weights_sha256, force)
    new = theirs.with_changes(vocabulary=None, neighbours=None, classifier=None, shards={}, reads_best=None)
    if current and current.build == theirs.build:  # this machine may know a better source of the weights
        new = new.with_changes(source=current.source, minus=current.minus)
    new = new.with_changes(generation=max(theirs.generation, generation_after(read_old_fields(folder))))
    replaces = force and current is not None and current.build != theirs.build
    return read_build_state(folder, new, current, wanted, replaces)


def _check_room(folder: Path, manifest: Manifest, theirs: Manifest, missing: Iterable[int]) -> None:
    """DiskFull before hours of downloading."""
    entries: list[FileEntry | None] = [theirs.shards[layer] for layer in missing]
    entries += [
        getattr(theirs, name) for name in ("vocabulary", "neighbours", "classifier") if not getattr(manifest, name)
    ]
    needed, free = sum(entry.bytes for entry in entries if entry), shutil.disk_usage(folder).free
    if needed > free:
        raise DiskFull(
            f"{theirs.model} takes {file_size(needed)} more, and {folder} has {file_size(free)} left: free some, "
            "choose another --data DIR, or fetch fewer --layers"
        )


def _fetch(
    manifest: Manifest,
    theirs: Manifest,
    missing: list[int],
    arrivals: Arrivals,
    build_folder: BuildFolder,
    progress: Progress,
) -> Manifest:
    generation = manifest.generation
    if manifest.vocabulary is None and theirs.vocabulary:
        open_file: Callable[[Path], object] = partial(open_vocabulary, manifest=theirs)
        entry = arrivals.take(theirs.vocabulary, vocabulary_file(generation), open_file, _no_step)
        manifest = manifest.with_changes(vocabulary=entry)
        build_folder.save(manifest)
    if theirs.classifier and manifest.classifier is None:
        open_file = partial(open_classifier, manifest=theirs, entry=theirs.classifier)
        head = arrivals.take(theirs.classifier, classifier_file(generation), open_file, _no_step)
        manifest = manifest.with_changes(classifier=head)
        build_folder.save(manifest)
    for layer in missing:
        build_folder.check()
        open_file = partial(open_shard, manifest=theirs, layer=layer)
        entry = arrivals.take(theirs.shards[layer], shard_file(layer, generation), open_file, progress.step)
        manifest = manifest.with_shard(layer, entry)
        build_folder.save(manifest)
        progress.layer_done(layer)
        manifest = _with_neighbours(manifest, theirs, arrivals, build_folder)
    return _with_neighbours(manifest, theirs, arrivals, build_folder)


def _with_neighbours(manifest: Manifest, theirs: Manifest, arrivals: Arrivals, build_folder: BuildFolder) -> Manifest:
    """After the first layer, as in a build: not before there is something to read."""
    if manifest.neighbours or not theirs.neighbours:
        return manifest
    name = neighbours_file(manifest.generation)
    entry = arrivals.take(theirs.neighbours, name, partial(open_neighbours, manifest=theirs), _no_step)
    manifest = manifest.with_changes(neighbours=entry)
    build_folder.save(manifest)
    return manifest


def _no_step(_: float) -> None:
    """Of files that are of no layer: the bar counts layers."""
