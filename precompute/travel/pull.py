"""Fetch a published index, one missing piece after the other, upper layers first. A piece that has arrived is listed at
once, as in a build, so the job can be killed at any moment and a server shows the pieces that have arrived."""

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lexiscope.precompute.build.build_folder import (
    BuildFolder,
    generation_after,
    in_order,
    load_current,
    read_build_state,
    with_best_lens,
)
from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.errors import AlteredFile, DiskFull, ForeignIndex, NotFound, NotPublished, TravelError
from lexiscope.precompute.files import open_regular, write_beside
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.index.index_files import check_piece
from lexiscope.precompute.index.lab_record import LAB
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import Manifest, read_old_fields
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.travel.arrivals import Arrivals
from lexiscope.precompute.travel.foreign_manifest import read_manifest
from lexiscope.precompute.travel.in_folder import IndexInFolder
from lexiscope.precompute.travel.published import PublishedIndex

PULLED = "pulled.json"  # in the index's folder
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# Prefixes that people copy from a browser, or that other tools write.
_ON_HUB = re.compile(rf"(?:https://(?:huggingface\.co|hf\.co)|hf:/)/datasets/({REPOSITORY.pattern})(?:/tree/(.+?))?/?")
_MOST_PULL_BYTES = 1 << 16


def open_published(asked: str, revision: str | None = None) -> PublishedIndex:
    """Open the index that a person means by owner/name, an address or a folder; an existing folder goes before a
    repository."""
    repository, named_revision = asked, None
    if copied := _ON_HUB.fullmatch(asked):
        repository, named_revision = copied[1], copied[2]
    elif re.match(r"https?://", asked):
        _no_revision(asked, revision)
        from lexiscope.precompute.travel.on_web import IndexOnWeb

        return IndexOnWeb(asked)
    elif (folder := _folder(asked)).exists() or not REPOSITORY.fullmatch(asked):
        _no_revision(asked, revision)
        return IndexInFolder(folder)
    from lexiscope.precompute.travel.on_hub import IndexOnHub

    return IndexOnHub(repository, revision or named_revision)


def _folder(asked: str) -> Path:
    """Return the path of the folder that a person means; raise NotPublished if the text cannot be the name of a
    folder."""
    try:
        folder = Path(asked).expanduser()
        folder.exists()
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NotPublished(
            f"{asked[:80]} cannot be looked for ({why}): give a folder, an address or owner/name"
        ) from None
    return folder


def _no_revision(asked: str, revision: str | None) -> None:
    if revision is not None:
        raise NotPublished(f"--revision {revision}: {asked} is no repository of the Hub (owner/name) and has none")


class PullProgress(Progress):
    to_do = "to fetch, upper layers first"


@dataclass(frozen=True)
class PullOptions:
    revision: str = ""  # the revision of a repository, as the user asked for it
    layers: tuple[int, ...] | None = None  # None: all that are published
    force: bool = False  # whether to replace an index of another build


class PulledRecord(BaseModel):
    """Where an index was pulled from: a stopped pull continues at the same commit, whatever was pushed meanwhile."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    # The argument of `lexiscope pull`: owner/name, an address or a folder.
    asked: Annotated[str, Field(max_length=4096)]
    revision: Annotated[str, Field(max_length=4096)]  # the argument of --revision, or ""
    commit: Annotated[str, Field(pattern=r"\A([0-9a-f]{40})?\z")]  # the commit of a repository; "" elsewhere
    build: Annotated[str, Field(pattern=r"\A[0-9a-f]{16}\z")]  # as in the manifest
    complete: bool  # whether all that was asked for has arrived

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read the record in an index's folder; None if the index was not pulled, or if the record is damaged."""
        try:
            with open_regular(folder / PULLED) as file:
                return cls.model_validate_json(file.read(_MOST_PULL_BYTES))
        except (OSError, ValidationError):
            return None

    def save(self, folder: Path) -> None:
        write_beside(folder / PULLED, [self.model_dump_json(indent=1).encode() + b"\n"])

    @staticmethod
    def forget(folder: Path) -> None:
        (folder / PULLED).unlink(missing_ok=True)


