"""The comparisons of two models in a data folder: each is opened once, and again when its files change."""

from dataclasses import dataclass
from pathlib import Path

from lexiscope.app.library.checks import for_visitors
from lexiscope.app.library.watched import Watched
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotFound
from lexiscope.precompute.files import Stamp, stamp_of
from lexiscope.precompute.index.comparison import Comparison, comparison_folders
from lexiscope.precompute.index.comparison_record import ComparedModel
from lexiscope.precompute.index.manifest import Manifest

Names = tuple[str, str]  # the names of A and of B


def weights_of(model: ComparedModel | Manifest) -> tuple[str, str]:
    """Return the hash of the weights of a compared or indexed model and, if it is the difference of two models, also
    the hash of the base."""
    return model.weights_sha256, model.minus.weights_sha256 if model.minus else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCard:
    """What the home page shows of a comparison of two models."""

    a: str
    b: str
    tokens: int = 0  # how many tokens both models have; 0 if the comparison cannot be used
    kinds: tuple[str, ...] = ()
    stitched: bool = False
    fault: str | None = None  # why the comparison cannot be used


@dataclass(frozen=True)
class _Opened:
    """All comparisons of the folder, each either open or an error with the reason why it cannot be used."""

    comparisons: dict[Names, Comparison | LexiscopeError]
    files: dict[Names, tuple[Stamp | None, ...]]  # the stamps of the files that each comparison lists
    cards: tuple[ComparisonCard, ...]
    version: str


class Comparisons:
    """The comparisons of two models in a data folder. Files are checked for changes at most once in `every` seconds."""

    def __init__(self, data: Path, every: float = 1.0) -> None:
        self.data = data
        self._opened = Watched(self._read, every)

    def cards(self) -> tuple[ComparisonCard, ...]:
        return self._opened.value().cards

    def version(self) -> str:
        """Return a text that changes whenever the comparisons change in anything that a page may show."""
        return self._opened.value().version

    def find(self, a: str, b: str) -> Comparison:
        """Return the comparison of these two models. NotFound names the comparisons that exist; another error says why
        this one cannot be used."""
        comparisons = self._opened.value().comparisons
        comparison = comparisons.get((a, b))
        if comparison is None:
            there = ", ".join(f"{one} with {other}" for one, other in comparisons)
            raise NotFound(
                f"{a} is not compared with {b} (compared: {there or 'none'}); `lexiscope compare {a} {b}` does it"
            )
        if isinstance(comparison, LexiscopeError):
            raise type(comparison)(str(comparison))
        return comparison

    def of_model(self, name: str) -> list[Comparison]:
        """Return the usable comparisons with this model on either side. If two models are compared both ways, return
        the comparison in which this model comes first."""
        chosen: dict[str, Comparison] = {}
        for (a, b), comparison in self._opened.value().comparisons.items():
            if name not in (a, b) or isinstance(comparison, LexiscopeError):
                continue
            other = b if a == name else a
            if other not in chosen or a == name:
                chosen[other] = comparison
        return list(chosen.values())

    def _read(self, before: _Opened | None) -> _Opened:
        """Open every comparison of which a file has changed since the last time; keep the others."""
        comparisons: dict[Names, Comparison | LexiscopeError] = {}
        files: dict[Names, tuple[Stamp | None, ...]] = {}
        for folder in self._folders():
            names = folder.parent.name, folder.name
            known = before.comparisons.get(names) if before else None
            if before and isinstance(known, Comparison) and not known.is_changed():
                files[names] = _stamps(known)
                if files[names] == before.files[names]:
                    comparisons[names] = known
                    continue
            try:
                comparisons[names] = comparison = Comparison.open(folder)
                files[names] = _stamps(comparison)
            except LexiscopeError as error:
                comparisons[names] = error.bare()
        cards = tuple(self._card(names, comparison) for names, comparison in comparisons.items())
        facts = [
            f"{names}: {(comparison.stamp, files[names]) if isinstance(comparison, Comparison) else comparison}"
            for names, comparison in comparisons.items()
        ]
        return _Opened(comparisons, files, cards, "; ".join(facts))

    def _folders(self) -> list[Path]:
        try:
            return comparison_folders(self.data)
        except IndexFault:
            return []  # models are served even if the folder of comparisons cannot be read

    def _card(self, names: Names, comparison: Comparison | LexiscopeError) -> ComparisonCard:
        a, b = names
        if isinstance(comparison, LexiscopeError):
            return ComparisonCard(a=a, b=b, fault=for_visitors(comparison, self.data))
        stitched = comparison.stamp[1] is not None
        return ComparisonCard(a=a, b=b, tokens=comparison.tokens, kinds=comparison.kinds, stitched=stitched)


def _stamps(comparison: Comparison) -> tuple[Stamp | None, ...]:
    """Return the stamps of the comparison's finished files, which change with the files; None for a missing file."""
    return tuple(stamp_of(comparison.folder / entry.file) for entry in comparison.record.files.values())
