"""All indexes of a data folder, each opened once and kept up to date while builds add layers and files come and go."""

import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.app.library.card import ModelCard, architecture_name
from lexiscope.app.library.checksums import Checksums
from lexiscope.app.library.comparisons import ComparisonCard, Comparisons, weights_of
from lexiscope.app.library.fault_text import for_visitors
from lexiscope.app.library.labels import Labels
from lexiscope.app.library.model_labels import ModelLabels
from lexiscope.precompute.errors import IndexFault, LexiscopeError, ManifestDamaged, NotFound
from lexiscope.precompute.files import Stamp, read_regular, stamp_of
from lexiscope.precompute.index.comparison import Comparison, Side
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import TOKENIZER, has_manifest
from lexiscope.precompute.index.model_names import MODEL_NAME, model_name

if TYPE_CHECKING:  # importing it costs what `lexiscope show` of a neuron does not need
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class _Seen:
    """A model as it was when it was last looked at: an index, or why there is none."""

    at: float
    index: Index | LexiscopeError
    checks: tuple[Future[None], ...] = ()  # of files that were touched, still running then

    def is_fresh(self, every: float) -> bool:
        changed = isinstance(self.index, Index) and self.index.changed
        checked = any(check.done() for check in self.checks)
        return not changed and not checked and time.monotonic() - self.at < every