def pull(
    published: PublishedIndex,
    asked: str,
    data: Path,
    options: PullOptions,
    progress: Progress,
    is_reserved: Callable[[str], bool],
) -> Path:
    """Make or complete the index in DATA/<model>, and return that folder. `asked` is the name that a user gave for the
    published index."""
    theirs = read_manifest(published, is_reserved)
    wanted = _wanted_layers(theirs, options, published.where)
    folder = data / theirs.model
    if isinstance(published, IndexInFolder) and folder.exists() and folder.samefile(published.folder):
        raise TravelError(f"{folder} is the very index that is to be pulled: give another --data DIR")
    progress.say(f"{theirs.model}: {len(theirs.shards)} of {theirs.shape.n_layers} layers are in {published.where}")
    with build_lock(folder):
        known = [piece for piece, entry in theirs.entries().items() if piece.is_known(entry.file)]
        pieces = [piece for piece in known if piece.layer in (None, *wanted)]  # unknown parts are left where they are
        manifest, manifest_name = _state(folder, theirs, pieces, options.force)
        missing = _missing_pieces(manifest, theirs, pieces)
        _check_room(folder, theirs, missing)
        record = PulledRecord(
            asked=asked, revision=options.revision, commit=published.commit, build=theirs.build, complete=False
        )
        complete = record.model_copy(update={"complete": True})
        if not (was_complete := PulledRecord.load(folder) == complete):
            record.save(folder)
        try:
            arrivals = Arrivals(published, folder)
            build_folder = BuildFolder(folder, manifest_name, arrivals.take_tokenizer(theirs))
            layers = sum(piece.part == "lists" for piece in missing)
            added = sorted({piece.part for piece in missing if piece.layer in manifest.shards})
            progress.start(manifest.model, manifest.shape.n_layers, len(manifest.shards), layers, " and ".join(added))
            now = _fetch(manifest, theirs, missing, arrivals, build_folder, progress)
        except (AlteredFile, ForeignIndex):
            PulledRecord.forget(folder)  # so that the next try may take a newer commit
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


def _state(folder: Path, theirs: Manifest, wanted: list[Piece], force: bool) -> tuple[Manifest, str]:
    """Return the manifest with the files that are here already, and the file name under which it is to be saved, as for
    a build."""
    current = load_current(folder, theirs.weights_sha256, force)
    new = Manifest(**{name: getattr(theirs, name) for name in Manifest.model_fields}).only(())
    new = new.with_changes(reads_best=None)
    # Keep our source of the weights, because this machine may know a better one.
    if current and current.build == theirs.build:
        new = new.with_changes(source=current.source, minus=current.minus)
    new = new.with_changes(generation=max(theirs.generation, generation_after(read_old_fields(folder))))
    replaces = force and current is not None and current.build != theirs.build
    return read_build_state(folder, new, current, wanted, replaces)


def _check_room(folder: Path, theirs: Manifest, missing: Iterable[Piece]) -> None:
    """Raise DiskFull if the missing files do not fit, before hours of downloading."""
    entries = theirs.entries()
    needed, free = sum(entries[piece].bytes for piece in missing), shutil.disk_usage(folder).free
    if needed > free:
        raise DiskFull(
            f"{theirs.model} takes {file_size(needed)} more, and {folder} has {file_size(free)} left: free some, "
            "choose another --data DIR, or fetch fewer --layers"
        )


def _missing_pieces(ours: Manifest, theirs: Manifest, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces (files of an index) that are missing here, or older than those of `theirs`, in the order to
    fetch them."""
    here, there = ours.entries(), theirs.entries()

    def is_missing(piece: Piece) -> bool:
        return piece not in here or (piece.version_in(here[piece].file) or 0) < (
            piece.version_in(there[piece].file) or 0
        )

    return in_order([piece for piece in pieces if is_missing(piece)])


def _fetch(
    manifest: Manifest,
    theirs: Manifest,
    missing: list[Piece],
    arrivals: Arrivals,
    build_folder: BuildFolder,
    progress: Progress,
) -> Manifest:
    """Fetch the missing pieces, and list each in the manifest as it arrives; the progress bar counts layers by their
    lists."""
    entries = theirs.entries()
    for piece in missing:
        build_folder.check()
        is_layer = piece.part == "lists"
        name = piece.file(manifest.generation, piece.version_in(entries[piece].file))
        open_file = partial(check_piece, manifest=theirs, piece=piece)
        entry = arrivals.take(entries[piece], name, open_file, progress.step if is_layer else lambda _: None)
        manifest = manifest.with_entry(piece, entry)
        build_folder.save(manifest)
        if is_layer and piece.layer is not None:
            progress.layer_done(piece.layer)
    return manifest


def unfinished_commit(data: Path, asked: str, revision: str) -> str | None:
    """Return the commit at which the same pull was begun and not finished, if there is one in this data folder."""
    try:
        folders = [path for path in data.iterdir() if path.is_dir()]
    except OSError:
        return None
    for folder in sorted(folders):
        record = PulledRecord.load(folder)
        if record and (record.asked, record.revision, record.complete) == (asked, revision, False) and record.commit:
            return record.commit
    return None
