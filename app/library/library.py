"""Open all indexes of a data folder, each once, and keep them up to date while builds add layers and files are added
and removed."""

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lexiscope.app.library.checks import Checksums, for_visitors
from lexiscope.app.library.comparisons import Comparisons, weights_of
from lexiscope.app.library.labels import Labels
from lexiscope.app.library.vocabularies import Vocabularies
from lexiscope.app.library.watched import Watched
from lexiscope.precompute.errors import IndexFault, LexiscopeError, ManifestDamaged, NotFound
from lexiscope.precompute.files import Stamp, read_regular, stamp_of
from lexiscope.precompute.index.comparison import Comparison, Side
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import TOKENIZER, has_manifest
from lexiscope.precompute.index.origin import MODEL_NAME, model_name
from lexiscope.precompute.shape import Shape

if TYPE_CHECKING:  # importing this takes time that `lexiscope show` of a neuron does not need
    from tokenizers import Tokenizer

UNNAMED = {"gpt2": "GPT-2", "llama": "Llama"}  # names of architectures, for old indexes that stored none


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What the home page shows of a model."""

    model: str
    name: str = ""  # its public name, such as "openai-community/gpt2"; "" if that is not known
    architecture: str = ""  # the model_type of its config.json
    architecture_name: str = ""  # the architecture's name for people
    causal: bool = True  # False for an encoder
    n_layers: int = 0  # 0 if the index cannot be used
    layers: tuple[int, ...] = ()  # the layers that can be read
    best_lens: str = ""  # the lens (dot or cosine) whose lists are the most readable: links from other pages use it
    lenses: tuple[str, ...] = ()  # the lenses that are stored
    bytes: int = 0
    revision: str = ""
    build: str = ""  # the build of the model's index
    origin: str = ""  # the origin of the weights, as text for people
    tuned: str = ""  # for a difference (tuned - base), the name of the tuned model
    base: str = ""  # for a difference, the name of the base; "" for a single model
    faults: tuple[str, ...]  # errors in the model's files, as text for people


@dataclass(frozen=True)
class OfTwo:
    """One of the two models of a difference (tuned - base)."""

    name: str  # the model's name in the difference's manifest
    index: str | None  # the name of an index of exactly these weights; None if the data folder has none


class TwoModels(NamedTuple):
    """The two models of a difference (tuned - base)."""

    tuned: OfTwo
    base: OfTwo


@dataclass(frozen=True)
class _Opened:
    """A model's open index, or the error with the reason why it cannot be used; both are None if the index was
    removed."""

    index: Index | LexiscopeError | None
    # checksums of changed files that were still being computed when the index was opened
    checks: tuple[Future[None], ...] = ()

    def is_outdated(self) -> bool:
        return (isinstance(self.index, Index) and self.index.changed) or any(check.done() for check in self.checks)


class Library:
    """The indexes, labels and comparisons of a data folder, opened anew when their files change. To see whether they
    changed takes one stat of each file, on the event loop; checksums are computed in a thread."""

    def __init__(self, data: Path, every: float = 1.0, is_reserved: Callable[[str], bool] = lambda _: False) -> None:
        """Files of one index are checked for changes at most once in `every` seconds. `is_reserved` returns True for
        names that no model may have, because another page has that address."""
        self.data = data
        self.every = every
        self._is_reserved = is_reserved
        self._indexes: dict[str, Watched[_Opened]] = {}
        self._cards = Watched[tuple[ModelCard, ...]](lambda _: tuple(map(self._card, self._folders())), every)
        self._tokenizers: dict[str, tuple[str, Tokenizer | None, Stamp | None]] = {}
        self._loading = threading.Lock()  # held while a tokenizer is loaded
        self._checksums = Checksums()
        self._best_lenses: dict[str, str] = {}  # the most readable lens of each build
        self.comparisons = Comparisons(data, every)
        self.labels = Labels(data, every)
        self.vocabularies = Vocabularies(data)

    def index(self, name: str) -> Index:
        """Return the open index of a model; raise an error with the reason if there is none."""
        index = self._opened(name).index
        if isinstance(index, Index):
            return index
        assert index
        raise type(index)(str(index))

    def wait_for_checks(self, name: str) -> None:
        """Wait until the changed files of a model have been compared with their checksums."""
        wait(self._opened(name).checks)

    def version(self) -> str:
        """Return a text that changes whenever the home page may change."""
        models = [f"{card.model}:{self.index_version(card.model)}" for card in self.cards()]
        return " ".join([*models, self.comparisons.version()]).strip()

    def names(self) -> tuple[str, ...]:
        return tuple(card.model for card in self.cards())

    def cards(self) -> tuple[ModelCard, ...]:
        """Return a card for every model, in the order of names. The card of a broken model has its errors, and the
        other models are still shown."""
        return self._cards.value()

    def comparisons_of(self, index: Index) -> list[tuple[Side, Comparison]]:
        """Return the comparisons of exactly the weights that an index was made from, each with the side that its model
        is on."""
        name, weights = index.manifest.model, weights_of(index.manifest)
        found: list[tuple[Side, Comparison]] = []
        for comparison in self.comparisons.of_model(name):
            side: Side = "a" if comparison.a.model == name else "b"
            if weights_of(comparison.a if side == "a" else comparison.b) == weights:
                found.append((side, comparison))
        return found

    def tokenizer(self, name: str) -> "Tokenizer | None":
        """Return the model's tokenizer, which is loaded when it is first asked for; None if its file is missing, or not
        the one that the index was built with."""
        index = self.index(name)
        wanted = index.manifest.tokenizer_sha256
        path = index.folder / TOKENIZER
        with self._loading:
            held = self._tokenizers.get(name)
            if held is None or held[0] != wanted or (held[1] is None and held[2] != stamp_of(path)):
                stamp = stamp_of(path)
                held = self._tokenizers[name] = wanted, _load_tokenizer(path, wanted), stamp
        return held[1]

    def best_lens(self, index: Index) -> str:
        """Return the lens, dot or cosine, whose lists are the most readable. While layers are missing, it is measured
        only once, on the first layers that are ready, because measuring it on all of them takes a second."""
        if len(index.layers) == index.shape.n_layers or not index.layers:
            return index.best_lens
        build = index.manifest.build
        if build not in self._best_lenses:
            self._best_lenses[build] = index.best_lens
        return self._best_lenses[build]

    def index_version(self, name: str) -> str:
        """Return a text that changes whenever a page about the model may change; a model without an index has one,
        too."""
        try:
            return self.index(name).version
        except LexiscopeError as error:
            return str(error)

    def two_models(self, index: Index) -> TwoModels | None:
        """Return the two models of a difference (tuned - base); None if the index is of one model."""
        minus = index.manifest.minus
        if minus is None:
            return None
        tuned = OfTwo(minus.tuned, self._index_with(minus.tuned, index.manifest.weights_sha256))
        return TwoModels(tuned, OfTwo(minus.model, self._index_with(minus.model, minus.weights_sha256)))

    def _index_with(self, name: str, weights_sha256: str) -> str | None:
        """Return the name of an index of a single model with these weights; the index called `name` is tried first."""
        for other in (name, *self.names()):
            with suppress(LexiscopeError):
                manifest = self.index(other).manifest
                if manifest.minus is None and manifest.weights_sha256 == weights_sha256:
                    return other
        return None

    def _opened(self, name: str) -> _Opened:
        watched = self._indexes.get(name)
        if watched is None:
            if not self._has_index(name):  # names that visitors invent are not remembered
                raise self._unknown(name)
            watched = Watched(partial(self._open, name), self.every, _Opened.is_outdated)
            watched = self._indexes.setdefault(name, watched)
        opened = watched.value()
        if opened.index is None:
            self._indexes.pop(name, None)
            raise self._unknown(name)
        return opened

    def _open(self, name: str, before: _Opened | None) -> _Opened:
        if not self._has_index(name):
            return _Opened(None)
        try:
            if self._is_reserved(name):
                raise ManifestDamaged(
                    f"{self.data / name} has a name that a page of the explorer has already: build it under another "
                    "name, from a folder or file that is called otherwise"
                )
            known = before.index if before and isinstance(before.index, Index) else None
            index = known.refreshed() if known else Index.open(self.data / name)
            index.manifest.check_folder(index.folder, name)
        except LexiscopeError as error:
            return _Opened(error.bare())
        if index is known:
            return _Opened(index)
        errors, running = self._checksums.find_errors(index)
        return _Opened(index.with_faults(errors) if errors else index, running)

    def _has_index(self, name: str) -> bool:
        return bool(MODEL_NAME.fullmatch(name)) and has_manifest(self.data / name)

    def _folders(self) -> list[str]:
        try:
            names = sorted(path.name for path in self.data.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise IndexFault(f"cannot list the data folder: {error.strerror}") from error
        return [name for name in names if self._has_index(name)]

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
            lenses=index.stored.lenses,
            bytes=index.n_bytes,
            revision=index.manifest.revision,
            build=index.manifest.build,
            origin=index.manifest.origin,
            tuned=minus.tuned if (minus := index.manifest.minus) else "",
            base=minus.model if minus else "",
            faults=tuple(for_visitors(error, self.data) for error in index.faults.values()),
        )

    def _unknown(self, name: str) -> NotFound:
        built = self.names()
        hint = f"`lexiscope precompute {name}` makes one" if MODEL_NAME.fullmatch(name) else "this is no model's name"
        for other in built:
            # commands also accept a short name, such as `demo` for the demo's index
            if other.casefold() == model_name(name).casefold():
                hint = f"did you mean {other}?"
        return NotFound(f"no index of {name!r} (built: {', '.join(built) or 'none'}); {hint}")


def architecture_name(shape: Shape) -> str:
    """Return the name of a model's architecture for people."""
    return shape.name or UNNAMED.get(shape.architecture, shape.architecture)


def _load_tokenizer(path: Path, sha256: str) -> "Tokenizer | None":
    # imports the library `tokenizers`, which only live pages need
    from lexiscope.precompute.index.tokenizer import parse_tokenizer

    try:
        content = read_regular(path)
        return parse_tokenizer(content) if hashlib.sha256(content).hexdigest() == sha256 else None
    except Exception:  # the library raises a plain Exception; searches work without a tokenizer
        return None