class Library:
    """Files are looked at on the event loop, which takes a stat each; they are hashed in a thread."""

    def __init__(self, data: Path, every: float = 1.0, is_reserved: Callable[[str], bool] = lambda _: False) -> None:
        """`is_reserved` tells the names that no model may have, because another page has that address."""
        self.data = data
        self._is_reserved = is_reserved
        self.every = every  # seconds between two looks at the files of one index
        self._lock = threading.RLock()
        self._seen: dict[str, _Seen] = {}
        self._listed: tuple[float, tuple[ModelCard, ...]] | None = None
        self._tokenizers: dict[str, tuple[str, Tokenizer | None, Stamp | None]] = {}
        self._checksums = Checksums()
        self._best_lenses: dict[str, str] = {}  # by build
        self._comparisons = Comparisons(data, every)
        self._labels = Labels(data, every)

    def index(self, name: str) -> Index:
        seen = self._seen.get(name)
        if seen is None or not seen.is_fresh(self.every):
            seen = self._look(name)
        if isinstance(seen.index, Index):
            return seen.index
        raise type(seen.index)(str(seen.index))

    def wait_for_checks(self, name: str) -> None:
        """Waits until the files of a model that were touched have been hashed."""
        self.index(name)
        if seen := self._seen.get(name):
            wait(seen.checks)

    def version(self) -> str:
        """Another one whenever the home page may show something else."""
        models = [f"{card.model}:{self.index_version(card.model)}" for card in self.cards()]
        return " ".join([*models, self.comparisons_version()]).strip()

    def names(self) -> tuple[str, ...]:
        return tuple(card.model for card in self.cards())

    def cards(self) -> tuple[ModelCard, ...]:
        """Every model by name; a broken one says so and hides none of the others."""
        listed = self._listed
        if listed is None or time.monotonic() - listed[0] >= self.every:
            listed = self._listed = time.monotonic(), tuple(map(self._card, self._folders()))
        return listed[1]

    def comparisons(self) -> tuple[ComparisonCard, ...]:
        """Every comparison of two models, whether they have indexes here or not; a broken one says so."""
        return self._comparisons.cards()

    def comparisons_version(self) -> str:
        """Another one whenever something of a comparison may be shown otherwise."""
        return self._comparisons.version()

    def comparison(self, a: str, b: str) -> Comparison:
        return self._comparisons.find(a, b)

    def comparisons_of(self, index: Index) -> list[tuple[Side, Comparison]]:
        """The comparisons of the very weights that an index is of, and which of the two its model is."""
        name, weights = index.manifest.model, weights_of(index.manifest)
        found: list[tuple[Side, Comparison]] = []
        for comparison in self._comparisons.of_model(name):
            side: Side = "a" if comparison.a.model == name else "b"
            if weights_of(comparison.a if side == "a" else comparison.b) == weights:
                found.append((side, comparison))
        return found

    def labels(self, index: Index) -> ModelLabels:
        """What people said of the parameters of a model."""
        return self._labels.of(index)

    def label_faults(self) -> tuple[str, ...]:
        """What is wrong with files of labels."""
        return self._labels.faults()

    def labels_version(self) -> str:
        """Another one whenever labels may be others."""
        return self._labels.version()

    def tokenizer(self, name: str) -> "Tokenizer | None":
        """The model's tokenizer, loaded when it is first asked for; None if its file is missing or another one."""
        index = self.index(name)
        wanted = index.manifest.tokenizer_sha256
        path = index.folder / TOKENIZER
        with self._lock:
            held = self._tokenizers.get(name)
            if held is None or held[0] != wanted or (held[1] is None and held[2] != stamp_of(path)):
                stamp = stamp_of(path)
                held = self._tokenizers[name] = wanted, _load_tokenizer(path, wanted), stamp
        return held[1]

    def _look(self, name: str) -> _Seen:
        with self._lock:
            seen = self._seen.get(name)
            if seen and seen.is_fresh(self.every):  # another thread was faster
                return seen
            if not MODEL_NAME.fullmatch(name) or not has_manifest(self.data / name):
                self._seen.pop(name, None)
                raise self._unknown(name)
            try:
                looked = self._open(name, seen)
            except LexiscopeError as error:
                looked = _Seen(time.monotonic(), error.bare())
            self._seen[name] = looked
            return looked

    def _open(self, name: str, before: _Seen | None) -> _Seen:
        if self._is_reserved(name):
            raise ManifestDamaged(
                f"{self.data / name} has a name that a page of the explorer has already: build it under another name, "
                "from a folder or file that is called otherwise"
            )
        known = before.index if before and isinstance(before.index, Index) else None
        index = known.refreshed() if known else Index.open(self.data / name)
        index.manifest.check_folder(index.folder, name)
        if index is known:
            return _Seen(time.monotonic(), index)
        faults, running = self._checksums.faults(index)
        return _Seen(time.monotonic(), index.with_faults(faults) if faults else index, running)

    def _folders(self) -> list[str]:
        try:
            names = sorted(path.name for path in self.data.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise IndexFault(f"cannot list the data folder: {error.strerror}") from error
        return [name for name in names if MODEL_NAME.fullmatch(name) and has_manifest(self.data / name)]

    def _card(self, name: str) -> ModelCard:
        try:
            index = self.index(name)
        except LexiscopeError as error:
            return ModelCard(model=name, faults=(for_visitors(error, self.data),))
        return ModelCard(
            model=name,
            name=index.manifest.name,
            architecture=index.shape.architecture,
            architecture_name=architecture_name(index.shape),
            causal=index.shape.causal,
            n_layers=index.shape.n_layers,
            layers=index.layers,
            best_lens=self.best_lens(index),
            bytes=index.n_bytes,
            revision=index.manifest.revision,
            build=index.manifest.build,
            origin=index.manifest.origin,
            tuned=minus.tuned if (minus := index.manifest.minus) else "",
            base=minus.model if minus else "",
            faults=tuple(for_visitors(fault, self.data) for fault in index.faults.values()),
        )

    def best_lens(self, index: Index) -> str:
        """The lens that reads best. While layers are missing, it is measured once, on the first that are there: all of
        them take a second."""
        if len(index.layers) == index.shape.n_layers or not index.layers:
            return index.best_lens
        build = index.manifest.build
        if build not in self._best_lenses:
            self._best_lenses[build] = index.best_lens
        return self._best_lenses[build]

    def index_version(self, name: str) -> str:
        """Another one whenever what is shown of a model may be something else; also of one that has no index."""
        try:
            return self.index(name).version
        except LexiscopeError as error:
            return str(error)

    def _unknown(self, name: str) -> NotFound:
        built = self.names()
        hint = f"`lexiscope precompute {name}` makes one" if MODEL_NAME.fullmatch(name) else "this is no model's name"
        for other in built:
            if other.casefold() == model_name(name).casefold():  # `demo` is what commands call the demo's index
                hint = f"did you mean {other}?"
        return NotFound(f"no index of {name!r} (built: {', '.join(built) or 'none'}); {hint}")


def _load_tokenizer(path: Path, sha256: str) -> "Tokenizer | None":
    from lexiscope.precompute.index.tokenizer import parse_tokenizer  # the library `tokenizers`, for live pages alone

    try:
        content = read_regular(path)
        return parse_tokenizer(content) if hashlib.sha256(content).hexdigest() == sha256 else None
    except Exception:  # the library raises nothing more special; searches do without
        return None
