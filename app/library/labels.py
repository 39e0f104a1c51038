"""Labels, which are what people wrote about parameters: those in a data folder, and those that come with Lexiscope. A
file is read again when it changes; errors of a file are reported, and the other files are served."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from lexiscope.app.library.watched import Watched
from lexiscope.precompute.files import Stamp, stamp_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import DIRECTIONS, NEURONS, SUBHEADS, LabelAddress
from lexiscope.precompute.index.label_files import (
    LABELS,
    MOST_FILE_BYTES,
    MOST_FILES,
    MOST_FOLDER_BYTES,
    FiledLabel,
    LabelFile,
    first_errors,
    label_paths,
    plain_path,
    read_label_file,
)
from lexiscope.precompute.paper.labels import FILE as PAPER
from lexiscope.precompute.paper.labels import paper_labels
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.shape import Shape

READ_SECONDS = 0.5  # how long a request waits for files to be read; what takes longer is shown at a later request

# kind, layer, head or neuron, subhead or direction: the parameter that a label is about
_Key: TypeAlias = tuple[str, int | None, int | None, int | None]
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Folder:
    """The files in the folder of labels, and errors of the folder itself."""

    stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Read:
    """The labels of all files, as they were when they were last read."""

    by_model: dict[str, list[FiledLabel]]
    folder: _Folder | None = None
    files: dict[Path, LabelFile] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    version: str = ""


class Labels:
    """The labels (what people wrote about parameters) in a data folder. Files are checked for changes, which takes a
    stat of each, at most once in `every` seconds; a thread reads those that changed."""

    def __init__(
        self, data: Path, every: float = 1.0, built_in: Callable[[], tuple[FiledLabel, ...]] = paper_labels
    ) -> None:
        self.folder = data / LABELS
        self._built_in = built_in()
        self._reading: Future[_Read] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="labels")
        self._read = Watched(self._refresh, every, lambda _: self._reading is not None)
        self._models: dict[str, tuple[str, str, ModelLabels]] = {}

    def of(self, index: Index) -> "ModelLabels":
        """Return the labels of the model that the index was made from."""
        read, name, build = self._read.value(), index.manifest.model, index.manifest.build
        version, of_build, labels = self._models.get(name, ("", "", None))
        if labels is None or (version, of_build) != (read.version, build):
            labels = ModelLabels(read.by_model.get(name, ()), index.shape)
            self._models[name] = read.version, build, labels
        return labels

    def errors(self) -> tuple[str, ...]:
        """Return the errors in files of labels; each text begins with the name of the file."""
        return self._read.value().errors

    def version(self) -> str:
        """Return a text that changes whenever the labels may have changed."""
        return self._read.value().version

    def _refresh(self, before: _Read | None) -> _Read:
        """If files of labels have changed, let a thread read them, and wait half a second for it. Return the labels
        that were read last."""
        before = before or _Read(_by_model(self._built_in))
        if self._reading is None:
            folder = self._look()
            if folder == before.folder:
                return before
            self._reading = self._thread.submit(self._read_files, folder, before)
            wait([self._reading], READ_SECONDS)
        if not self._reading.done():
            return before
        finished, self._reading = self._reading, None
        return finished.result()

    def _look(self) -> _Folder:
        try:
            paths = label_paths(self.folder)
        except OSError as error:
            wrong = f"{LABELS}: it cannot be read ({error.strerror}): make it a folder that the server may read"
            return _Folder(errors=(wrong,))
        wrong = f"{LABELS}: it holds {len(paths)} files, and the first {MOST_FILES} are read: put labels together"
        stamps = {path: stamp_of(path) for path in paths[:MOST_FILES]}
        return _Folder(stamps, (wrong,) if len(paths) > MOST_FILES else ())

    def _read_files(self, folder: _Folder, before: _Read) -> _Read:
        """Read the files of labels again, except those that have not changed since the last time."""
        files: dict[Path, LabelFile] = {}
        errors = list(folder.errors)
        left = MOST_FOLDER_BYTES
        for path, stamp in folder.stamps.items():
            name = f"{LABELS}/{plain_path(path.name)}"
            size = stamp[1] if stamp and stamp[1] <= MOST_FILE_BYTES else 0  # a longer file is not read
            if size > left:
                most = file_size(MOST_FOLDER_BYTES)
                errors.append(f"{name}: it is left out, for all files together are over {most}: put fewer here")
                continue
            left -= size
            is_known = stamp and before.folder and before.folder.stamps.get(path) == stamp and path in before.files
            files[path] = before.files[path] if is_known else read_label_file(path, name, self.folder)
            errors += files[path].errors
        labels = [*self._built_in, *(label for file in files.values() for label in file.labels)]
        facts = repr((errors, labels)).encode("utf-8", "backslashreplace")
        version = hashlib.blake2b(facts, digest_size=12).hexdigest()
        return _Read(_by_model(labels), folder, files, tuple(errors), version)


def _by_model(labels: Iterable[FiledLabel]) -> dict[str, list[FiledLabel]]:
    models: dict[str, list[FiledLabel]] = {}
    for filed in labels:
        models.setdefault(filed.label.about.model, []).append(filed)
    return models


class ModelLabels:
    """The labels of one model in the order of its layers, which can be found by parameter and by their words. The
    object is false if there are none."""

    def __init__(self, labels: Iterable[FiledLabel] = (), shape: Shape | None = None) -> None:
        self._shape = shape
        self._at: dict[_Key, list[FiledLabel]] = {}
        fitting: list[FiledLabel] = []
        errors: dict[str, list[str]] = {}  # the errors of each file
        for filed in labels:
            if shape and (error := filed.label.about.what_is_wrong(shape)):
                errors.setdefault(filed.file, []).append(f"{filed.file}, entry {filed.entry}, address: {error}")
                continue
            fitting.append(filed)
            self._at.setdefault(self._key(filed.label.about), []).append(filed)
        self.labels = tuple(sorted(fitting, key=_order))
        # The error for labels of a parameter that the model does not have.
        self.errors = tuple(error for file, of_file in errors.items() for error in _misplaced(file, of_file))

    def __bool__(self) -> bool:
        return bool(self.labels)

    def at(self, kinds: Iterable[str], *numbers: int) -> tuple[FiledLabel, ...]:
        """Return the labels of any of these kinds; `numbers` are those of the layer, the head or neuron, and the
        subhead or direction that a label is about."""
        if not self.labels:
            return ()
        keys = (self._key(LabelAddress("", kind, *numbers)) for kind in kinds)
        return tuple(filed for key in keys for filed in self._at.get(key, ()))

    @property
    def of_model(self) -> tuple[FiledLabel, ...]:
        return self.at([""])

    def of_neuron(self, layer: int, neuron: int) -> tuple[FiledLabel, ...]:
        return self.at(NEURONS, layer, neuron)

    def of_head(self, layer: int, head: int, *matrices: str) -> tuple[FiledLabel, ...]:
        """Return the labels of a head as a whole, and those of the given matrices of the head."""
        return self.at(("head", *matrices), layer, head)

    def of_subhead(self, layer: int, head: int, subhead: int) -> tuple[FiledLabel, ...]:
        return self.at(SUBHEADS, layer, head, subhead)

    def of_direction(self, layer: int, head: int, direction: int) -> tuple[FiledLabel, ...]:
        return self.at(DIRECTIONS, layer, head, direction)

    def of_vector(self, vector: Mapping[str, Any]) -> tuple[FiledLabel, ...]:
        """Return the labels of one vector, or of the neuron, subhead (channel of a head) or singular direction that the
        vector belongs to."""
        kind, layer, head = vector["kind"], vector["layer"], vector["head"]
        if head is None:
            return self.at(("ff", kind), layer, vector["index"])
        if (direction := vector.get("direction")) is not None:
            return self.at(("svd", kind), layer, head, direction)
        return self.at(("sub", kind), layer, head, vector["subhead"])

    def with_words(self, text: str) -> list[FiledLabel]:
        """Return the labels that match a search: every word of `text` begins a word of the label's title, text or
        source, regardless of case."""
        words = [f" {word}" for word in _WORD.findall(text.casefold())]
        if not words:
            return []
        return [filed for filed, said in self._with_their_words if all(word in said for word in words)]

    @cached_property
    def _with_their_words(self) -> list[tuple[FiledLabel, str]]:
        """Return each label with all its words as one text, with a space before each word; the words of the title come
        first."""
        return [(filed, " " + " ".join(_WORD.findall(_words(filed).casefold()))) for filed in self.labels]

    def _key(self, address: LabelAddress) -> _Key:
        shared = address.in_shape(self._shape) if self._shape else address
        return shared.kind, shared.layer, shared.index, shared.sub


def _misplaced(file: str, errors: list[str]) -> list[str]:
    """Return the messages about a file's labels of parameters that the model does not have. For labels of the paper,
    which come with Lexiscope, the message says that this is no mistake."""
    if file != PAPER:
        return first_errors(file, errors)
    lists = "1 list of the paper is" if len(errors) == 1 else f"{len(errors)} lists of the paper are"
    return [f"{lists} of parameters that this index does not have: it is smaller than the model they were printed of"]


def _words(filed: FiledLabel) -> str:
    return f"{filed.label.title} {filed.label.text} {filed.label.source}"


def _order(filed: FiledLabel) -> tuple[int, ...]:
    about = filed.label.about
    return tuple(-1 if number is None else number for number in (about.layer, about.index, about.sub))
