"""All indexes of a data folder, each opened once and kept up to date while builds add layers and files come and go.
What is in an index is for the views; how its files are guarded is for live_index.py."""

import gc
import hashlib
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from app.library.card import ModelCard
from app.library.fault_text import for_visitors
from app.library.live_index import LiveIndex, Stamp, stamp_of
from precompute.errors import IndexFault, LexiscopeError, ManifestDamaged, NotFound
from precompute.files import read_regular
from precompute.index.manifest import MANIFEST, MODEL_NAME, TOKENIZER, signature_of
from precompute.index.manifest_fields import is_reserved


@dataclass(frozen=True)
class _Seen:
    """A model as it was when it was last looked at: an index, or why there is none."""

    at: float
    found: LiveIndex | LexiscopeError

    def still(self, every: float) -> bool:
        changed = isinstance(self.found, LiveIndex) and self.found.changed
        return not changed and time.monotonic() - self.at < every


class Library:
    def __init__(self, data: Path, every: float = 1.0) -> None:
        self.data = data
        self.every = every  # seconds between two looks at the files of one index
        self._lock = threading.RLock()
        self._seen: dict[str, _Seen] = {}
        self._listed: tuple[float, tuple[ModelCard, ...]] | None = None
        self._tokenizers: dict[str, tuple[str, Tokenizer | None, Stamp]] = {}

    def index(self, name: str) -> LiveIndex:
        seen = self._seen.get(name)
        if seen is None or not seen.still(self.every):
            seen = self._look(name)
        if isinstance(seen.found, LiveIndex):
            return seen.found
        raise type(seen.found)(str(seen.found))

    def version(self, name: str | None = None) -> str:
        """Another one whenever a page of this model, or without a name the home page, may show something else."""
        if name is not None:
            return self.index(name).version
        return " ".join(f"{card.model}:{self._version(card.model)}" for card in self.cards())

    def names(self) -> tuple[str, ...]:
        return tuple(card.model for card in self.cards())

    def cards(self) -> tuple[ModelCard, ...]:
        """Every model by name; a broken one says so and hides none of the others."""
        listed = self._listed
        if listed is None or time.monotonic() - listed[0] >= self.every:
            listed = self._listed = time.monotonic(), tuple(map(self._card, self._folders()))
        return listed[1]

    def tokenizer(self, name: str) -> Tokenizer | None:
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
            if seen and seen.still(self.every):  # another thread was faster
                return seen
            if not MODEL_NAME.fullmatch(name) or not signature_of(self.data / name):
                self._seen.pop(name, None)
                raise self._unknown(name)
            try:
                found: LiveIndex | LexiscopeError = self._opened(name, seen)
            except LexiscopeError as error:
                found = error.bare()
            looked = self._seen[name] = _Seen(time.monotonic(), found)
            if seen and isinstance(seen.found, LiveIndex) and seen.found is not found:
                del seen
                gc.collect()  # what was replaced holds open files
            return looked

    def _opened(self, name: str, before: _Seen | None) -> LiveIndex:
        if is_reserved(name):
            raise ManifestDamaged(
                f"{self.data / name} has a name that a page of the explorer has already: build it under another name, "
                "from a folder or file that is called otherwise"
            )
        if before and isinstance(before.found, LiveIndex):
            index = before.found.current()
        else:
            index = LiveIndex.open(self.data / name)
        if index.manifest.model != name:
            raise ManifestDamaged(
                f"{index.folder / MANIFEST} is of another model, {index.manifest.model}: rename the folder to that, "
                f"or delete it and run `lexiscope precompute {name}` again"
            )
        return index

    def _folders(self) -> list[str]:
        try:
            names = sorted(path.name for path in self.data.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise IndexFault(f"cannot list the data folder: {error.strerror}") from error
        return [name for name in names if MODEL_NAME.fullmatch(name) and signature_of(self.data / name)]

    def _card(self, name: str) -> ModelCard:
        try:
            index = self.index(name)
        except LexiscopeError as error:
            return ModelCard(model=name, faults=(for_visitors(error, self.data),))
        return ModelCard(
            model=name,
            name=index.manifest.name,
            architecture=index.shape.architecture,
            n_layers=index.shape.n_layers,
            layers=index.layers,
            bytes=index.n_bytes,
            revision=index.manifest.revision,
            origin=index.manifest.origin,
            faults=tuple(for_visitors(fault, self.data) for fault in index.faults.values()),
        )

    def _version(self, name: str) -> str:
        try:
            return self.index(name).version
        except LexiscopeError as error:
            return str(error)

    def _unknown(self, name: str) -> NotFound:
        built = self.names()
        hint = f"`lexiscope precompute {name}` makes one" if MODEL_NAME.fullmatch(name) else "this is no model's name"
        for other in built:
            if other.casefold() == name.casefold():
                hint = f"did you mean {other}?"
        return NotFound(f"no index of {name!r} (built: {', '.join(built) or 'none'}); {hint}")


def _load_tokenizer(path: Path, sha256: str) -> Tokenizer | None:
    try:
        content = read_regular(path)
        return Tokenizer.from_buffer(content) if hashlib.sha256(content).hexdigest() == sha256 else None
    except Exception:  # the library raises nothing more special; searches do without
        return None
