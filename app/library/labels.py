"""What people said of parameters: the labels in a data folder, and those that come with Lexiscope. Files are read once
and looked at for changes; what is wrong with one is said, and the others serve."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from lexiscope.app.library.model_labels import ModelLabels
from lexiscope.precompute.files import Stamp, stamp_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_files import (
    LABELS,
    MOST_BYTES,
    MOST_BYTES_OF_ALL,
    MOST_FILES,
    FiledLabel,
    LabelFile,
    label_paths,
    plain_path,
    read_label_file,
)
from lexiscope.precompute.paper.labels import paper_labels
from lexiscope.precompute.plain_text import file_size

WAIT_SECONDS = 0.5  # for files to be read; those that take longer are there a moment later


def built_in_labels() -> tuple[FiledLabel, ...]:
    """Those that come with Lexiscope: the lists that the paper printed."""
    return paper_labels()


@dataclass(frozen=True)
class _Seen:
    """The folder as a look finds it, and what is wrong with it as such."""

    stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Read:
    """All files as they were when they were last read."""

    seen: _Seen | None = None
    files: dict[Path, LabelFile] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    by_model: dict[str, list[FiledLabel]] = field(default_factory=dict)
    version: str = ""


class Labels:
    """The folder is looked at now and then, which takes a stat for each file; files are read in a thread."""

    def __init__(
        self, data: Path, every: float = 1.0, built_in: Callable[[], tuple[FiledLabel, ...]] = built_in_labels
    ) -> None:
        self.folder = data / LABELS
        self.every = every  # seconds between two looks
        self._built_in = built_in()
        self._looked = float("-inf")
        self._read = _Read(by_model=_by_model(self._built_in))
        self._reading: Future[_Read] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="labels")
        self._lock = threading.Lock()
        self._models: dict[str, tuple[str, str, ModelLabels]] = {}

    def of(self, index: Index) -> ModelLabels:
        """Those of a model, which has an index."""
        read, name, build = self._look(), index.manifest.model, index.manifest.build
        version, of_build, labels = self._models.get(name, ("", "", None))
        if labels is None or (version, of_build) != (read.version, build):
            labels = ModelLabels(read.by_model.get(name, ()), index.shape)
            self._models[name] = read.version, build, labels
        return labels

    def faults(self) -> tuple[str, ...]:
        """What is wrong with files, each by its name."""
        return self._look().faults

    def version(self) -> str:
        """Another one whenever labels may be others."""
        return self._look().version

    def _look(self) -> _Read:
        if time.monotonic() - self._looked >= self.every or self._reading:
            with self._lock:
                self._refresh()
        return self._read

    def _refresh(self) -> None:
        """Reads what has changed, unless that is under way."""
        if self._reading is None:
            self._looked = time.monotonic()
            seen = self._see()
            if seen == self._read.seen:
                return
            self._reading = self._thread.submit(self._read_files, seen, self._read)
            wait([self._reading], WAIT_SECONDS)
        if self._reading.done():
            finished, self._reading = self._reading, None
            self._read = finished.result()

    def _see(self) -> _Seen:
        try:
            paths = label_paths(self.folder)
        except OSError as error:
            fault = f"{LABELS}: it cannot be read ({error.strerror}): make it a folder that the server may read"
            return _Seen(faults=(fault,))
        fault = f"{LABELS}: it holds {len(paths)} files, and the first {MOST_FILES} are read: put labels together"
        stamps = {path: stamp_of(path) for path in paths[:MOST_FILES]}
        return _Seen(stamps, (fault,) if len(paths) > MOST_FILES else ())

    def _read_files(self, seen: _Seen, before: _Read) -> _Read:
        """All files but those that were read before and have not changed since."""
        files: dict[Path, LabelFile] = {}
        faults = list(seen.faults)
        left = MOST_BYTES_OF_ALL
        for path, stamp in seen.stamps.items():
            name = f"{LABELS}/{plain_path(path.name)}"
            size = stamp[1] if stamp and stamp[1] <= MOST_BYTES else 0  # a longer one is not read
            if size > left:
                most = file_size(MOST_BYTES_OF_ALL)
                faults.append(f"{name}: it is left out, for all files together are over {most}: put fewer here")
                continue
            left -= size
            is_known = stamp and before.seen and before.seen.stamps.get(path) == stamp and path in before.files
            files[path] = before.files[path] if is_known else read_label_file(path, name, self.folder)
            faults += files[path].faults
        labels = [*self._built_in, *(label for file in files.values() for label in file.labels)]
        facts = repr((faults, labels)).encode("utf-8", "backslashreplace")
        version = hashlib.blake2b(facts, digest_size=12).hexdigest()
        return _Read(seen, files, tuple(faults), _by_model(labels), version)


def _by_model(labels: Iterable[FiledLabel]) -> dict[str, list[FiledLabel]]:
    models: dict[str, list[FiledLabel]] = {}
    for filed in labels:
        models.setdefault(filed.label.about.model, []).append(filed)
    return models
