"""The comparisons in a data folder, each opened once and kept up to date while files come and go."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lexiscope.app.library.fault_text import for_visitors
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotFound
from lexiscope.precompute.files import Stamp, stamp_of
from lexiscope.precompute.index.comparison import Comparison, comparison_folders
from lexiscope.precompute.index.comparison_record import ComparedModel
from lexiscope.precompute.index.manifest import Manifest

Names = tuple[str, str]  # of A and of B


def weights_of(model: ComparedModel | Manifest) -> tuple[str, str]:
    """What tells the weights that were compared, or that an index is of, from others; of a difference both models'."""
    return model.weights_sha256, model.minus.weights_sha256 if model.minus else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCard:
    """A comparison as the home page lists it."""

    a: str
    b: str
    tokens: int = 0  # that both have; 0 of one that cannot be used
    kinds: tuple[str, ...] = ()
    stitched: bool = False
    fault: str | None = None


@dataclass(frozen=True)
class _Seen:
    """All comparisons as they were when they were last looked at: each, or why it cannot be used."""

    at: float
    opened: dict[Names, Comparison | LexiscopeError]
    files: dict[Names, tuple[Stamp | None, ...]]  # of those that each lists
    cards: tuple[ComparisonCard, ...]
    version: str


class Comparisons:
    def __init__(self, data: Path, every: float = 1.0) -> None:
        self.data = data
        self.every = every  # seconds between two looks
        self._lock = threading.Lock()
        self._seen: _Seen | None = None

    def cards(self) -> tuple[ComparisonCard, ...]:
        return self._look().cards

    def version(self) -> str:
        """Another one whenever a page that shows something of a comparison may show something else."""
        return self._look().version

    def find(self, a: str, b: str) -> Comparison:
        """NotFound says which there are; another error, why this one cannot be used."""
        opened = self._look().opened
        comparison = opened.get((a, b))
        if comparison is None:
            there = ", ".join(f"{one} with {other}" for one, other in opened)
            raise NotFound(
                f"{a} is not compared with {b} (compared: {there or 'none'}); `lexiscope compare {a} {b}` does it"
            )
        if isinstance(comparison, LexiscopeError):
            raise type(comparison)(str(comparison))
        return comparison

    def of_model(self, name: str) -> list[Comparison]:
        """Those that can be used with the model on either side; where two models are compared both ways, the one in
        which it comes first."""
        chosen: dict[str, Comparison] = {}
        for (a, b), comparison in self._look().opened.items():
            if name not in (a, b) or isinstance(comparison, LexiscopeError):
                continue
            other = b if a == name else a
            if other not in chosen or a == name:
                chosen[other] = comparison
        return list(chosen.values())

    def _look(self) -> _Seen:
        seen = self._seen
        if seen is not None and time.monotonic() - seen.at < self.every:
            return seen
        with self._lock:
            seen = self._seen
            if seen is None or time.monotonic() - seen.at >= self.every:
                seen = self._seen = self._read(seen)
        return seen

    def _read(self, before: _Seen | None) -> _Seen:
        """One of which any file has changed is opened anew: what was made of it is then made anew, too."""
        opened: dict[Names, Comparison | LexiscopeError] = {}
        files: dict[Names, tuple[Stamp | None, ...]] = {}
        for folder in self._folders():
            names = folder.parent.name, folder.name
            known = before.opened.get(names) if before else None
            if before and isinstance(known, Comparison) and not known.is_changed():
                files[names] = _stamps(known)
                if files[names] == before.files[names]:
                    opened[names] = known
                    continue
            try:
                opened[names] = comparison = Comparison.open(folder)
                files[names] = _stamps(comparison)
            except LexiscopeError as error:
                opened[names] = error.bare()
        cards = tuple(self._card(names, comparison) for names, comparison in opened.items())
        facts = [
            f"{names}: {(comparison.stamp, files[names]) if isinstance(comparison, Comparison) else comparison}"
            for names, comparison in opened.items()
        ]
        return _Seen(time.monotonic(), opened, files, cards, "; ".join(facts))

    def _folders(self) -> list[Path]:
        try:
            return comparison_folders(self.data)
        except IndexFault:
            return []  # models are there without their comparisons

    def _card(self, names: Names, opened: Comparison | LexiscopeError) -> ComparisonCard:
        a, b = names
        if isinstance(opened, LexiscopeError):
            return ComparisonCard(a=a, b=b, fault=for_visitors(opened, self.data))
        return ComparisonCard(a=a, b=b, tokens=opened.tokens, kinds=opened.kinds, stitched=opened.stamp[1] is not None)


def _stamps(comparison: Comparison) -> tuple[Stamp | None, ...]:
    """Of its finished files; None of one that is missing."""
    return tuple(stamp_of(comparison.folder / entry.file) for entry in comparison.record.files.values())
